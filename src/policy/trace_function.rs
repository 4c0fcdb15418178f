//! The table function `policy_trace`: one policy on one run, step by step.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::{StreamExt, TryStreamExt, stream};

use crate::operators::Operator;

use super::arguments::Call;
use super::error::PolicyError;
use super::trace::{PolicyHistory, TraceRow, trace_step};

/// `policy_trace('policy', 'run')`: one row a step that the run drew, with what the policy would have drawn.
#[derive(Debug)]
pub struct PolicyTrace {
    history: Arc<dyn PolicyHistory>,
}

impl PolicyTrace {
    /// The function over a record of runs.
    pub fn new(history: Arc<dyn PolicyHistory>) -> Self {
        Self { history }
    }
}

/// Columns of `policy_trace`.
pub fn trace_schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let parents = || DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
        Arc::new(Schema::new(vec![
            Field::new("step", DataType::Int64, false),
            Field::new("attempt_id", DataType::Utf8, false),
            Field::new("snapshot_id", DataType::Int64, false),
            Field::new("operator", DataType::Utf8, false),
            Field::new("parents", parents(), false),
            Field::new("probability", DataType::Float64, false),
            Field::new("drawn_operator", DataType::Utf8, true),
            Field::new("drawn_parents", parents(), false),
            Field::new("agrees", DataType::Boolean, false),
            Field::new("candidates", DataType::Int64, false),
        ]))
    });
    Arc::clone(&SCHEMA)
}

impl TableFunctionImpl for PolicyTrace {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let call = Call {
            syntax: "policy_trace('policy', 'run')",
            arguments: args.exprs(),
        };
        let (policy, run_id) = call.both("the policy's name")?;
        let replay = Replay {
            history: Arc::clone(&self.history),
            policy: call.text(policy, "policy's name")?,
            run_id: call.text(run_id, "run's id")?,
        };
        Ok(Arc::new(StreamingTable::try_new(
            trace_schema(),
            vec![Arc::new(replay)],
        )?))
    }
}

/// The rows of one call, made as they are read.
#[derive(Debug)]
struct Replay {
    history: Arc<dyn PolicyHistory>,
    policy: String,
    run_id: String,
}

impl PartitionStream for Replay {
    fn schema(&self) -> &SchemaRef {
        static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(trace_schema);
        &SCHEMA
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (history, policy, name) = (Arc::clone(&self.history), self.policy.clone(), self.run_id.clone());
        let steps = async move {
            let run_id = history.run_id(&name).await?;
            let steps = history.steps(&run_id).await?;
            Ok::<_, PolicyError>(stream::iter(steps).map(Ok).and_then(move |step| {
                let (history, policy, run_id) = (Arc::clone(&history), policy.clone(), run_id.clone());
                async move { batch(&trace_step(history.as_ref(), &policy, &run_id, step).await?) }
            }))
        };
        let batches = stream::once(steps).try_flatten().map_err(Into::into);
        Box::pin(RecordBatchStreamAdapter::new(trace_schema(), batches))
    }
}

/// One row as a batch.
fn batch(row: &TraceRow) -> Result<RecordBatch, PolicyError> {
    let list = |parents: &[String]| {
        let mut builder = ListBuilder::new(StringBuilder::new());
        builder.append_value(parents.iter().map(Some));
        Arc::new(builder.finish()) as ArrayRef
    };
    let whole = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![row.step])),
        Arc::new(StringArray::from(vec![row.attempt_id.as_str()])),
        Arc::new(Int64Array::from(vec![row.snapshot_id])),
        Arc::new(StringArray::from(vec![row.operator.as_str()])),
        list(&row.parents),
        Arc::new(Float64Array::from(vec![row.probability])),
        Arc::new(StringArray::from(vec![row.drawn_operator.map(Operator::as_str)])),
        list(&row.drawn_parents),
        Arc::new(BooleanArray::from(vec![row.agrees()])),
        Arc::new(Int64Array::from(vec![whole(row.candidates)])),
    ];
    RecordBatch::try_new(trace_schema(), columns).map_err(|error| PolicyError::Query(error.into()))
}
