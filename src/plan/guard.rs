//! What a plan may do: where EXPAND may stand, and what a read-only session refuses.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement};

use super::error::PlanError;
use super::expand_node::{self, ExpandMode, ExpandNode};

/// What a session may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everything.
    ReadWrite,
    /// Queries, EXPLAIN, SHOW and SET.
    ReadOnly,
}

/// Check the plan of a statement before it is executed.
pub fn check_statement(plan: &LogicalPlan, access: Access) -> Result<(), PlanError> {
    let found = expand_node::count(plan);
    if found > 1 {
        return Err(PlanError::MoreThanOne { found });
    }
    if found == 1 {
        check_place(plan)?;
    }
    match access {
        Access::ReadWrite => Ok(()),
        Access::ReadOnly => check_read_only(plan),
    }
}

/// Check the query of a view or a policy, which may not act.
pub fn check_definition(plan: &LogicalPlan, place: &'static str) -> Result<(), PlanError> {
    if expand_node::count(plan) == 0 {
        return Ok(());
    }
    Err(PlanError::Refused {
        place,
        reason: "it would act every time somebody reads it; write the EXPAND as a statement",
    })
}

/// Find the EXPAND and refuse it below a node that would not execute it exactly once.
fn check_place(plan: &LogicalPlan) -> Result<(), PlanError> {
    let refused = |place, reason| Err(PlanError::Refused { place, reason });
    if expand_node::count(plan) == 0 || ExpandNode::from_plan(plan).is_some() {
        // Below the EXPAND there is none, as there is only one.
        return Ok(());
    }
    match plan {
        LogicalPlan::Dml(_) => {
            return refused(
                "as the source of INSERT, UPDATE or DELETE",
                "read its rows from evo.attempts and evo.nodes instead",
            );
        }
        LogicalPlan::Copy(_) => return refused("as the source of COPY", "run the EXPAND, then copy from evo.nodes"),
        LogicalPlan::Ddl(DdlStatement::CreateView(_)) => {
            return refused(
                "in a view",
                "it would act every time somebody reads it; write the EXPAND as a statement",
            );
        }
        LogicalPlan::Ddl(_) => {
            return refused(
                "as the source of CREATE TABLE",
                "run the EXPAND, then select from evo.nodes",
            );
        }
        LogicalPlan::Analyze(_) => {
            return refused(
                "under EXPLAIN ANALYZE",
                "it would run; EXPLAIN shows the plan and runs nothing",
            );
        }
        LogicalPlan::RecursiveQuery(_) => return refused("in a recursive query", "it would act on every iteration"),
        LogicalPlan::Statement(_) => return refused("in a prepared statement", "submit the statement itself"),
        LogicalPlan::Explain(_) => return Ok(()),
        _ => {}
    }
    let mut in_subquery = false;
    // Neither walk returns an error of its own.
    let _ = plan.apply_subqueries(|subquery| {
        in_subquery |= expand_node::count(subquery) > 0;
        Ok(TreeNodeRecursion::Continue)
    });
    if in_subquery {
        return refused(
            "in a subquery of an expression",
            "it might be evaluated any number of times; put it into FROM",
        );
    }
    plan.inputs().into_iter().try_for_each(check_place)
}

/// Refuse what writes.
fn check_read_only(plan: &LogicalPlan) -> Result<(), PlanError> {
    if matches!(plan, LogicalPlan::Explain(_)) {
        return Ok(());
    }
    let mut refused = None;
    // The closure returns no error, and the walk adds none of its own.
    let _ = plan.apply(|node| {
        refused = match node {
            LogicalPlan::Dml(dml) => Some(dml.op.to_string().to_uppercase()),
            LogicalPlan::Ddl(ddl) => Some(ddl_words(ddl)),
            LogicalPlan::Copy(_) => Some("COPY".to_owned()),
            LogicalPlan::Statement(Statement::TransactionStart(_) | Statement::TransactionEnd(_)) => {
                Some("a transaction".to_owned())
            }
            _ => match ExpandNode::from_plan(node) {
                Some(expand) if expand.mode() == ExpandMode::Run => Some("EXPAND".to_owned()),
                _ => None,
            },
        };
        Ok(if refused.is_some() {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    });
    match refused {
        Some(statement) => Err(PlanError::ReadOnly { statement }),
        None => Ok(()),
    }
}

/// The statement's name as it is written: `CreateExternalTable` is CREATE EXTERNAL TABLE.
fn ddl_words(ddl: &DdlStatement) -> String {
    let mut words = String::new();
    for letter in ddl.name().replace("Memory", "").chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_uppercase());
    }
    words
}
