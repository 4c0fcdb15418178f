//! Which models there are, and keeping those in memory that were asked.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use clade_lm_api::messages::Load;
use parking_lot::Mutex;
use serde::Serialize;

use crate::model::torch::{LoadedModel, load};
use crate::model::{ModelEntry, ModelRegistry, Provider};
use crate::service::access::Caller;
use crate::service::api::{ApiError, App};

/// Models that were asked, by name. They stay in memory until their definition changes or the server ends.
#[derive(Debug, Default)]
pub struct ChatModels {
    kept: Mutex<HashMap<String, (Load, Arc<LoadedModel>)>>,
}

/// A model as it is listed.
#[derive(Debug, Serialize)]
pub(super) struct ModelObject {
    id: String,
    object: &'static str,
    created: i64,
    owned_by: &'static str,
}

/// A list of models.
#[derive(Debug, Serialize)]
pub(super) struct ModelList {
    object: &'static str,
    data: Vec<ModelObject>,
}

/// Lists the models.
pub(super) async fn list(State(app): State<App>, _caller: Caller) -> Result<Json<ModelList>, ApiError> {
    let entries = entries(&app.services.models).await?;
    Ok(Json(ModelList {
        object: "list",
        data: entries.into_iter().map(|entry| object(&entry)).collect(),
    }))
}

/// Shows a model.
pub(super) async fn show(
    State(app): State<App>,
    _caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ModelObject>, ApiError> {
    Ok(Json(object(&entry(&app.services.models, &name).await?)))
}

fn object(entry: &ModelEntry) -> ModelObject {
    ModelObject {
        id: entry.name.clone(),
        object: "model",
        created: entry.created_at.unwrap_or_default() / 1_000_000,
        owned_by: "clade",
    }
}

async fn entries(models: &ModelRegistry) -> Result<Vec<ModelEntry>, ApiError> {
    let entries = models.entries().await.map_err(|error| unusable(error.to_string()))?;
    let is_ours = |entry: &ModelEntry| {
        let options = entry.options.as_ref();
        options.is_some_and(|options| options.provider == Provider::Torch)
    };
    Ok(entries.into_iter().filter(is_ours).collect())
}

async fn entry(models: &ModelRegistry, name: &str) -> Result<ModelEntry, ApiError> {
    let entries = entries(models).await?;
    let known = entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>();
    let known = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    };
    let found = entries.into_iter().find(|entry| entry.name == name);
    found.ok_or_else(|| {
        ApiError::new(
            StatusCode::NOT_FOUND,
            "model_not_found",
            format!("there is no model '{name}' with provider torch; there are: {known}"),
            "CREATE MODEL name OPTIONS (provider 'torch', path '…') makes one",
        )
    })
}

impl ChatModels {
    /// The model of a name, which is loaded for its first request.
    pub(super) async fn get(&self, models: &ModelRegistry, name: &str) -> Result<Arc<LoadedModel>, ApiError> {
        let entry = entry(models, name).await?;
        let Some(request) = entry.options.map(|options| options.load()) else {
            return Err(unusable(format!("model '{name}' has no options")));
        };
        if let Some((known, model)) = self.kept.lock().get(name)
            && *known == request
        {
            return Ok(Arc::clone(model));
        }
        let loaded = load(&request, |_| {}).await;
        let model = loaded.map_err(|error| unusable(format!("model '{name}' cannot be used: {error}")))?;
        self.kept.lock().insert(name.to_owned(), (request, Arc::clone(&model)));
        Ok(model)
    }
}

fn unusable(message: String) -> ApiError {
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "model_unusable",
        message,
        "put it right on the server; `clade model show` and `clade model info` tell more",
    )
}
