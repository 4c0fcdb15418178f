//! The submission of a job, passed on as it comes.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;

use super::of_job::{job_of, stream_about};
use super::{App, Refused, headers_for};
use crate::router::servers::Ask;

/// Gives the submission of a job that ended.
pub(super) async fn submission(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let job_id = job_of(&app, path, &headers).await?;
    let ask = Ask::get(format!("/jobs/{job_id}/submission"), headers_for(&headers, &[])?);
    stream_about(&app, &job_id, &headers, &ask).await
}
