//! What the router and its servers do.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::refused::internal;
use super::types::{Health, ServerHealth};
use super::{App, Refused};
use crate::router::caller::{caller, caller_now};
use crate::router::servers::Ask;
use crate::scheduler::ENGINE_VERSION;

/// Says whose the key is, as a server that answers does.
pub(super) async fn whoami(State(app): State<App>, headers: HeaderMap) -> Result<Response, Refused> {
    let caller = caller_now(&app, &headers).await?;
    let ask = Ask::get("/whoami", caller.headers);
    let setup = app.setup();
    for server in setup.up() {
        if let Ok(reply) = server.ask(&ask).await {
            return Ok(reply.into_response());
        }
    }
    Err(app.unreachable(setup.down()).into())
}

/// Says whether a server answers, and which do.
#[utoipa::path(
    get,
    path = "/health",
    tag = "service",
    responses(
        (status = 200, description = "A server answers", body = Health),
        (status = 503, description = "None does", body = Health),
    )
)]
pub(super) async fn health(State(app): State<App>) -> Response {
    let setup = app.setup();
    let servers: Vec<ServerHealth> = setup
        .servers
        .iter()
        .map(|server| {
            let view = server.view();
            ServerHealth {
                name: server.name.to_string(),
                is_up: view.is_up,
                load: view.load,
            }
        })
        .collect();
    let (status, code) = match servers.iter().any(|server| server.is_up) {
        _ if app.stop.is_cancelled() => ("stopping", StatusCode::OK),
        true => ("ok", StatusCode::OK),
        false => ("unreachable", StatusCode::SERVICE_UNAVAILABLE),
    };
    let health = Health {
        status: status.to_owned(),
        version: ENGINE_VERSION.to_owned(),
        servers,
    };
    (code, Json(health)).into_response()
}

/// Gives figures for Prometheus.
pub(super) async fn metrics(State(app): State<App>, headers: HeaderMap) -> Result<Response, Refused> {
    caller(&app, &headers).await?;
    app.figures.set_servers(&app.setup());
    Ok(app.figures.exposition.response().map_err(|error| internal(&error))?)
}
