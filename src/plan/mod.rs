//! Plan nodes of the query language: logical, physical, planner twins; the guard and the lineage of plans.

mod error;
mod expand_exec;
mod expand_input;
mod expand_node;
mod expand_order;
mod expand_planner;
mod expand_relation;
mod guard;
mod handler;
mod lineage;
#[cfg(test)]
mod tests;

pub use error::PlanError;
pub use expand_exec::ExpandExec;
pub use expand_input::MAX_INPUT_ROWS;
pub use expand_node::{ExpandMode, ExpandNode};
pub use expand_planner::{CladeQueryPlanner, ExpandPlanner};
pub use expand_relation::ExpandRelationPlanner;
pub use guard::{Access, check_definition, check_statement};
pub use handler::{ExpandHandler, ExpandHandlerHandle, ExpandInput, ExpandRequest, explain_schema, result_schema};
pub use lineage::{Lineage, TableName, lineage};

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;

use crate::dialect::Expand;

/// Plan `query EXPAND WITH …`, or the explanation of it, in a session.
pub async fn plan_expand(state: &SessionState, expand: &Expand, mode: ExpandMode) -> Result<LogicalPlan> {
    let query = SqlStatement::Query(expand.query.clone());
    let input = state
        .statement_to_plan(DataFusionStatement::Statement(Box::new(query)))
        .await?;
    Ok(ExpandNode::try_new(input, expand.clause.clone(), mode)?.into_plan())
}

/// The query planner for the session state builder.
pub fn query_planner() -> Arc<dyn QueryPlanner + Send + Sync> {
    Arc::new(CladeQueryPlanner)
}

/// Register what planning needs in a session: the table function `expand`.
pub fn register(context: &SessionContext) -> Result<()> {
    context.register_relation_planner(Arc::new(ExpandRelationPlanner))
}
