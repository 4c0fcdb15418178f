//! Keeps the order of an EXPAND's query.
//!
//! The order numbers the attempts, but a plan node below the top may get its rows in any order: the optimizer drops
//! sorts that nobody asks for. So the rank in the ORDER BY becomes a column of its own.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::functions_window::rank::rank;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, Limit, LogicalPlan, LogicalPlanBuilder, Projection, Sort, SubqueryAlias, col, ident,
};

/// Column with the rank of a row in the query's ORDER BY.
pub(super) const ORDER_COLUMN: &str = "__order";

/// Add [`ORDER_COLUMN`] to a query that has an ORDER BY at its end; others stay as they are.
pub(super) fn with_order(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Sort(Sort { expr, input, fetch }) => {
            let mut columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
            let position = rank().order_by(expr.clone()).build()?;
            columns.push(ident(position.schema_name().to_string()).alias(ORDER_COLUMN));
            LogicalPlanBuilder::from(Arc::unwrap_or_clone(input))
                .window([position])?
                .project(columns)?
                .sort_with_limit(expr, fetch)?
                .build()
        }
        LogicalPlan::Projection(Projection { mut expr, input, .. }) => {
            let input = with_order(Arc::unwrap_or_clone(input))?;
            if has_order(&input) {
                expr.push(col(ORDER_COLUMN));
            }
            LogicalPlanBuilder::from(input).project(expr)?.build()
        }
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
            LogicalPlanBuilder::from(with_order(Arc::unwrap_or_clone(input))?)
                .alias(alias)?
                .build()
        }
        LogicalPlan::Limit(Limit { skip, fetch, input }) => {
            let input = Arc::new(with_order(Arc::unwrap_or_clone(input))?);
            Ok(LogicalPlan::Limit(Limit { skip, fetch, input }))
        }
        other => Ok(other),
    }
}

fn has_order(plan: &LogicalPlan) -> bool {
    plan.schema().fields().iter().any(|field| field.name() == ORDER_COLUMN)
}
