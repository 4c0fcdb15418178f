//! The nodes an attempt is shown, read by the operator's context query, and what its parents' scores say about the child.

use datafusion::common::ScalarValue;

use super::attempt::Attempt;
use super::error::{Result, SchedulerError};
use super::record::Edge;
use super::services::Services;
use crate::operators::{ContextNode, Operator, context_sql};
use crate::session::ResultRow;

/// Facts of the nodes that a context query names.
const NODE_FACTS: &str = "
SELECT shown.role, n.node_id, n.operator, n.code, n.plan, n.status, n.is_buggy, n.score, n.signed_score, n.error_class,
       n.error_signature, n.error, n.method_family, n.sandbox_seconds
FROM (SELECT role, node_id, row_number() OVER () AS place FROM (";
const NODE_FACTS_END: &str = ")) AS shown JOIN evo.nodes n ON n.node_id = shown.node_id ORDER BY shown.place";

/// Nodes an operator is shown for an attempt, parents first.
///
/// # Errors
/// When the query fails, or a parent is not in the store.
pub async fn nodes(services: &Services, attempt: &Attempt, operator: Operator) -> Result<Vec<ContextNode>> {
    if operator.arity() == 0 {
        return Ok(Vec::new());
    }
    let sql = format!("{NODE_FACTS}{}{NODE_FACTS_END}", context_sql(operator));
    let text = |value: &Option<String>| ScalarValue::Utf8(value.clone());
    let rows = services
        .queries
        .rows(
            &sql,
            &[
                ("run_id", text(&attempt.run_id)),
                ("parent_id", text(&attempt.parent_id)),
                ("parent2_id", text(&attempt.parent2_id)),
            ],
            attempt.run_id.as_deref(),
            None,
        )
        .await
        .map_err(SchedulerError::query(format!("context of a {operator}")))?;
    let read = |row: ResultRow<'_>| -> datafusion::error::Result<ContextNode> {
        Ok(ContextNode {
            role: row.text("role")?,
            node_id: row.text("node_id")?,
            operator: row.text("operator")?,
            code: row.optional_text("code")?,
            plan: row.optional_text("plan")?,
            status: row.text("status")?,
            is_buggy: row.bool("is_buggy")?,
            score: row.optional_float("score")?,
            signed_score: row.optional_float("signed_score")?,
            error_class: row.optional_text("error_class")?,
            error_signature: row.optional_text("error_signature")?,
            error: row.optional_text("error")?,
            method_family: row.text("method_family")?,
            sandbox_seconds: row.optional_float("sandbox_seconds")?,
        })
    };
    rows.iter()
        .map(read)
        .collect::<datafusion::error::Result<_>>()
        .map_err(SchedulerError::query("context nodes"))
}

/// The parents of an attempt with their valid scores.
#[derive(Debug, Clone)]
pub struct Parents(Vec<(&'static str, String, Option<f64>)>);

impl Parents {
    /// Parents of an attempt among its context nodes.
    ///
    /// # Errors
    /// When a parent is not in the store.
    pub fn of(attempt: &Attempt, nodes: &[ContextNode]) -> Result<Self> {
        let mut parents = Vec::new();
        for (role, id) in attempt.parents() {
            let node = nodes.iter().find(|node| node.node_id == id).ok_or_else(|| {
                SchedulerError::Request(format!(
                    "{role} '{id}' of attempt {} is no node of this store",
                    attempt.attempt_id
                ))
            })?;
            parents.push((role, id.to_owned(), node.signed_score.filter(|_| !node.is_buggy)));
        }
        Ok(Self(parents))
    }

    /// Gain of a child over the best scored parent.
    pub fn delta(&self, signed_score: Option<f64>) -> Option<f64> {
        let best = self.0.iter().filter_map(|(_, _, score)| *score).reduce(f64::max)?;
        signed_score.map(|score| score - best)
    }

    /// Edges to the child.
    pub fn edges(&self, signed_score: Option<f64>) -> Vec<Edge> {
        self.0
            .iter()
            .map(|(role, id, score)| Edge {
                role,
                parent_id: id.clone(),
                delta: signed_score.zip(*score).map(|(child, parent)| child - parent),
            })
            .collect()
    }
}
