//! `system.settings`: the configuration with the origin of every value, secrets redacted.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use clade_catalog::VirtualTable;
use datafusion::common::Result;

use super::columns::texts;
use crate::config::{Entry, Loaded};

/// The table.
#[derive(Debug)]
pub struct SettingsTable(Vec<Entry>);

impl SettingsTable {
    /// Settings of a loaded configuration.
    pub fn new(loaded: &Loaded) -> Self {
        Self(loaded.entries())
    }
}

#[async_trait]
impl VirtualTable for SettingsTable {
    fn name(&self) -> &str {
        "settings"
    }

    fn doc(&self) -> &str {
        "One row a setting, with where its value came from."
    }

    fn schema(&self) -> SchemaRef {
        let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
        Arc::new(Schema::new(vec![
            text("name", false),
            text("value", true),
            text("origin", true),
            text("variable", false),
        ]))
    }

    fn column_docs(&self) -> &'static [&'static str] {
        &[
            "Key of the configuration.",
            "Value; secrets are left out.",
            "Where the value comes from.",
            "Environment variable that sets it.",
        ]
    }

    async fn rows(&self) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = vec![
            texts(self.0.iter().map(|entry| Some(&entry.key))),
            texts(self.0.iter().map(|entry| entry.value.as_ref())),
            texts(self.0.iter().map(|entry| entry.origin.as_ref())),
            texts(self.0.iter().map(|entry| Some(entry.variable()))),
        ];
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }
}
