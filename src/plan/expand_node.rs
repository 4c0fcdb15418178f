//! `ExpandNode`: an EXPAND in a logical plan.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

use crate::dialect::ExpandClause;

use super::expand_input::check_columns;
use super::expand_order::with_order;
use super::handler::{explain_schema, result_schema};

/// Whether an EXPAND acts or only tells what it would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd)]
pub enum ExpandMode {
    /// Make the programs.
    Run,
    /// Show parents, prompt sizes and estimates.
    Explain,
}

/// Rows of the input become attempts; rows of the output are their outcomes.
#[derive(Debug, Clone)]
pub struct ExpandNode {
    input: Arc<LogicalPlan>,
    clause: ExpandClause,
    mode: ExpandMode,
    schema: DFSchemaRef,
}

impl ExpandNode {
    /// Check the input's columns against the operator and make the node.
    pub fn try_new(input: LogicalPlan, clause: ExpandClause, mode: ExpandMode) -> Result<Self> {
        check_columns(input.schema(), clause.operator)?;
        let schema = match mode {
            ExpandMode::Run => result_schema(),
            ExpandMode::Explain => explain_schema(),
        };
        let schema = Arc::new(DFSchema::try_from(schema)?);
        Ok(Self {
            input: Arc::new(with_order(input)?),
            clause,
            mode,
            schema,
        })
    }

    /// The node as a plan.
    pub fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(self) })
    }

    /// Operator, options, model, sandbox.
    pub fn clause(&self) -> &ExpandClause {
        &self.clause
    }

    /// Run or explain.
    pub fn mode(&self) -> ExpandMode {
        self.mode
    }

    /// The node in `plan`, when that is one.
    pub fn from_plan(plan: &LogicalPlan) -> Option<&Self> {
        match plan {
            LogicalPlan::Extension(extension) => extension.node.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// What tells one node from another; options compare by their text, as they hold floating-point numbers.
    fn key(&self) -> (&LogicalPlan, String, ExpandMode) {
        (&self.input, self.clause.to_string(), self.mode)
    }
}

impl PartialEq for ExpandNode {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for ExpandNode {}

impl Hash for ExpandNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialOrd for ExpandNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.key().partial_cmp(&other.key())
    }
}

impl UserDefinedLogicalNodeCore for ExpandNode {
    fn name(&self) -> &str {
        "Expand"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expand: {}", self.clause)
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Ok([input]) = <[LogicalPlan; 1]>::try_from(inputs) else {
            return internal_err!("an Expand node has one input");
        };
        Ok(Self {
            input: Arc::new(input),
            clause: self.clause.clone(),
            mode: self.mode,
            schema: Arc::clone(&self.schema),
        })
    }
}

/// Count the EXPAND nodes of a plan, those in subqueries included.
pub(super) fn count(plan: &LogicalPlan) -> usize {
    let mut found = 0;
    // The closure returns no error, and the walk adds none of its own.
    let _ = plan.apply_with_subqueries(|node| {
        found += usize::from(ExpandNode::from_plan(node).is_some());
        Ok(TreeNodeRecursion::Continue)
    });
    found
}
