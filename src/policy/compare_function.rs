//! The table function `policy_compare`: several policies on one run, one row a step and policy.

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

use super::arguments::Call;
use super::compare::{Choice, ComparedStep, PolicyView, compare_step};
use super::error::PolicyError;
use super::payoff::Payoffs;
use super::trace::PolicyHistory;

/// `policy_compare(['policy', …], 'run')`: one row a step that the run drew and policy, with what the policy makes of it.
#[derive(Debug)]
pub struct PolicyCompare {
    history: Arc<dyn PolicyHistory>,
}

impl PolicyCompare {
    /// The function over a record of runs.
    pub fn new(history: Arc<dyn PolicyHistory>) -> Self {
        Self { history }
    }
}

/// Columns of `policy_compare`.
pub fn compare_schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let parents = || DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
        Arc::new(Schema::new(vec![
            Field::new("step", DataType::Int64, false),
            Field::new("attempt_id", DataType::Utf8, false),
            Field::new("snapshot_id", DataType::Int64, false),
            Field::new("operator", DataType::Utf8, false),
            Field::new("parents", parents(), false),
            Field::new("payoff", DataType::Float64, true),
            Field::new("policy", DataType::Utf8, false),
            Field::new("probability", DataType::Float64, false),
            Field::new("parent_probability", DataType::Float64, true),
            Field::new("top_operator", DataType::Utf8, true),
            Field::new("top_parents", parents(), false),
            Field::new("top_probability", DataType::Float64, false),
            Field::new("top_payoff", DataType::Float64, true),
            Field::new("drawn_operator", DataType::Utf8, true),
            Field::new("drawn_parents", parents(), false),
            Field::new("agrees", DataType::Boolean, false),
            Field::new("agreement", DataType::Float64, false),
        ]))
    });
    Arc::clone(&SCHEMA)
}

impl TableFunctionImpl for PolicyCompare {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let call = Call {
            syntax: "policy_compare(['policy', …], 'run')",
            arguments: args.exprs(),
        };
        let (policies, run_id) = call.both("the policies' names")?;
        let comparison = Comparison {
            history: Arc::clone(&self.history),
            policies: call.policies(policies)?.into(),
            run_id: call.text(run_id, "run's id")?,
        };
        Ok(Arc::new(StreamingTable::try_new(
            compare_schema(),
            vec![Arc::new(comparison)],
        )?))
    }
}

/// The rows of one call, made as they are read.
#[derive(Debug)]
struct Comparison {
    history: Arc<dyn PolicyHistory>,
    policies: Arc<[String]>,
    run_id: String,
}

impl PartitionStream for Comparison {
    fn schema(&self) -> &SchemaRef {
        static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(compare_schema);
        &SCHEMA
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (history, policies, name) = (
            Arc::clone(&self.history),
            Arc::clone(&self.policies),
            self.run_id.clone(),
        );
        let steps = async move {
            let run_id = history.run_id(&name).await?;
            let steps = history.steps(&run_id).await?;
            let payoffs = Arc::new(Payoffs::new(history.nodes(&run_id).await?));
            Ok::<_, PolicyError>(stream::iter(steps).map(Ok).and_then(move |step| {
                let (history, policies) = (Arc::clone(&history), Arc::clone(&policies));
                let (payoffs, run_id) = (Arc::clone(&payoffs), run_id.clone());
                async move { batch(&compare_step(history.as_ref(), &policies, &run_id, &payoffs, step).await?) }
            }))
        };
        let batches = stream::once(steps).try_flatten().map_err(Into::into);
        Box::pin(RecordBatchStreamAdapter::new(compare_schema(), batches))
    }
}

/// The rows of one step, a policy each.
fn batch(step: &ComparedStep) -> Result<RecordBatch, PolicyError> {
    let views = || step.views.iter();
    let repeated = |text: &str| Arc::new(StringArray::from_iter_values(views().map(|_| text))) as ArrayRef;
    let count = |number: i64| Arc::new(Int64Array::from_iter_values(views().map(|_| number))) as ArrayRef;
    let number =
        |value: &dyn Fn(&PolicyView) -> Option<f64>| Arc::new(views().map(value).collect::<Float64Array>()) as ArrayRef;
    let parents = |choice: &dyn Fn(&PolicyView) -> Option<Choice>| {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for view in views() {
            let parents = choice(view).map(|choice| choice.parents).unwrap_or_default();
            lists.append_value(parents.iter().map(Some));
        }
        Arc::new(lists.finish()) as ArrayRef
    };
    let operator = |choice: &dyn Fn(&PolicyView) -> Option<Choice>| {
        let names = views().map(|view| choice(view).map(|choice| choice.operator.as_str()));
        Arc::new(names.collect::<StringArray>()) as ArrayRef
    };
    let (top, drawn) = (
        |view: &PolicyView| view.top.clone(),
        |view: &PolicyView| view.drawn.clone(),
    );
    let columns = vec![
        count(step.step),
        repeated(&step.attempt_id),
        count(step.snapshot_id),
        repeated(step.taken.operator.as_str()),
        parents(&|_| Some(step.taken.clone())),
        number(&|_| step.payoff),
        Arc::new(StringArray::from_iter_values(views().map(|view| &view.policy))),
        number(&|view| Some(view.probability)),
        number(&|view| view.parent_probability),
        operator(&top),
        parents(&top),
        number(&|view| Some(view.top_probability)),
        number(&|view| view.top_payoff),
        operator(&drawn),
        parents(&drawn),
        Arc::new(BooleanArray::from_iter(views().map(|view| Some(step.agrees(view))))),
        number(&|view| Some(step.agreement(view))),
    ];
    RecordBatch::try_new(compare_schema(), columns).map_err(|error| PolicyError::Query(error.into()))
}
