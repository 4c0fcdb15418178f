//! The workers of all servers.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use reqwest::Method;

use super::types::{ServerWorker, Workers};
use super::{App, Refused, distinct, headers_for, is_id};
use crate::router::caller::caller;
use crate::router::holders::ask_all;
use crate::router::servers::{Ask, Server};
use crate::service::api::caller::must_be_admin;
use crate::service::api::jobs::id_of;
use crate::service::api::types::{WorkerAnswer, Workers as WorkersOfServer};
use crate::service::api::{ApiError, ErrorBody};

/// Lists the workers of all servers.
#[utoipa::path(
    get,
    path = "/workers/status",
    tag = "service",
    responses(
        (status = 200, description = "The workers", body = Workers),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub(super) async fn status(State(app): State<App>, headers: HeaderMap) -> Result<Json<Workers>, Refused> {
    let all = all(&app, &headers).await?;
    let workers_show = all.workers.into_iter().map(|(server, worker)| ServerWorker {
        server: server.name.to_string(),
        worker,
    });
    Ok(Json(Workers {
        workers_show: workers_show.collect(),
        unreachable: distinct(all.silent),
    }))
}

/// What servers tell of their workers.
struct AllWorkers {
    workers: Vec<(Arc<Server>, WorkerAnswer)>,
    /// Names of the servers that did not answer.
    silent: Vec<Arc<str>>,
}

/// The workers of all servers.
async fn all(app: &App, headers: &HeaderMap) -> Result<AllWorkers, Refused> {
    let ask = Ask::get("/workers/status", headers_for(headers, &[])?);
    let setup = app.setup();
    let answers = ask_all(&setup, &ask).await;
    if answers.told.is_empty() {
        return Err(app.unreachable(answers.silent).into());
    }
    let mut workers = Vec::new();
    for (server, reply) in answers.told {
        if !reply.status.is_success() {
            return Err(Refused::Passed(Box::new(reply)));
        }
        let Some(shown) = reply.json::<WorkersOfServer>() else {
            return Err(app.unreachable(vec![Arc::clone(&server.name)]).into());
        };
        let shown = shown.workers_show.into_iter();
        workers.extend(shown.map(|worker| (Arc::clone(&server), worker)));
    }
    workers.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    Ok(AllWorkers {
        workers,
        silent: answers.silent,
    })
}

/// Lets a worker on another machine have no more jobs; what it runs goes on.
#[utoipa::path(
    post,
    path = "/workers/{id}/drain",
    tag = "service",
    params(("id" = String, Path, description = "Worker")),
    responses(
        (status = 204, description = "It gets no more jobs"),
        (status = 400, description = "The path is wrong", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 403, description = "The key is none of an admin", body = ErrorBody),
        (status = 404, description = "There is no such worker on another machine", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub(super) async fn drain(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    tell(&app, path, &headers, "drain").await
}

/// Lets a worker on another machine have jobs again.
#[utoipa::path(
    post,
    path = "/workers/{id}/resume",
    tag = "service",
    params(("id" = String, Path, description = "Worker")),
    responses(
        (status = 204, description = "It gets jobs again"),
        (status = 400, description = "The path is wrong", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 403, description = "The key is none of an admin", body = ErrorBody),
        (status = 404, description = "There is no such worker on another machine", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub(super) async fn resume(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    tell(&app, path, &headers, "resume").await
}

/// Tells a worker something, by the server that has it.
async fn tell(
    app: &App,
    path: Result<Path<String>, PathRejection>,
    headers: &HeaderMap,
    what: &str,
) -> Result<Response, Refused> {
    must_be_admin(caller(app, headers).await?.role)?;
    let worker_id = id_of(path)?;
    let AllWorkers { workers, silent } = all(app, headers).await?;
    let found = workers
        .iter()
        .find(|(_, worker)| worker.worker_id == worker_id)
        .filter(|_| is_id(&worker_id));
    let Some((server, _)) = found else {
        if !silent.is_empty() {
            return Err(app.unreachable(silent).into());
        }
        return Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "unknown_worker",
            format!("there is no worker '{worker_id}'"),
            "GET /api/v1/workers/status lists the workers",
        )
        .into());
    };
    let order = Ask {
        method: Method::POST,
        ..Ask::get(format!("/workers/{worker_id}/{what}"), headers_for(headers, &[])?)
    };
    match server.ask(&order).await {
        Ok(reply) => Ok(reply.into_response()),
        Err(_) => Err(app.unreachable(vec![Arc::clone(&server.name)]).into()),
    }
}
