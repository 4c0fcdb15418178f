//! `system.models`: generators, where they come from, their prices, and until when they are paused.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use clade_catalog::{Store, VirtualTable};
use datafusion::common::{DataFusionError, Result};

use super::columns::{bools, floats, texts, timestamps};
use crate::model::{ModelEntry, ModelInfo, ModelOptions, ModelRegistry, Profile, Provider, TokenPrice};
use crate::scheduler::model_pauses;

/// The table.
#[derive(Debug)]
pub struct ModelsTable {
    models: ModelRegistry,
    store: Store,
}

impl ModelsTable {
    /// A table over the models of a session and the pauses noted in its store.
    pub fn new(models: ModelRegistry, store: Store) -> Self {
        Self { models, store }
    }
}

/// What a row shows.
struct ModelRow {
    entry: ModelEntry,
    info: Option<ModelInfo>,
    pause: Option<(i64, String)>,
}

impl ModelRow {
    fn price(&self, read: impl Fn(TokenPrice) -> Option<f64>) -> Option<f64> {
        self.info.as_ref()?.price.and_then(read)
    }
}

fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

#[async_trait]
impl VirtualTable for ModelsTable {
    fn name(&self) -> &str {
        "models"
    }

    fn doc(&self) -> &str {
        "One row a generator: built in, set up in the configuration, or made by CREATE MODEL."
    }

    fn schema(&self) -> SchemaRef {
        let text = |name: &str| Field::new(name, DataType::Utf8, true);
        let number = |name: &str| Field::new(name, DataType::Float64, true);
        Arc::new(Schema::new(vec![
            Field::new("name", DataType::Utf8, false),
            text("provider"),
            Field::new("origin", DataType::Utf8, false),
            Field::new("is_free", DataType::Boolean, true),
            number("usd_per_million_prompt_tokens"),
            number("usd_per_million_cached_prompt_tokens"),
            number("usd_per_million_completion_tokens"),
            number("usd_per_million_reasoning_tokens"),
            text("profile"),
            text("endpoint"),
            text("model"),
            text("api_key_env"),
            text("options"),
            Field::new("paused_until", timestamp(), true),
            text("pause_reason"),
            text("problem"),
            Field::new("created_at", timestamp(), true),
        ]))
    }

    fn column_docs(&self) -> &'static [&'static str] {
        &[
            "Name after USING MODEL.",
            "Kind of generator.",
            "Where it comes from: built-in, configuration or store.",
            "Whether it costs nothing.",
            "US dollars for a million prompt tokens; NULL is unknown.",
            "US dollars for a million prompt tokens that the service had in its cache; NULL is as the others.",
            "US dollars for a million completion tokens; NULL is unknown.",
            "US dollars for a million completion tokens that went into reasoning; NULL is as the others.",
            "Peculiarities of the service.",
            "Base URL of the service.",
            "Name of the model at the service.",
            "Variable that holds the API key.",
            "All options as JSON.",
            "Until when a process of this store sends nothing.",
            "Why nothing is sent.",
            "Why the model cannot be used.",
            "When CREATE MODEL made it.",
        ]
    }

    async fn rows(&self) -> Result<RecordBatch> {
        let failed = |error: crate::model::ModelError| DataFusionError::External(Box::new(error));
        let entries = self.models.entries().await.map_err(failed)?;
        let now = chrono::Utc::now().timestamp_micros();
        let noted = self.store.control_read(move |conn| model_pauses(conn, now)).await?;
        let mut noted: HashMap<String, (i64, String)> = noted
            .into_iter()
            .map(|(model, until, reason)| (model, (until, reason)))
            .collect();
        let rows: Vec<ModelRow> = entries
            .into_iter()
            .map(|entry| {
                let generator = entry.generator.as_ref().ok();
                let own = generator.and_then(|generator| generator.pause());
                let own = own.map(|pause| (pause.until.timestamp_micros(), pause.reason));
                ModelRow {
                    info: generator.map(|generator| generator.describe()),
                    pause: own.or(noted.remove(&entry.name)),
                    entry,
                }
            })
            .collect();
        let infos = rows.iter().map(|row| row.info.as_ref());
        let options = rows.iter().map(|row| row.entry.options.as_ref());
        let pauses = rows.iter().map(|row| row.pause.as_ref());
        let prices = |read: fn(TokenPrice) -> Option<f64>| floats(rows.iter().map(|row| row.price(read)));
        let columns: Vec<ArrayRef> = vec![
            texts(rows.iter().map(|row| Some(&row.entry.name))),
            texts(infos.clone().map(|info| info.map(|info| &info.provider))),
            texts(rows.iter().map(|row| Some(row.entry.origin.as_str()))),
            bools(infos.map(|info| info.map(|info| info.free))),
            prices(|price| Some(price.prompt_usd_per_million)),
            prices(|price| price.cached_prompt_usd_per_million),
            prices(|price| Some(price.completion_usd_per_million)),
            prices(|price| price.reasoning_usd_per_million),
            texts(options.clone().map(|options| {
                let options = options.filter(|options| options.provider == Provider::Openai)?;
                Some(options.profile.as_deref().unwrap_or(Profile::DEFAULT))
            })),
            texts(options.clone().map(|options| {
                Some(
                    options
                        .filter(|options| options.provider == Provider::Openai)?
                        .endpoint()
                        .ok()?
                        .to_string(),
                )
            })),
            texts(options.clone().map(|options| options?.model.as_deref())),
            texts(
                options
                    .clone()
                    .map(|options| options.and_then(ModelOptions::key_variable)),
            ),
            texts(options.map(|options| options.map(ModelOptions::to_json))),
            timestamps(pauses.clone().map(|pause| pause.map(|(until, _)| *until))),
            texts(pauses.map(|pause| pause.map(|(_, reason)| reason))),
            texts(
                rows.iter()
                    .map(|row| row.entry.generator.as_ref().err().map(ToString::to_string)),
            ),
            timestamps(rows.iter().map(|row| row.entry.created_at)),
        ];
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }
}
