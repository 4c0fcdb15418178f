//! Jobs: handing in, waiting, looking, listing, cancelling.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use reqwest::Method;
use serde_json::Value;

use super::of_job::{job_of, reply_about};
use super::types::JobList;
use super::{App, Refused, distinct, headers_for};
use crate::router::caller::caller;
use crate::router::hand_in::{Request, Taken, hand_in};
use crate::router::holders::ask_each;
use crate::router::servers::{Ask, Reply};
use crate::service::api::body::json;
use crate::service::api::caller::may_submit;
use crate::service::api::jobs::{ListQuery, REPLAY_HEADER, TRACE_HEADER, WaitQuery, cursor_after};
use crate::service::api::{ApiError, ErrorBody};

/// Hands a job in to the server that has the least to do.
pub(super) async fn submit(State(app): State<App>, headers: HeaderMap, body: Body) -> Result<Response, Refused> {
    let request = read(&app, &headers, body).await?;
    Ok(hand_in(&app, &request).await?.reply.into_response())
}

/// Hands a job in and waits for its end.
///
/// These are two requests to its server: it is handed in as any other, and then the same request waits, which its key makes the same job.
pub(super) async fn submit_and_wait(
    State(app): State<App>,
    uri: Uri,
    query: Result<Query<WaitQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let Query(query) = query.map_err(|error| ApiError::parameter(error.body_text()))?;
    let time = query.time()?;
    let request = read(&app, &headers, body).await?;
    let Taken { server, reply } = hand_in(&app, &request).await?;
    let job: Option<Value> = reply.json();
    let job_id = job.as_ref().and_then(|job| job["job_id"].as_str()).unwrap_or_default();
    let waiting = Ask {
        path: super::with_query("/jobs/submit_and_wait", &uri),
        ..request.ask.clone()
    };
    let answered = tokio::select! {
        answered = server.ask_for(&waiting, time) => answered,
        () = app.stop.cancelled() => {
            let shown = server.ask(&Ask::get(format!("/jobs/{job_id}"), headers_for(&headers, &[])?)).await;
            shown.map(|reply| Reply { status: StatusCode::ACCEPTED, ..reply })
        }
    };
    let mut response = match answered {
        Ok(reply) => reply.into_response(),
        Err(_) => {
            return Err(app
                .unreachable(vec![Arc::clone(&server.name)])
                .about(format!(
                    "it took the job {job_id}, which goes on when it is there again"
                ))
                .into());
        }
    };
    // The second request always finds the job of the first.
    match reply.headers.get(REPLAY_HEADER) {
        Some(is_replay) => response.headers_mut().insert(REPLAY_HEADER, is_replay.clone()),
        None => response.headers_mut().remove(REPLAY_HEADER),
    };
    Ok(response)
}

async fn read(app: &App, headers: &HeaderMap, body: Body) -> Result<Request, Refused> {
    let caller = caller(app, headers).await?;
    may_submit(caller.role)?;
    if app.stop.is_cancelled() {
        return Err(ApiError::stopping().into());
    }
    let (limit, time) = {
        let setup = app.setup();
        (setup.config.body_bytes.bytes(), setup.config.body_time)
    };
    let value = json(headers, body, limit, time).await?;
    let mut passed = headers_for(headers, &[TRACE_HEADER])?;
    passed.insert("content-type", HeaderValue::from_static("application/json"));
    Ok(Request::new(value, &caller, passed))
}

/// Shows a job.
pub(super) async fn show(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let job_id = job_of(&app, path, &headers).await?;
    let ask = Ask::get(format!("/jobs/{job_id}"), headers_for(&headers, &[])?);
    reply_about(&app, &job_id, &headers, &ask).await
}

/// Cancels a job.
pub(super) async fn cancel(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let job_id = job_of(&app, path, &headers).await?;
    let ask = Ask {
        method: Method::DELETE,
        ..Ask::get(format!("/jobs/{job_id}"), headers_for(&headers, &[])?)
    };
    reply_about(&app, &job_id, &headers, &ask).await
}

/// Lists the jobs of all servers, the newest first.
///
/// Ids sort by time, and a cursor is the place of one among those of all servers: every server goes on from there.
#[utoipa::path(
    get,
    path = "/jobs",
    tag = "jobs",
    params(ListQuery),
    responses(
        (status = 200, description = "A page of jobs", body = JobList),
        (status = 400, description = "A parameter is wrong", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 403, description = "The user is another", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub(super) async fn list(
    State(app): State<App>,
    uri: Uri,
    query: Result<Query<ListQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Json<JobList>, Refused> {
    let passed = headers_for(&headers, &[])?;
    if query.is_err() {
        // A stranger is not told what is wrong with it.
        caller(&app, &headers).await?;
    }
    let Query(query) = query.map_err(|error| ApiError::parameter(error.body_text()))?;
    let setup = app.setup();
    let ask = Ask::get(super::with_query("/jobs", &uri), passed);
    let questions = setup.up().into_iter().map(|server| (server, ask.clone()));
    let answers = ask_each(questions, setup.down()).await;
    if answers.told.is_empty() {
        return Err(app.unreachable(answers.silent).into());
    }
    let (mut jobs, mut is_more) = (Vec::new(), false);
    for (server, reply) in answers.told {
        if !reply.status.is_success() {
            return Err(Refused::Passed(Box::new(reply)));
        }
        let mut page: Value = reply.json().unwrap_or_default();
        is_more |= page["next_cursor"].is_string();
        let Some(page) = page["jobs"].as_array_mut() else {
            return Err(app.unreachable(vec![Arc::clone(&server.name)]).into());
        };
        jobs.append(page);
    }
    let id = |job: &Value| job["job_id"].as_str().unwrap_or_default().to_owned();
    jobs.sort_by_cached_key(|job| std::cmp::Reverse(id(job)));
    let limit = query.page()? as usize;
    is_more |= jobs.len() > limit;
    jobs.truncate(limit);
    Ok(Json(JobList {
        next_cursor: jobs.last().filter(|_| is_more).map(|last| cursor_after(&id(last))),
        jobs,
        unreachable: distinct(answers.silent),
    }))
}
