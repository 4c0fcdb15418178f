//! `system.storage` and `system.budgets`: what the store's database knows, as tables.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::common::Result;
use rusqlite::{Connection, Row};

use super::virtual_table::VirtualTable;
use crate::store::Store;
use crate::store::database::TABLE_MASK;

/// `system.storage`.
#[derive(Debug)]
pub(crate) struct Storage(pub(crate) Store);

#[async_trait]
impl VirtualTable for Storage {
    fn name(&self) -> &str {
        "storage"
    }

    fn doc(&self) -> &str {
        "One row a stored table: its rows and bytes in the hot and the cold tier."
    }

    fn schema(&self) -> SchemaRef {
        let int = |name: &str| Field::new(name, DataType::Int64, true);
        Arc::new(Schema::new(vec![
            Field::new("table_name", DataType::Utf8, false),
            int("hot_rows"),
            int("hot_bytes"),
            int("cold_files"),
            int("cold_rows"),
            int("cold_bytes"),
            int("replaced_files"),
            int("flushed_seq"),
            int("delta_version"),
            int("checkpoint_version"),
        ]))
    }

    fn column_docs(&self) -> &'static [&'static str] {
        &[
            "Stored table, with its schema.",
            "Rows in the hot tier, that of the database.",
            "Bytes of those rows.",
            "Parquet files of the cold tier that are read.",
            "Rows in them.",
            "Bytes of them.",
            "Files that a compaction has replaced and that wait for their removal.",
            "Commit up to which all rows are in the cold tier.",
            "Version of the Delta table.",
            "Version of its newest checkpoint.",
        ]
    }

    async fn rows(&self) -> Result<RecordBatch> {
        let read = |connection: &Connection| {
            let mut query = connection.prepare_cached(
                "SELECT name, coalesce(h.rows, 0), coalesce(h.bytes, 0), coalesce(c.files, 0), coalesce(c.rows, 0), \
                 coalesce(c.bytes, 0), coalesce(c.replaced, 0), flushed_seq, delta_version, checkpointed FROM tables \
                 LEFT JOIN (SELECT id & ?1 AS table_no, sum(rows) AS rows, sum(length(data)) AS bytes FROM hot GROUP BY 1) h \
                 USING (table_no) LEFT JOIN (SELECT table_no, count(*) FILTER (WHERE removed_at IS NULL) AS files, \
                 sum(rows) FILTER (WHERE removed_at IS NULL) AS rows, sum(bytes) FILTER (WHERE removed_at IS NULL) AS bytes, \
                 count(removed_at) AS replaced FROM cold_files GROUP BY 1) c USING (table_no) ORDER BY name",
            )?;
            let rows = query.query_map([TABLE_MASK], |row| Ok((row.get::<_, String>(0)?, ints::<9>(row, 1)?)))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let rows = self.0.control_read(read).await?;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from_iter_values(
            rows.iter().map(|(name, _)| name),
        ))];
        for index in 0..9 {
            columns.push(Arc::new(Int64Array::from_iter(
                rows.iter().map(|(_, ints)| ints[index]),
            )));
        }
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }
}

fn ints<const N: usize>(row: &Row<'_>, from: usize) -> rusqlite::Result<[Option<i64>; N]> {
    let mut ints = [None; N];
    for (index, int) in ints.iter_mut().enumerate() {
        *int = row.get(from + index)?;
    }
    Ok(ints)
}

/// `system.budgets`.
#[derive(Debug)]
pub(crate) struct Budgets(pub(crate) Store);

#[async_trait]
impl VirtualTable for Budgets {
    fn name(&self) -> &str {
        "budgets"
    }

    fn doc(&self) -> &str {
        "One row a budget: what may be spent, what is spent, what is reserved for work under way."
    }

    fn schema(&self) -> SchemaRef {
        let text = |name: &str| Field::new(name, DataType::Utf8, false);
        let float = |name: &str| Field::new(name, DataType::Float64, name == "limit");
        Arc::new(Schema::new(vec![
            text("scope"),
            text("resource"),
            float("limit"),
            float("spent"),
            float("reserved"),
        ]))
    }

    fn column_docs(&self) -> &'static [&'static str] {
        &[
            "Run or statement that the budget belongs to.",
            "What is limited: steps, tokens, cost_usd, jobs or a kind of seconds.",
            "What may be spent; NULL is no limit.",
            "What is spent.",
            "What work under way may still spend.",
        ]
    }

    async fn rows(&self) -> Result<RecordBatch> {
        type Budget = (String, String, Option<f64>, f64, f64);
        let read = |connection: &Connection| {
            let mut query = connection.prepare_cached(
                "SELECT scope, resource, \"limit\", spent, reserved FROM budgets ORDER BY scope, resource",
            )?;
            let rows = query.query_map([], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            })?;
            rows.collect::<rusqlite::Result<Vec<Budget>>>()
        };
        let rows = self.0.control_read(read).await?;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.0))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.1))),
            Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.2))),
            Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.3))),
            Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.4))),
        ];
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }
}
