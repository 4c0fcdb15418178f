//! The row of `system.queries` that a statement leaves: written when its last row was read, when it fails, or when nobody reads on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use clade_catalog::{Rows, Snapshot, Txn, Value};
use datafusion::common::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::Stream;

use super::error::EngineError;
use super::open::Engine;
use crate::scheduler::fresh_id;

/// What is known of a statement that runs.
pub(super) struct QueryNote {
    engine: Arc<Engine>,
    sql: String,
    snapshot_id: i64,
    started_at: i64,
}

impl QueryNote {
    pub(super) fn new(engine: &Arc<Engine>, sql: String, snapshot: &Snapshot, started_at: i64) -> Self {
        Self {
            engine: Arc::clone(engine),
            sql,
            snapshot_id: snapshot.seq(),
            started_at,
        }
    }

    /// The rows of the statement; their end writes the note.
    pub(super) fn follow(self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        Box::pin(NotedRows {
            rows,
            count: 0,
            note: Some(self),
        })
    }

    /// The statement failed before its first row. Where the disk is full, its note would fail as well and say the same again.
    pub(super) fn failed(self, error: &EngineError) {
        if !error.is_disk_full() {
            self.write("failed", None, Some(error.to_string()));
        }
    }

    /// Writes behind the statement's back: nobody waits for it.
    fn write(self, status: &'static str, rows: Option<i64>, error: Option<String>) {
        let store = self.engine.store().clone();
        if store.is_read_only() {
            return;
        }
        let row = [
            ("query_id", Value::from(fresh_id())),
            ("sql", self.sql.as_str().into()),
            ("status", status.into()),
            ("error", error.into()),
            ("rows", rows.into()),
            ("snapshot_id", self.snapshot_id.into()),
            ("started_at", Value::Timestamp(self.started_at)),
            ("seconds", ((self.engine.now() - self.started_at) as f64 / 1e6).into()),
        ];
        let rows = Rows::new("system.queries").and_then(|mut rows| rows.push(row).map(|_| ()).map(|()| rows));
        self.engine.spawn_background(async move {
            let committed = match rows {
                Ok(rows) => {
                    let mut txn = Txn::new();
                    txn.append("system.queries", rows);
                    store.commit(txn).await.map(|_| ())
                }
                Err(error) => Err(error),
            };
            if let Err(error) = committed {
                tracing::warn!(%error, "the statement could not be noted in system.queries");
            }
        });
    }
}

/// Rows that are counted on their way.
struct NotedRows {
    rows: SendableRecordBatchStream,
    count: i64,
    note: Option<QueryNote>,
}

impl Stream for NotedRows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.rows.as_mut().poll_next(context));
        let count = self.count;
        match &next {
            Some(Ok(batch)) => self.count += i64::try_from(batch.num_rows()).unwrap_or(i64::MAX),
            Some(Err(error)) => {
                let error = error.to_string();
                if let Some(note) = self.note.take() {
                    note.write("failed", Some(count), Some(error));
                }
            }
            None => {
                if let Some(note) = self.note.take() {
                    note.write("done", Some(count), None);
                }
            }
        }
        Poll::Ready(next)
    }
}

impl RecordBatchStream for NotedRows {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

impl Drop for NotedRows {
    fn drop(&mut self) {
        if let Some(note) = self.note.take() {
            note.write("abandoned", Some(self.count), None);
        }
    }
}
