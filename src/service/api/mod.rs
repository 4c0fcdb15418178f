//! The routes of the service.

pub(crate) mod body;
pub(crate) mod caller;
mod error;
mod job_body;
pub(crate) mod jobs;
mod logs;
mod status;
mod submission;
pub(crate) mod types;
mod uploads;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use clade_catalog::Store;
use tokio_util::sync::CancellationToken;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use self::error::{ApiError, ErrorBody};

use super::access::Access;
use super::chat::{self, ChatModels};
use super::figures::Figures;
use super::fleet::{self, Fleet};
use super::queue::Queue;
use super::run::{Board, DataFinder, LiveJobs};
use super::submissions::Submissions;
use super::uploads::{Places, Uploads};
use crate::config::ServiceConfig;
use crate::scheduler::{ENGINE_VERSION, Services};
use crate::session::Queries;

/// Where the routes lie.
pub(crate) const PREFIX: &str = "/api/v1";

/// What all requests share.
#[derive(Debug)]
pub struct Shared {
    pub(super) config: ServiceConfig,
    pub(super) services: Arc<Services>,
    pub(super) store: Store,
    pub(super) queries: Arc<Queries>,
    pub(super) access: Access,
    pub(super) queue: Arc<Queue>,
    pub(super) uploads: Arc<Uploads>,
    pub(super) places: Arc<Places>,
    pub(super) submissions: Arc<Submissions>,
    pub(super) data: DataFinder,
    pub(super) live: Arc<LiveJobs>,
    pub(super) board: Arc<Board>,
    pub(super) fleet: Arc<Fleet>,
    pub(super) figures: Arc<Figures>,
    pub(super) chat: ChatModels,
    /// Name of the back end of the server's own workers.
    pub(super) executor: String,
    /// Longest run of a job that does not say.
    pub(super) usual_seconds: f64,
    /// The server is to end.
    pub(super) stop: CancellationToken,
}

/// What all requests share.
pub type App = Arc<Shared>;

/// All routes.
pub fn router(app: App) -> Router {
    let (api, _) = routes().split_for_parts();
    let document = Arc::new(document());
    Router::new()
        .merge(api)
        .nest(PREFIX, fleet::routes())
        .merge(chat::routes())
        .route("/health", get(status::health))
        .route("/metrics", get(status::metrics))
        .route(
            &format!("{PREFIX}/openapi.json"),
            get(move || {
                let document = Arc::clone(&document);
                async move { Json(OpenApi::clone(&document)) }
            }),
        )
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(&app), count))
        .with_state(app)
}

fn routes() -> OpenApiRouter<App> {
    let api = OpenApiRouter::new()
        .routes(routes!(jobs::submit, jobs::list))
        .routes(routes!(jobs::submit_and_wait))
        .routes(routes!(jobs::show, jobs::cancel))
        .routes(routes!(logs::logs))
        .routes(routes!(submission::submission))
        .routes(routes!(uploads::upload))
        .routes(routes!(uploads::show, uploads::remove))
        .routes(routes!(status::workers))
        .routes(routes!(status::whoami))
        .routes(routes!(status::health))
        .routes(routes!(status::metrics));
    OpenApiRouter::new().nest(PREFIX, api)
}

/// The description of the routes for programs.
pub(crate) fn document() -> OpenApi {
    let (_, mut document) = routes().split_for_parts();
    describe(&mut document, "Clade job service");
    document
}

/// Adds to a description what all of them say.
pub(crate) fn describe(document: &mut OpenApi, title: &str) {
    let info = InfoBuilder::new()
        .title(title)
        .version(ENGINE_VERSION)
        .description(Some(
            "Runs Python programs in a sandbox and scores them. Errors are {\"error\": {\"code\", \"message\", \"advice\"}}.",
        ))
        .build();
    let key = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-API-Key")));
    let components = ComponentsBuilder::new().security_scheme("key", key).build();
    let more = OpenApiBuilder::new()
        .info(info.clone())
        .components(Some(components))
        .build();
    document.merge(more);
    document.info = info;
}

/// There is nothing at a path.
pub(crate) async fn no_route(uri: Uri) -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "unknown_route",
        format!("there is nothing at {}", uri.path()),
        "GET /api/v1/openapi.json lists the routes",
    )
}

/// A path does not take a method.
pub(crate) async fn wrong_method(uri: Uri) -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "wrong_method",
        format!("{} does not take this method", uri.path()),
        "GET /api/v1/openapi.json lists the routes with their methods",
    )
}

/// Counts requests by route and code.
async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    app.figures.exposition.count(request, next).await
}
