//! Decoded hot rows of one table: batches in commit order that grow with the table and are cut when it is flushed.

use std::sync::Arc;

use arrow::array::{AsArray, Int64Builder, RecordBatch, TimestampMicrosecondBuilder};
use arrow::compute::concat_batches;
use arrow::datatypes::{Int64Type, SchemaRef};

use super::codec::Decoder;
use crate::column::ColumnBuilder;
use crate::error::{Result, StoreError};
use crate::spec::TableSpec;

/// Batches are merged up to this size, which is what the query engine likes best.
const TARGET_ROWS: usize = 8192;

/// Decoded hot rows of one table, in commit order.
#[derive(Debug, Clone, Default)]
pub(crate) struct HotBatches {
    batches: Vec<RecordBatch>,
}

impl HotBatches {
    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    pub(crate) fn bytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }

    /// Adds newer rows. Neighbours of like size are merged, so that every row is copied a logarithmic number of times.
    pub(crate) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.batches.push(batch);
        let mut take = 1;
        let mut rows = self.batches.last().map_or(0, RecordBatch::num_rows);
        for older in self.batches.iter().rev().skip(1) {
            if older.num_rows() > 2 * rows || older.num_rows() + rows > TARGET_ROWS {
                break;
            }
            rows += older.num_rows();
            take += 1;
        }
        if take > 1 {
            let tail = self.batches.split_off(self.batches.len() - take);
            let merged = concat_batches(&tail[0].schema(), &tail).map_err(|source| StoreError::Arrow {
                context: "merge of hot rows".into(),
                source,
            })?;
            self.batches.push(merged);
        }
        Ok(())
    }

    /// Drops rows of commits up to `seq`.
    pub(crate) fn drop_through(&mut self, seq: i64) {
        self.batches.retain_mut(|batch| {
            let cut = rows_through(batch, seq);
            if cut > 0 {
                *batch = batch.slice(cut, batch.num_rows() - cut);
            }
            batch.num_rows() > 0
        });
    }

    /// The rows of commits up to `seq`.
    pub(crate) fn through(&self, seq: i64) -> Vec<RecordBatch> {
        self.batches
            .iter()
            .map(|batch| batch.slice(0, rows_through(batch, seq)))
            .filter(|batch| batch.num_rows() > 0)
            .collect()
    }
}

/// Number of leading rows of commits up to `seq`; rows are in commit order.
fn rows_through(batch: &RecordBatch, seq: i64) -> usize {
    // The full schema ends in `_seq`, `_committed_at`.
    let seqs = batch.column(batch.num_columns() - 2).as_primitive::<Int64Type>();
    seqs.values().partition_point(|s| *s <= seq)
}

/// Builds one batch of a table's full schema from blobs.
#[derive(Debug)]
pub(crate) struct HotBuilder {
    table: String,
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    seqs: Int64Builder,
    committed_at: TimestampMicrosecondBuilder,
    rows: usize,
}

impl HotBuilder {
    pub(crate) fn new(spec: &Arc<TableSpec>) -> Self {
        Self {
            table: spec.name.clone(),
            schema: spec.full_schema(),
            columns: spec
                .columns
                .iter()
                .map(|c| ColumnBuilder::new(c.column_type, 16))
                .collect(),
            seqs: Int64Builder::new(),
            committed_at: TimestampMicrosecondBuilder::new().with_timezone("UTC"),
            rows: 0,
        }
    }

    /// Adds the rows that a commit wrote.
    pub(crate) fn add(
        &mut self,
        decoder: &Decoder,
        seq: i64,
        committed_at: i64,
        rows: usize,
        blob: &[u8],
    ) -> Result<()> {
        decoder
            .decode(blob, rows, &mut self.columns)
            .ok_or_else(|| StoreError::Corrupt {
                subject: format!("commit {seq} of table {}", self.table),
                reason: "the hot rows cannot be decoded; restore the store's database from a backup".into(),
            })?;
        for _ in 0..rows {
            self.seqs.append_value(seq);
            self.committed_at.append_value(committed_at);
        }
        self.rows += rows;
        Ok(())
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn finish(&mut self) -> Result<RecordBatch> {
        let mut columns: Vec<_> = self.columns.iter_mut().map(ColumnBuilder::finish).collect();
        columns.push(Arc::new(self.seqs.finish()));
        columns.push(Arc::new(self.committed_at.finish()));
        self.rows = 0;
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(|source| StoreError::Arrow {
            context: format!("hot rows of table {}", self.table),
            source,
        })
    }
}
