//! Physical node that plans a scan when it is executed.

use std::fmt;
use std::fmt::Debug;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions, execute_stream,
};
use futures::{TryStreamExt, stream};

/// A scan that is planned for the task that executes it.
#[async_trait]
pub(crate) trait LateScan: Debug + Send + Sync + 'static {
    /// Table that is read.
    fn name(&self) -> &str;

    /// The plan for the snapshot of the task.
    async fn bind(&self, context: &Arc<TaskContext>) -> Result<Arc<dyn ExecutionPlan>>;
}

/// Plans its scan at each execution; it keeps nothing of the snapshot that it was made with but a guess of its size.
#[derive(Debug)]
pub(crate) struct LateScanExec {
    scan: Arc<dyn LateScan>,
    statistics: Arc<Statistics>,
    properties: Arc<PlanProperties>,
}

impl LateScanExec {
    /// `statistics` are those of the scan now; they may be wrong when the plan is executed.
    pub(crate) fn new(scan: Arc<dyn LateScan>, schema: SchemaRef, statistics: Statistics) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            scan,
            statistics: Arc::new(statistics.to_inexact()),
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for LateScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LateScanExec: table={}", self.scan.name())
    }
}

impl ExecutionPlan for LateScanExec {
    fn name(&self) -> &'static str {
        "LateScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
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

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let scan = Arc::clone(&self.scan);
        let rows = async move {
            let plan = scan.bind(&context).await?;
            execute_stream(plan, context)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            stream::once(rows).try_flatten(),
        )))
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&self.statistics))
    }
}
