//! Plans [`ExpandNode`] as [`ExpandExec`], and the query planner that knows how.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{Result, internal_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use super::expand_exec::ExpandExec;
use super::expand_node::ExpandNode;

/// Plans EXPAND nodes.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExpandPlanner;

#[async_trait]
impl ExtensionPlanner for ExpandPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _planning_ctx: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<ExpandNode>() else {
            return Ok(None);
        };
        let [input] = physical_inputs else {
            return internal_err!("an Expand node has one input, found {}", physical_inputs.len());
        };
        let schema = Arc::clone(UserDefinedLogicalNodeCore::schema(node).inner());
        Ok(Some(Arc::new(ExpandExec::new(
            Arc::clone(input),
            node.clause().clone(),
            node.mode(),
            schema,
        ))))
    }
}

/// DataFusion's planner with the plan nodes of the query language.
#[derive(Debug, Clone, Copy, Default)]
pub struct CladeQueryPlanner;

#[async_trait]
impl QueryPlanner for CladeQueryPlanner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(ExpandPlanner)])
            .create_physical_plan(logical_plan, session)
            .await
    }
}
