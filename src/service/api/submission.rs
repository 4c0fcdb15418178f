//! The submission of a job, as its program wrote it.

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::try_unfold;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use super::App;
use super::error::{ApiError, ErrorBody};
use super::jobs::{id_of, own_job};
use crate::service::access::Caller;

/// Bytes that are read at once.
const PART_BYTES: u64 = 256 << 10;

/// Gives the submission of a job that ended.
///
/// A folder comes as a tar file. X-Submission-Name is the name of the file and X-Submission-SHA256 its hash in hexadecimal. It is kept for
/// service.keep_submission_hours after the end of the job.
#[utoipa::path(
    get,
    path = "/jobs/{id}/submission",
    tag = "jobs",
    params(("id" = String, Path, description = "Job")),
    responses(
        (status = 200, description = "The file", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 400, description = "The path is wrong", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 404, description = "There is no such job, or it has no submission", body = ErrorBody),
        (status = 409, description = "The job has not ended", body = ErrorBody),
        (status = 410, description = "The submission is kept no more", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub async fn submission(
    State(app): State<App>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let job = own_job(&app, &caller, &id_of(path)?).await?;
    let job_id = &job.job_id;
    if !job.state.is_end() {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "not_ended",
            format!("job {job_id} is {}: it has no submission yet", job.state.as_str()),
            "ask again when the job has ended",
        ));
    }
    let detail = job.result.as_ref().map(|result| &result.detail);
    let Some(facts) = detail.and_then(|detail| detail.submission.as_ref()) else {
        let why = detail.and_then(|detail| detail.no_submission.as_ref().or(detail.reason.as_ref()));
        let why = why.map(|reason| format!(": {reason}")).unwrap_or_default();
        return Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "no_submission",
            format!("job {job_id} has no submission{why}"),
            "GET /api/v1/jobs/{id} says how the program ended",
        ));
    };
    if !app.submissions.is_kept() {
        return Err(ApiError::new(
            StatusCode::GONE,
            "submissions_not_kept",
            "this server keeps no submissions",
            "set service.keep_submission_hours on the server, and run the job again",
        ));
    }
    let Some(file) = app.submissions.of(&job).await? else {
        return Err(ApiError::new(
            StatusCode::GONE,
            "submission_gone",
            format!("the submission of job {job_id} is kept no more"),
            "run the job again; service.keep_submission_hours and service.submissions_bytes say how long and how much is kept",
        ));
    };
    let mut response = Body::from_stream(parts(file, facts.bytes)).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(facts.bytes));
    for (name, value) in [
        ("x-submission-name", &facts.name),
        ("x-submission-sha256", &facts.sha256),
    ] {
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    Ok(response)
}

/// The bytes of a file, part by part.
fn parts(file: File, bytes: u64) -> impl futures::Stream<Item = std::io::Result<Vec<u8>>> {
    try_unfold((file, bytes), |(mut file, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let mut part = Vec::new();
        (&mut file).take(left.min(PART_BYTES)).read_to_end(&mut part).await?;
        if part.is_empty() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let left = left - part.len() as u64;
        Ok(Some((part, (file, left))))
    })
}
