//! What admins see and do.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use super::types::{Reloaded, ServerAnswer, Servers};
use super::{App, Refused};
use crate::router::caller::caller_now;
use crate::router::reload::reload;
use crate::service::Class;
use crate::service::api::caller::must_be_admin;
use crate::service::api::{ApiError, ErrorBody};

/// Shows the servers.
#[utoipa::path(
    get,
    path = "/router/servers",
    tag = "router",
    responses(
        (status = 200, description = "The servers", body = Servers),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 403, description = "The key is none of an admin", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub(super) async fn servers(State(app): State<App>, headers: HeaderMap) -> Result<Json<Servers>, Refused> {
    must_be_admin(caller_now(&app, &headers).await?.role)?;
    let setup = app.setup();
    let servers = setup.servers.iter().map(|server| {
        let view = server.view();
        ServerAnswer {
            name: server.name.to_string(),
            url: server.url.clone(),
            drain: server.drain,
            is_up: view.is_up,
            is_stopping: view.is_stopping,
            is_failing: view.is_failing,
            placed: Class::ALL.into_iter().map(|class| view.placed(class)).sum(),
            version: view.version,
            load: view.load,
            down_seconds: view.down_for.map(|time| time.as_secs_f64()),
            fault: view.fault,
        }
    });
    Ok(Json(Servers {
        servers: servers.collect(),
    }))
}

/// Reads the file of the router again.
///
/// A file with something wrong in it changes nothing.
#[utoipa::path(
    post,
    path = "/router/reload",
    tag = "router",
    responses(
        (status = 200, description = "The file holds from now on", body = Reloaded),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 403, description = "The key is none of an admin", body = ErrorBody),
        (status = 422, description = "Something in the file is wrong", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub(super) async fn reload_file(State(app): State<App>, headers: HeaderMap) -> Result<Json<Reloaded>, Refused> {
    must_be_admin(caller_now(&app, &headers).await?.role)?;
    let reloaded = reload(&app).await.map_err(|error| {
        ApiError::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_configuration",
            error.to_string(),
            "correct the file; until then the router goes on as before",
        )
    })?;
    Ok(Json(reloaded))
}
