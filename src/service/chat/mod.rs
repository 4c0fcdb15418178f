//! Chat completions in the form of OpenAI, by the models of provider torch, so that other programs can use them.

mod answer;
mod body;
mod completions;
mod models;
mod stream;

use axum::Router;
use axum::routing::{get, post};

use super::api::App;

pub(super) use self::models::ChatModels;

/// The routes, where clients of OpenAI expect them.
pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*name}", get(models::show))
        .route("/v1/chat/completions", post(completions::complete))
}
