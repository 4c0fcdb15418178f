//! Questions about one job, which the server that has it answers.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::{App, Refused, headers_for, is_id};
use crate::router::caller::caller;
use crate::router::holders::job_holder;
use crate::router::servers::{Ask, Fault, Server, pass_on};
use crate::service::api::ApiError;
use crate::service::api::jobs::id_of;

/// Longest silence of an answer that comes bit by bit; servers give a sign of life every fifteen seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// The job of a path.
///
/// # Errors
/// When no job can have this id; a stranger is not told so.
pub(super) async fn job_of(
    app: &App,
    path: Result<Path<String>, PathRejection>,
    headers: &HeaderMap,
) -> Result<String, Refused> {
    let job_id = match id_of(path) {
        Ok(job_id) if is_id(&job_id) => return Ok(job_id),
        other => other,
    };
    caller(app, headers).await?;
    Err(ApiError::no_job(&job_id?).into())
}

/// Passes on what the server of a job answers.
pub(super) async fn reply_about(app: &App, job_id: &str, headers: &HeaderMap, ask: &Ask) -> Result<Response, Refused> {
    answer_about(app, job_id, headers, |server| async move {
        Ok(server.ask(ask).await?.into_response())
    })
    .await
}

/// Passes on what the server of a job answers, as it comes.
pub(super) async fn stream_about(app: &App, job_id: &str, headers: &HeaderMap, ask: &Ask) -> Result<Response, Refused> {
    answer_about(app, job_id, headers, |server| async move {
        let response = server.open(ask).await?;
        Ok(pass_on(response, SILENCE, app.stop.clone()))
    })
    .await
}

async fn answer_about<F: Future<Output = Result<Response, Fault>>>(
    app: &App,
    job_id: &str,
    headers: &HeaderMap,
    ask: impl Fn(Arc<Server>) -> F,
) -> Result<Response, Refused> {
    let look = Ask::get(format!("/jobs/{job_id}"), headers_for(headers, &[])?);
    loop {
        let holder = job_holder(app, job_id, &look).await?;
        match ask(Arc::clone(&holder.server)).await {
            // Its server may have forgotten it, or be another one by now: then it is looked for.
            Ok(answer) if answer.status() == StatusCode::NOT_FOUND && holder.is_remembered => {
                app.jobs.forget(&job_id.to_owned(), &holder.server.name);
            }
            Ok(answer) => return Ok(answer),
            Err(_) => return Err(app.unreachable(vec![Arc::clone(&holder.server.name)]).into()),
        }
    }
}
