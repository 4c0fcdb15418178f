//! Which base tables a plan reads, and which of its functions are not pure.

use std::collections::BTreeSet;
use std::fmt;

use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, Volatility};

use super::expand_node::ExpandNode;

/// A table with its schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// Schema; empty for a table function.
    pub schema: String,
    /// Table.
    pub table: String,
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.schema.is_empty() {
            f.write_str(&self.table)
        } else {
            write!(f, "{}.{}", self.schema, self.table)
        }
    }
}

/// What a plan depends on, through views, CTEs and all kinds of subqueries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lineage {
    /// Base tables.
    pub tables: BTreeSet<TableName>,
    /// Table functions in FROM, such as `generate_series`.
    pub table_functions: BTreeSet<String>,
    /// Functions that may give other results for the same input, such as `random`.
    pub volatile: BTreeSet<String>,
    /// Functions that are fixed within one statement only, such as `now`.
    pub stable: BTreeSet<String>,
    /// Whether the plan holds an EXPAND.
    pub expands: bool,
}

/// Walk a plan. Names without a schema belong to `default_schema`.
pub fn lineage(plan: &LogicalPlan, default_schema: &str) -> Result<Lineage> {
    let mut lineage = Lineage::default();
    lineage.walk(plan, default_schema)?;
    Ok(lineage)
}

impl Lineage {
    fn walk(&mut self, plan: &LogicalPlan, default_schema: &str) -> Result<()> {
        plan.apply_with_subqueries(|node| {
            self.expands |= ExpandNode::from_plan(node).is_some();
            if let LogicalPlan::TableScan(scan) = node {
                self.scan(scan, default_schema)?;
            }
            node.apply_expressions(|expression| {
                expression.apply(|part| {
                    self.function(part);
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(())
    }

    fn scan(&mut self, scan: &TableScan, default_schema: &str) -> Result<()> {
        if let Some(view) = scan.source.get_logical_plan() {
            return self.walk(&view, default_schema);
        }
        let is_worktable =
            source_as_provider(&scan.source).is_ok_and(|provider| provider.downcast_ref::<CteWorkTable>().is_some());
        let table = scan.table_name.table();
        if is_worktable {
            // The rows that a recursive CTE has made so far; what they come from is walked elsewhere.
        } else if let Some(function) = table.strip_suffix("()").filter(|_| scan.table_name.schema().is_none()) {
            self.table_functions.insert(function.to_owned());
        } else {
            let schema = scan.table_name.schema().unwrap_or(default_schema).to_owned();
            self.tables.insert(TableName {
                schema,
                table: table.to_owned(),
            });
        }
        Ok(())
    }

    fn function(&mut self, expression: &Expr) {
        let (name, volatility) = match expression {
            Expr::ScalarFunction(call) => (call.func.name(), call.func.signature().volatility),
            Expr::AggregateFunction(call) => (call.func.name(), call.func.signature().volatility),
            Expr::WindowFunction(call) => (call.fun.name(), call.fun.signature().volatility),
            _ => return,
        };
        match volatility {
            Volatility::Immutable => false,
            Volatility::Stable => self.stable.insert(name.to_owned()),
            Volatility::Volatile => self.volatile.insert(name.to_owned()),
        };
    }
}
