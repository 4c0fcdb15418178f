//! Results of statements.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{TryStreamExt, stream};

use super::notice::Notice;

/// Rows of one statement, as they come.
pub struct QueryOutput {
    /// Columns.
    pub schema: SchemaRef,
    /// Rows.
    pub stream: SendableRecordBatchStream,
    /// What is to be said beside them.
    pub notices: Vec<Notice>,
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
            notices: Vec::new(),
        }
    }

    /// Rows that are here already.
    pub fn of_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let rows = stream::iter(batches.into_iter().map(Ok));
        Self {
            schema: Arc::clone(&schema),
            stream: Box::pin(RecordBatchStreamAdapter::new(schema, rows)),
            notices: Vec::new(),
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

    /// A statement without rows that says what it did.
    pub fn done(what: impl Into<String>) -> Self {
        Self::of_batches(Arc::new(Schema::empty()), Vec::new()).with(Notice::Info(what.into()))
    }

    /// The same with something to be said beside the rows.
    #[must_use]
    pub fn with(mut self, notice: Notice) -> Self {
        self.notices.push(notice);
        self
    }

    /// All rows.
    ///
    /// # Errors
    /// When the statement fails on the way.
    pub async fn collect(self) -> Result<Vec<RecordBatch>> {
        self.stream.try_collect().await
    }
}
