//! Scans that keep the cold rows they read decoded in memory, for queries that are asked again and again.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::concat;
use arrow::datatypes::Int64Type;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::collect;

use super::repeated::RepeatedQueries;
use super::scan::TableScan;
use crate::cold::file::ColdFile;
use crate::spec::ColumnType;

/// Bytes of a decoded text, roughly, before it is known.
const TEXT_BYTES: usize = 64;
/// Bytes of a decoded list, roughly.
const LIST_BYTES: usize = 128;
/// Bytes of a decoded number.
const NUMBER_BYTES: usize = 8;

impl TableScan<'_> {
    /// The rows of cold files up to the snapshot, in commit order; `None` when they are to be read from the files.
    pub(super) async fn decoded(&self, files: &[Arc<ColdFile>]) -> Result<Option<Vec<RecordBatch>>> {
        if self.config.get_extension::<RepeatedQueries>().is_none() || !self.fits(files) {
            return Ok(None);
        }
        let mut batches = Vec::with_capacity(files.len());
        for file in files {
            batches.push(self.decoded_file(file).await?);
        }
        Ok(Some(batches))
    }

    fn fits(&self, files: &[Arc<ColdFile>]) -> bool {
        let width = self.projection.iter().map(|index| match self.spec.columns.get(*index) {
            Some(column) if column.long => None,
            Some(column) if column.column_type == ColumnType::Text => Some(TEXT_BYTES),
            Some(column) if column.column_type == ColumnType::List => Some(LIST_BYTES),
            _ => Some(NUMBER_BYTES),
        });
        let Some(width) = width.sum::<Option<usize>>() else {
            return false;
        };
        let rows: u64 = files.iter().map(|file| file.rows).sum();
        // Half of the memory at most, so that one statement's columns do not drive each other out.
        usize::try_from(rows).is_ok_and(|rows| rows.saturating_mul(width) <= self.columns.limit() / 2)
    }

    async fn decoded_file(&self, file: &Arc<ColdFile>) -> Result<RecordBatch> {
        let mut wanted = self.projection.clone();
        let is_cut = file.max_seq > self.seq;
        if is_cut {
            wanted.push(self.spec.seq_index());
        }
        let mut columns = self.columns_of(file, &wanted).await?;
        let mut rows = usize::try_from(file.rows).unwrap_or(usize::MAX);
        if is_cut {
            // Rows lie in commit order.
            let seqs = columns.pop();
            rows = seqs.map_or(0, |seqs| {
                let seqs = seqs.as_primitive::<Int64Type>().values();
                seqs.partition_point(|seq| *seq <= self.seq)
            });
            columns = columns.iter().map(|column| column.slice(0, rows)).collect();
        }
        let schema = Arc::new(self.spec.full_schema().project(&self.projection)?);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    /// Columns of a file, from memory where they are.
    async fn columns_of(&self, file: &Arc<ColdFile>, wanted: &[usize]) -> Result<Vec<ArrayRef>> {
        let at_hand = |index: &usize| self.columns.get(&file.path, *index);
        if let Some(columns) = wanted.iter().map(at_hand).collect() {
            return Ok(columns);
        }
        let _one = self.columns.decoding.lock().await;
        let mut columns: Vec<Option<ArrayRef>> = wanted.iter().map(at_hand).collect();
        let mut missing: Vec<usize> = Vec::new();
        for (index, column) in wanted.iter().zip(&columns) {
            if column.is_none() && !missing.contains(index) {
                missing.push(*index);
            }
        }
        let plan = self.files(std::slice::from_ref(file), missing.clone(), None, 1, None)?;
        let context = TaskContext::default()
            .with_session_config(self.config.clone())
            .with_runtime(Arc::clone(self.runtime));
        let batches = collect(plan, Arc::new(context)).await?;
        for (place, index) in missing.iter().enumerate() {
            let parts: Vec<&dyn arrow::array::Array> =
                batches.iter().map(|batch| batch.column(place).as_ref()).collect();
            let values = match parts.is_empty() {
                true => arrow::array::new_empty_array(self.spec.full_schema().field(*index).data_type()),
                false => concat(&parts)?,
            };
            for (_, column) in wanted.iter().zip(&mut columns).filter(|(wanted, _)| *wanted == index) {
                *column = Some(Arc::clone(&values));
            }
            self.columns.put(&file.path, *index, values);
        }
        Ok(columns.into_iter().flatten().collect())
    }
}
