//! Results of statements.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{TryStreamExt, stream};

/// Rows of one statement, as they come.
pub struct QueryOutput {
    /// Columns.
    pub schema: SchemaRef,
    /// Rows.
    pub stream: SendableRecordBatchStream,
}

impl std::fmt::Debug for QueryOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryOutput")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl QueryOutput {
    /// Rows of a stream.
    pub fn of_stream(stream: SendableRecordBatchStream) -> Self {
        Self {
            schema: stream.schema(),
            stream,
        }
    }

    /// Rows that are here already.
    pub fn of_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let rows = stream::iter(batches.into_iter().map(Ok));
        Self {
            schema: Arc::clone(&schema),
            stream: Box::pin(RecordBatchStreamAdapter::new(schema, rows)),
        }
    }

    /// One batch of named columns.
    ///
    /// # Errors
    /// When the columns differ in length.
    pub fn of_columns(columns: Vec<(&str, ArrayRef)>) -> Result<Self> {
        let batch = RecordBatch::try_from_iter(columns)?;
        Ok(Self::of_batches(batch.schema(), vec![batch]))
    }

    /// A statement without rows.
    pub fn nothing() -> Self {
        Self::of_batches(Arc::new(Schema::empty()), Vec::new())
    }

    /// All rows.
    ///
    /// # Errors
    /// When the statement fails on the way.
    pub async fn collect(self) -> Result<Vec<RecordBatch>> {
        self.stream.try_collect().await
    }
}
