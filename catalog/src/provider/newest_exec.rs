//! Physical node that keeps the newest version of each key.

use std::fmt;
use std::sync::Arc;

use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt, stream};

use crate::newest::Newest;

/// Keeps, of all rows of its input, the newest version of each key, and of its columns the first ones.
#[derive(Debug)]
pub(crate) struct NewestExec {
    input: Arc<dyn ExecutionPlan>,
    key: Vec<usize>,
    seq: usize,
    columns: usize,
    properties: Arc<PlanProperties>,
}

impl NewestExec {
    /// `key` and `seq` are columns of the input; the first `columns` columns come out.
    pub(crate) fn try_new(
        input: Arc<dyn ExecutionPlan>,
        key: Vec<usize>,
        seq: usize,
        columns: usize,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input: Arc<dyn ExecutionPlan> = match input.output_partitioning().partition_count() {
            1 => input,
            _ => Arc::new(CoalescePartitionsExec::new(input)),
        };
        let kept: Vec<usize> = (0..columns).collect();
        let schema: SchemaRef = Arc::new(input.schema().project(&kept)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(Arc::new(Self {
            input,
            key,
            seq,
            columns,
            properties: Arc::new(properties),
        }))
    }
}

impl DisplayAs for NewestExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.input.schema();
        let key: Vec<&str> = self.key.iter().map(|i| schema.field(*i).name().as_str()).collect();
        write!(f, "NewestExec: key=[{}]", key.join(", "))
    }
}

impl ExecutionPlan for NewestExec {
    fn name(&self) -> &'static str {
        "NewestExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Self::try_new(children.swap_remove(0), self.key.clone(), self.seq, self.columns)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new("NewestExec").register(context.memory_pool());
        let mut input = self.input.execute(partition, context)?;
        let (key, seq) = (self.key.clone(), self.seq);
        let kept: Vec<usize> = (0..self.columns).collect();
        let newest = async move {
            let mut newest: Option<Newest> = None;
            let mut batches = Vec::new();
            while let Some(batch) = input.next().await {
                let batch = batch?;
                reservation.try_grow(batch.get_array_memory_size())?;
                let newest = match &mut newest {
                    Some(newest) => newest,
                    empty => empty.insert(Newest::new(&batch, &key, Some(seq))?),
                };
                newest.add(&batch)?;
                batches.push(batch);
            }
            let masks = match newest {
                Some(newest) => {
                    reservation.try_grow(newest.bytes())?;
                    newest.masks()
                }
                None => Vec::new(),
            };
            let rows = stream::iter(batches.into_iter().zip(masks)).map(move |(batch, mask)| {
                // The rows stay reserved until the last batch is out.
                let _held = &reservation;
                Ok(filter_record_batch(&batch.project(&kept)?, &mask)?)
            });
            Ok::<_, datafusion::error::DataFusionError>(rows)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            stream::once(newest).try_flatten(),
        )))
    }

    fn child_stats_requests(&self, _: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(None)]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let mut statistics = inputs.first().map_or_else(
            || Statistics::new_unknown(&self.input.schema()),
            |input| input.as_ref().clone().to_inexact(),
        );
        statistics.column_statistics.truncate(self.columns);
        Ok(Arc::new(statistics))
    }
}
