//! What an EXPAND hands to the scheduler, and what it gets back.

use std::fmt::Debug;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};

use crate::dialect::ExpandClause;
use crate::operators::Operator;

/// One input row.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpandInput {
    /// Position among the input rows, from 0; part of the attempt's id.
    pub ordinal: usize,
    /// Operator: the row's own, else the clause's.
    pub operator: Operator,
    /// Task; always there for a draft, else the parent's task when `None`.
    pub task_id: Option<String>,
    /// First parent; there for every operator but draft.
    pub parent_id: Option<String>,
    /// Second parent; there for crossover and nothing else.
    pub parent2_id: Option<String>,
    /// Seed of the row's attempts.
    pub seed: Option<u64>,
    /// Weight with which the query chose the row; it decides nothing here.
    pub weight: Option<f64>,
}

/// A statement to expand.
#[derive(Debug)]
pub struct ExpandRequest {
    /// The rows, complete and checked against their operators; whether the nodes exist is for the handler to check.
    pub rows: Vec<ExpandInput>,
    /// Operator, options, model, sandbox.
    pub clause: ExpandClause,
    /// Session of the statement; its extensions hold the pinned snapshot.
    pub context: Arc<TaskContext>,
}

/// The scheduler behind an EXPAND.
#[async_trait]
pub trait ExpandHandler: Debug + Send + Sync {
    /// Write the attempts down, run them, and stream one row of [`result_schema`] as each ends.
    ///
    /// It is called with no rows as well, so that a statement run again under its id can resume. With `ASYNC` it
    /// returns the planned attempts at once. Dropping the stream does not cancel the attempts.
    async fn expand(&self, request: ExpandRequest) -> Result<SendableRecordBatchStream>;

    /// Say what [`ExpandHandler::expand`] would do, one row of [`explain_schema`] for each input row; runs nothing.
    async fn explain(&self, request: ExpandRequest) -> Result<SendableRecordBatchStream>;
}

/// Holder of the handler in a session's configuration.
#[derive(Debug, Clone)]
pub struct ExpandHandlerHandle(pub Arc<dyn ExpandHandler>);

fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Columns of an EXPAND's result: one row an attempt.
pub fn result_schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        Arc::new(Schema::new(vec![
            Field::new("attempt_id", DataType::Utf8, false),
            Field::new("node_id", DataType::Utf8, true),
            Field::new("operator", DataType::Utf8, false),
            Field::new("parent_id", DataType::Utf8, true),
            Field::new("parent2_id", DataType::Utf8, true),
            Field::new("status", DataType::Utf8, false),
            Field::new("score", DataType::Float64, true),
            Field::new("delta_vs_parent", DataType::Float64, true),
            Field::new("error_class", DataType::Utf8, true),
            Field::new("error", DataType::Utf8, true),
            Field::new("tokens_prompt", DataType::Int64, true),
            Field::new("tokens_completion", DataType::Int64, true),
            Field::new("cost_usd", DataType::Float64, true),
            Field::new("queued_at", timestamp(), false),
            Field::new("started_at", timestamp(), true),
            Field::new("finished_at", timestamp(), true),
        ]))
    });
    Arc::clone(&SCHEMA)
}

/// Columns of `EXPLAIN query EXPAND WITH …`: one row an input row; estimates are per attempt and come from history. The bytes of weights
/// and cache are there for a model that runs in this process.
pub fn explain_schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        Arc::new(Schema::new(vec![
            Field::new("ordinal", DataType::Int64, false),
            Field::new("operator", DataType::Utf8, false),
            Field::new("task_id", DataType::Utf8, true),
            Field::new("parent_id", DataType::Utf8, true),
            Field::new("parent2_id", DataType::Utf8, true),
            Field::new("samples", DataType::Int64, false),
            Field::new("prompt_bytes", DataType::Int64, true),
            Field::new("tokens_prompt", DataType::Int64, true),
            Field::new("tokens_completion", DataType::Int64, true),
            Field::new("cost_usd", DataType::Float64, true),
            Field::new("model_seconds", DataType::Float64, true),
            Field::new("sandbox_seconds", DataType::Float64, true),
            Field::new("tokens_per_second", DataType::Float64, true),
            Field::new("weight_bytes", DataType::Int64, true),
            Field::new("cache_bytes", DataType::Int64, true),
            Field::new("note", DataType::Utf8, true),
        ]))
    });
    Arc::clone(&SCHEMA)
}
