//! Logs of a job, passed on as they come.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;

use super::jobs::job_of;
use super::{App, Refused, headers_for, with_query};
use crate::router::holders::job_holder;
use crate::router::servers::{Ask, pass_on};
use crate::service::api::ApiError;

/// Longest silence of a log that is followed; servers give a sign of life every fifteen seconds.
const SILENCE: Duration = Duration::from_secs(60);

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
    let look = Ask::get(format!("/jobs/{job_id}"), headers_for(&headers, &[])?);
    for _ in 0..2 {
        let (server, _) = job_holder(&app, &job_id, &look).await?;
        match server.open(&ask).await {
            Ok(response) if response.status() == StatusCode::NOT_FOUND => app.jobs.forget(&job_id, &server.name),
            Ok(response) => return Ok(pass_on(response, SILENCE, app.stop.clone())),
            Err(_) => return Err(app.unreachable(vec![Arc::clone(&server.name)]).into()),
        }
    }
    Err(ApiError::no_job(&job_id).into())
}
