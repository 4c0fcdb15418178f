//! `system.models`: generators and their prices.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use clade_catalog::VirtualTable;
use datafusion::common::Result;

use super::columns::{bools, floats, texts};
use crate::model::{ModelInfo, ModelRegistry};

/// The table.
#[derive(Debug)]
pub struct ModelsTable(pub ModelRegistry);

#[async_trait]
impl VirtualTable for ModelsTable {
    fn name(&self) -> &str {
        "models"
    }

    fn doc(&self) -> &str {
        "One row a generator."
    }

    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("name", DataType::Utf8, false),
            Field::new("provider", DataType::Utf8, false),
            Field::new("is_free", DataType::Boolean, false),
            Field::new("usd_per_million_prompt_tokens", DataType::Float64, true),
            Field::new("usd_per_million_completion_tokens", DataType::Float64, true),
        ]))
    }

    fn column_docs(&self) -> &'static [&'static str] {
        &[
            "Name after USING MODEL.",
            "Kind of generator.",
            "Whether it costs nothing.",
            "US dollars for a million prompt tokens; NULL is unknown.",
            "US dollars for a million completion tokens; NULL is unknown.",
        ]
    }

    async fn rows(&self) -> Result<RecordBatch> {
        let models: Vec<(String, ModelInfo)> = self
            .0
            .generators()
            .map(|model| (model.name().to_owned(), model.describe()))
            .collect();
        let prices = models.iter().map(|(_, info)| info.price);
        let columns: Vec<ArrayRef> = vec![
            texts(models.iter().map(|(name, _)| Some(name))),
            texts(models.iter().map(|(_, info)| Some(&info.provider))),
            bools(models.iter().map(|(_, info)| info.free)),
            floats(
                prices
                    .clone()
                    .map(|price| price.map(|price| price.prompt_usd_per_million)),
            ),
            floats(prices.map(|price| price.map(|price| price.completion_usd_per_million))),
        ];
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }
}
