//! The routes of workers. They are between a server and workers of its own version, so the description for clients leaves them out.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;
use tokio_stream::wrappers::ReceiverStream;

use super::held::HeldJob;
use super::wire::{
    Attempt, ClaimRequest, Claimed, Finish, Heartbeat, Join, Joined, OUTPUT_BYTES, Orders, PART_BYTES, Probed,
};
use super::{Asking, Refusal};
use crate::sandbox::LogStream;
use crate::service::access::Caller;
use crate::service::api::body::{LimitedBody, json};
use crate::service::api::caller::{may_work, must_be_admin};
use crate::service::api::{ApiError, App};
use crate::service::uploads::Packer;

type Answer<T> = Result<Json<T>, ApiError>;

/// Longest wait for a job.
const LONGEST_WAIT: f64 = 30.0;
/// Largest body that says something about jobs, apart from their outputs.
const FACTS_BYTES: u64 = 1 << 20;

/// The routes of workers.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/workers/join", post(join))
        .route("/workers/{id}/heartbeat", post(heartbeat))
        .route("/workers/{id}/claim", post(claim))
        .route("/workers/{id}/probe", post(probed))
        .route("/workers/{id}/leave", post(leave))
        .route("/workers/{id}/drain", post(drain))
        .route("/workers/{id}/resume", post(resume))
        .route("/workers/{id}/jobs/{job}/data/{hash}", get(data))
        .route("/workers/{id}/jobs/{job}/output", post(output))
        .route("/workers/{id}/jobs/{job}/submission", post(submission))
        .route("/workers/{id}/jobs/{job}/finish", post(finish))
        .route("/workers/{id}/jobs/{job}/give_back", post(give_back))
}

type Ids<T> = Result<Path<T>, PathRejection>;

fn ids<T>(path: Ids<T>) -> Result<T, ApiError> {
    match path {
        Ok(Path(ids)) => Ok(ids),
        Err(error) => Err(ApiError::parameter(error.body_text())),
    }
}

/// Reads what a worker says.
async fn read<T: DeserializeOwned>(app: &App, headers: &HeaderMap, body: Body, limit: u64) -> Result<T, ApiError> {
    let value = json(headers, body, limit, app.config.body_time()).await?;
    let value = serde_json::from_value(value)
        .map_err(|error| Refusal::Malformed(format!("the body is not as expected: {error}")));
    Ok(value?)
}

async fn join(State(app): State<App>, caller: Caller, headers: HeaderMap, body: Body) -> Answer<Joined> {
    may_work(&caller)?;
    if app.queue.is_closed() {
        return Err(ApiError::stopping());
    }
    let facts: Join = read(&app, &headers, body, FACTS_BYTES).await?;
    Ok(Json(app.fleet.join(&caller.key_id, facts).await?))
}

async fn heartbeat(
    State(app): State<App>,
    caller: Caller,
    path: Ids<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer<Orders> {
    may_work(&caller)?;
    let (id, heartbeat): (_, Heartbeat) = (ids(path)?, read(&app, &headers, body, FACTS_BYTES).await?);
    Ok(Json(app.fleet.heartbeat(&id, &caller.key_id, heartbeat).await?))
}

async fn claim(
    State(app): State<App>,
    caller: Caller,
    path: Ids<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer<Claimed> {
    may_work(&caller)?;
    let worker_id = ids(path)?;
    let asked: ClaimRequest = read(&app, &headers, body, FACTS_BYTES).await?;
    let wait = asked.wait_seconds;
    if !(0.0..=LONGEST_WAIT).contains(&wait) {
        return Err(Refusal::Malformed(format!("field 'wait_seconds': from 0 to {LONGEST_WAIT}")).into());
    }
    if app.queue.is_closed() {
        return Err(ApiError::stopping());
    }
    let asking = Asking {
        worker_id,
        key_id: caller.key_id,
        class: asked.class,
    };
    let (answer, claimed) = oneshot::channel();
    // On its own, since this request may end early.
    tokio::spawn(Arc::clone(&app.fleet).assign(asking, Duration::from_secs_f64(wait), answer));
    match claimed.await {
        Ok(claimed) => Ok(Json(claimed?)),
        Err(_) => Err(ApiError::stopping()),
    }
}

async fn probed(
    State(app): State<App>,
    caller: Caller,
    path: Ids<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, ApiError> {
    may_work(&caller)?;
    let (id, probed): (_, Probed) = (ids(path)?, read(&app, &headers, body, FACTS_BYTES).await?);
    app.fleet.probed(&id, &caller.key_id, &probed)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn leave(State(app): State<App>, caller: Caller, path: Ids<String>) -> Result<StatusCode, ApiError> {
    may_work(&caller)?;
    app.fleet.leave(&ids(path)?, &caller.key_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn drain(State(app): State<App>, caller: Caller, path: Ids<String>) -> Result<StatusCode, ApiError> {
    must_be_admin(caller.role)?;
    app.fleet.drain(&ids(path)?, true)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn resume(State(app): State<App>, caller: Caller, path: Ids<String>) -> Result<StatusCode, ApiError> {
    must_be_admin(caller.role)?;
    app.fleet.drain(&ids(path)?, false)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The public data of a job that the worker has, as a tar file. It is asked for by its hash, so what changed meanwhile is not mistaken
/// for it.
async fn data(
    State(app): State<App>,
    caller: Caller,
    path: Ids<(String, String, String)>,
) -> Result<Response, ApiError> {
    may_work(&caller)?;
    let (id, job_id, hash) = ids(path)?;
    let folder = app.fleet.data_of(&id, &caller.key_id, &job_id, &hash)?;
    let parts = ReceiverStream::new(Packer::archive(folder));
    Ok(([(header::CONTENT_TYPE, "application/x-tar")], Body::from_stream(parts)).into_response())
}

/// The attempt that a part belongs to, which the worker must hold, and where in it.
fn held_part<Q>(
    app: &App,
    caller: &Caller,
    path: Ids<(String, String)>,
    query: Result<Query<Q>, QueryRejection>,
    attempt: impl FnOnce(&Q) -> u32,
) -> Result<(Arc<HeldJob>, Q), ApiError> {
    may_work(caller)?;
    let (id, job_id) = ids(path)?;
    let Query(query) = query.map_err(|error| ApiError::parameter(error.body_text()))?;
    let attempt = Attempt {
        job_id,
        attempt: attempt(&query),
    };
    Ok((app.fleet.held_attempt(&id, &caller.key_id, &attempt)?, query))
}

/// Where a part of an output belongs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputQuery {
    attempt: u32,
    stream: LogStream,
    offset: u64,
}

async fn output(
    State(app): State<App>,
    caller: Caller,
    path: Ids<(String, String)>,
    query: Result<Query<OutputQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let (job, query) = held_part(&app, &caller, path, query, |query| query.attempt)?;
    let body = LimitedBody::new(&headers, body, OUTPUT_BYTES as u64, app.config.body_time()).await?;
    job.live.job.push_at(query.stream, query.offset, &body.whole().await?);
    Ok(StatusCode::NO_CONTENT)
}

/// Where a part of a submission belongs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartQuery {
    attempt: u32,
    offset: u64,
}

async fn submission(
    State(app): State<App>,
    caller: Caller,
    path: Ids<(String, String)>,
    query: Result<Query<PartQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let (job, query) = held_part(&app, &caller, path, query, |query| query.attempt)?;
    let body = LimitedBody::new(&headers, body, PART_BYTES as u64, app.config.body_time()).await?;
    job.write_submission(query.offset, &body.whole().await?).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn finish(
    State(app): State<App>,
    caller: Caller,
    path: Ids<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, ApiError> {
    may_work(&caller)?;
    let (id, job_id) = ids(path)?;
    // Two outputs in Base64, and their excerpts, whose control characters JSON writes with six characters each.
    let limit = app
        .services
        .candidate_limits
        .log_bytes
        .saturating_mul(3)
        .saturating_add(2 * FACTS_BYTES);
    let finish: Finish = read(&app, &headers, body, limit).await?;
    app.fleet.finish(&id, &caller.key_id, job_id, finish).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn give_back(
    State(app): State<App>,
    caller: Caller,
    path: Ids<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, ApiError> {
    may_work(&caller)?;
    let (id, _) = ids(path)?;
    let attempt: Attempt = read(&app, &headers, body, FACTS_BYTES).await?;
    app.fleet.give_back(&id, &caller.key_id, &attempt).await?;
    Ok(StatusCode::NO_CONTENT)
}
