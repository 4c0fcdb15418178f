//! The routes of the router.

mod admin;
mod document;
mod jobs;
mod logs;
mod of_job;
mod refused;
mod status;
mod submission;
mod types;
mod uploads;
mod workers;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;
use utoipa::openapi::OpenApi;

pub(super) use self::refused::{Refused, no_server};
pub(super) use self::types::Reloaded;

use super::caller::Callers;
use super::figures::Figures;
use super::hand_in::KeyId;
use super::memory::Memory;
use super::servers::Setup;
use crate::service::Places;
use crate::service::api::{ApiError, PREFIX, wrong_method};
use crate::turns::Turns;

/// What all requests share.
#[derive(Debug)]
pub(super) struct Shared {
    /// The configuration and its servers, as they are now.
    pub(super) setup: RwLock<Arc<Setup>>,
    /// File of the configuration.
    pub(super) path: PathBuf,
    /// Keys may be sent in the clear to other machines.
    pub(super) insecure: bool,
    /// Servers of jobs.
    pub(super) jobs: Memory<String>,
    /// Servers of idempotency keys.
    pub(super) keys: Memory<KeyId>,
    pub(super) turns: Turns<KeyId>,
    pub(super) callers: Callers,
    /// Uploads that are being received.
    pub(super) places: Arc<Places>,
    pub(super) figures: Figures,
    /// One job at a time is placed, so that all see what the others got.
    pub(super) placing: Mutex<()>,
    /// One at a time reads the file, and what it read last.
    pub(super) reading: tokio::sync::Mutex<Option<String>>,
    /// Stops asking servers that are in use no more.
    pub(super) polling: Mutex<CancellationToken>,
    /// Number of the next job that is placed.
    pub(super) turn: AtomicUsize,
    /// The router is to end.
    pub(super) stop: CancellationToken,
}

/// What all requests share.
pub(super) type App = Arc<Shared>;

impl Shared {
    /// The configuration and its servers, as they are now.
    pub(super) fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.read())
    }

    /// Number of the next job that is placed: among equal servers it says which is first.
    pub(super) fn next_turn(&self) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }

    /// Servers do not answer, and without them it cannot be said.
    pub(super) fn unreachable(&self, names: Vec<Arc<str>>) -> ApiError {
        self.figures.note_unreachable(&names);
        refused::unreachable(&names)
    }
}

/// All routes.
pub(super) fn routes(app: App) -> Router {
    let document = Arc::new(document::document());
    let api = Router::new()
        .route("/jobs", post(jobs::submit).get(jobs::list))
        .route("/jobs/submit_and_wait", post(jobs::submit_and_wait))
        .route("/jobs/{id}", get(jobs::show).delete(jobs::cancel))
        .route("/jobs/{id}/logs", get(logs::logs))
        .route("/jobs/{id}/submission", get(submission::submission))
        .route("/uploads", post(uploads::upload))
        .route("/uploads/{id}", get(uploads::show).delete(uploads::remove))
        .route("/workers/status", get(workers::status))
        .route("/workers/{id}/drain", post(workers::drain))
        .route("/workers/{id}/resume", post(workers::resume))
        .route("/whoami", get(status::whoami))
        .route("/health", get(status::health))
        .route("/metrics", get(status::metrics))
        .route("/router/servers", get(admin::servers))
        .route("/router/reload", post(admin::reload_file))
        .route(
            "/openapi.json",
            get(move || {
                let document = Arc::clone(&document);
                async move { Json(OpenApi::clone(&document)) }
            }),
        );
    Router::new()
        .nest(PREFIX, api)
        .route("/health", get(status::health))
        .route("/metrics", get(status::metrics))
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(&app), count))
        .with_state(app)
}

async fn no_route(uri: Uri) -> ApiError {
    let is_for_workers = uri
        .path()
        .strip_prefix(PREFIX)
        .is_some_and(|path| path.starts_with("/workers/"));
    if is_for_workers {
        return ApiError::new(
            StatusCode::NOT_FOUND,
            "unknown_route",
            "a router has no workers",
            "workers join a server: give clade worker --server the address of one, not that of the router",
        );
    }
    crate::service::api::no_route(uri).await
}

/// Counts requests by route and code.
async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    app.figures.exposition.count(request, next).await
}

/// Headers of a request that servers get: the key, and those that are named.
fn headers_for(given: &HeaderMap, names: &[&'static str]) -> Result<HeaderMap, ApiError> {
    use crate::service::api::caller::{KEY_HEADER, NO_KEY, key_of, unauthorized};
    let key = key_of(given).ok_or_else(|| unauthorized(NO_KEY))?;
    let key =
        axum::http::HeaderValue::from_str(key).map_err(|_| unauthorized("the API key is unknown, wrong or revoked"))?;
    let mut headers = HeaderMap::new();
    headers.insert(KEY_HEADER, key);
    for name in names {
        if let Some(value) = given.get(*name) {
            headers.insert(*name, value.clone());
        }
    }
    Ok(headers)
}

/// A path with what follows its question mark.
fn with_query(path: &str, uri: &Uri) -> String {
    match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}

/// Whether a text may be an id of something: others are no part of a path to a server.
fn is_id(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    (1..=256).contains(&text.len()) && text.chars().all(is_plain) && text != "." && text != ".."
}

/// Names once each, in order.
fn distinct(names: Vec<Arc<str>>) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut names: Vec<String> = names
        .into_iter()
        .filter(|name| seen.insert(Arc::clone(name)))
        .map(|name| name.to_string())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_elsewhere_is_no_id() {
        for id in [
            "",
            ".",
            "..",
            "a/b",
            "a%2fb",
            "a?b",
            "a#b",
            "a b",
            "é",
            &"x".repeat(257),
        ] {
            assert!(!is_id(id), "{id}");
        }
        for id in ["0198c0de-0000-7000-8000-000000000000", "sha256:00ff", "host-1.example"] {
            assert!(is_id(id), "{id}");
        }
    }
}
