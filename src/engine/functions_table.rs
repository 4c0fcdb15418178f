//! `system.functions`: every function a statement can call, with its documentation.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use clade_catalog::VirtualTable;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::Documentation;

use super::columns::texts;

/// The table.
#[derive(Debug)]
pub struct FunctionsTable(Vec<FunctionRow>);

#[derive(Debug)]
struct FunctionRow {
    name: String,
    kind: &'static str,
    syntax: Option<String>,
    description: Option<String>,
}

impl FunctionRow {
    fn new(name: &str, kind: &'static str, documentation: Option<&Documentation>) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            syntax: documentation.map(|doc| doc.syntax_example.clone()),
            description: documentation.map(|doc| doc.description.clone()),
        }
    }
}

impl FunctionsTable {
    /// Functions of a session state.
    pub fn new(state: &SessionState) -> Self {
        let mut rows: Vec<FunctionRow> = Vec::new();
        let scalar = state.scalar_functions().values();
        rows.extend(scalar.map(|udf| FunctionRow::new(udf.name(), "scalar", udf.documentation())));
        let aggregate = state.aggregate_functions().values();
        rows.extend(aggregate.map(|udf| FunctionRow::new(udf.name(), "aggregate", udf.documentation())));
        let window = state.window_functions().values();
        rows.extend(window.map(|udf| FunctionRow::new(udf.name(), "window", udf.documentation())));
        rows.extend(
            state
                .table_functions()
                .keys()
                .map(|name| FunctionRow::new(name, "table", None)),
        );
        rows.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
        // A function is listed under each of its aliases by the state; once is enough here.
        rows.dedup_by(|a, b| a.name == b.name && a.kind == b.kind);
        Self(rows)
    }
}

#[async_trait]
impl VirtualTable for FunctionsTable {
    fn name(&self) -> &str {
        "functions"
    }

    fn doc(&self) -> &str {
        "One row a function."
    }

    fn schema(&self) -> SchemaRef {
        let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
        Arc::new(Schema::new(vec![
            text("name", false),
            text("kind", false),
            text("syntax", true),
            text("description", true),
        ]))
    }

    fn column_docs(&self) -> &'static [&'static str] {
        &[
            "Name.",
            "scalar, aggregate, window or table.",
            "How it is called.",
            "What it gives.",
        ]
    }

    async fn rows(&self) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = vec![
            texts(self.0.iter().map(|row| Some(&row.name))),
            texts(self.0.iter().map(|row| Some(row.kind))),
            texts(self.0.iter().map(|row| row.syntax.as_ref())),
            texts(self.0.iter().map(|row| row.description.as_ref())),
        ];
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }
}
