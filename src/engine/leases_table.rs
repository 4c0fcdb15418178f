//! `sandbox.leases`: who works on what, and until when.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use clade_catalog::{Store, VirtualTable};
use datafusion::common::Result;

use super::columns::{bools, ints, texts, timestamps};
use crate::scheduler::{LeaseRow, leases};

/// The table.
#[derive(Debug)]
pub struct LeasesTable(pub Store);

#[async_trait]
impl VirtualTable for LeasesTable {
    fn name(&self) -> &str {
        "leases"
    }

    fn doc(&self) -> &str {
        "One row a run or suite that is being conducted and one row an attempt in flight or waiting."
    }

    fn schema(&self) -> SchemaRef {
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        Arc::new(Schema::new(vec![
            Field::new("kind", DataType::Utf8, false),
            Field::new("id", DataType::Utf8, false),
            Field::new("run_id", DataType::Utf8, true),
            Field::new("state", DataType::Utf8, false),
            Field::new("owner", DataType::Utf8, true),
            Field::new("lease_until", timestamp, true),
            Field::new("tries", DataType::Int64, false),
            Field::new("is_live", DataType::Boolean, false),
        ]))
    }

    fn column_docs(&self) -> &'static [&'static str] {
        &[
            "run, suite or attempt.",
            "Run, suite/NAME or attempt that is worked on.",
            "Run that it belongs to.",
            "State in the queue.",
            "Process that works on it; NULL when none does.",
            "Time until which that process may be silent.",
            "Times it was begun.",
            "Whether a living process holds it.",
        ]
    }

    async fn rows(&self) -> Result<RecordBatch> {
        let rows: Vec<LeaseRow> = self.0.control_read(leases).await?;
        let columns: Vec<ArrayRef> = vec![
            texts(rows.iter().map(|row| Some(row.kind))),
            texts(rows.iter().map(|row| Some(&row.id))),
            texts(rows.iter().map(|row| row.run_id.as_ref())),
            texts(rows.iter().map(|row| Some(&row.state))),
            texts(rows.iter().map(|row| row.owner.as_ref())),
            timestamps(rows.iter().map(|row| row.lease_until)),
            ints(rows.iter().map(|row| Some(row.tries))),
            bools(rows.iter().map(|row| row.is_live)),
        ];
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }
}
