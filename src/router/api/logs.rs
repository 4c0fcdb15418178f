//! Logs of a job, passed on as they come.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;

use super::of_job::{job_of, stream_about};
use super::{App, Refused, headers_for, with_query};
use crate::router::servers::Ask;

/// Gives a part of a log, or follows it.
pub(super) async fn logs(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let job_id = job_of(&app, path, &headers).await?;
    let ask = Ask::get(
        with_query(&format!("/jobs/{job_id}/logs"), &uri),
        headers_for(&headers, &["last-event-id", "accept"])?,
    );
    stream_about(&app, &job_id, &headers, &ask).await
}
