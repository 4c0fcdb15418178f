//! `ExpandExec`: collects the input rows and hands them to the session's handler, once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};

use crate::dialect::ExpandClause;

use super::error::PlanError;
use super::expand_input::{MAX_INPUT_ROWS, read_rows};
use super::expand_node::ExpandMode;
use super::handler::{ExpandHandlerHandle, ExpandRequest};

/// Physical twin of [`ExpandNode`](super::ExpandNode).
#[derive(Debug)]
pub struct ExpandExec {
    input: Arc<dyn ExecutionPlan>,
    clause: ExpandClause,
    mode: ExpandMode,
    properties: Arc<PlanProperties>,
    /// Set by the first execution; shared by the copies that the optimizer makes.
    has_run: Arc<AtomicBool>,
}

impl ExpandExec {
    /// Make the node for a planned input.
    pub fn new(input: Arc<dyn ExecutionPlan>, clause: ExpandClause, mode: ExpandMode, schema: SchemaRef) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            input,
            clause,
            mode,
            properties: Arc::new(properties),
            has_run: Arc::default(),
        }
    }
}

impl DisplayAs for ExpandExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExpandExec: {}", self.clause)
    }
}

/// Collect the input, at most [`MAX_INPUT_ROWS`] rows, and call the handler.
async fn run(
    mut input: SendableRecordBatchStream,
    clause: ExpandClause,
    mode: ExpandMode,
    handler: Arc<ExpandHandlerHandle>,
    context: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let (mut batches, mut rows) = (Vec::new(), 0);
    while let Some(batch) = input.next().await.transpose()? {
        rows += batch.num_rows();
        if rows > MAX_INPUT_ROWS {
            return Err(PlanError::TooManyRows { limit: MAX_INPUT_ROWS }.into());
        }
        batches.push(batch);
    }
    let rows = read_rows(&batches, clause.operator)?;
    let request = ExpandRequest { rows, clause, context };
    match mode {
        ExpandMode::Run => handler.0.expand(request).await,
        ExpandMode::Explain => handler.0.explain(request).await,
    }
}

impl ExecutionPlan for ExpandExec {
    fn name(&self) -> &str {
        "ExpandExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input]) = <[Arc<dyn ExecutionPlan>; 1]>::try_from(children) else {
            return internal_err!("ExpandExec has one child");
        };
        Ok(Arc::new(Self {
            input,
            clause: self.clause.clone(),
            mode: self.mode,
            properties: Arc::clone(&self.properties),
            has_run: Arc::clone(&self.has_run),
        }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("ExpandExec has one partition, asked for {partition}");
        }
        let handler = context
            .session_config()
            .get_extension::<ExpandHandlerHandle>()
            .ok_or(PlanError::NoHandler)?;
        if self.has_run.swap(true, Ordering::SeqCst) {
            return Err(PlanError::AlreadyRun.into());
        }
        let input = self.input.execute(0, Arc::clone(&context))?;
        let run = run(input, self.clause.clone(), self.mode, handler, context);
        let stream = futures::stream::once(run).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }
}
