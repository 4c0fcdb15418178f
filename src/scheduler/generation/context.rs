//! The nodes an attempt is shown, read by the operator's context query, and what its parents' scores say about the child.

use std::collections::HashMap;
use std::sync::Arc;

use clade_catalog::Snapshot;
use datafusion::common::ScalarValue;

use crate::operators::{ContextNode, ContextSizes, Operator, context_sql, facts_sql};
use crate::scheduler::attempt::Attempt;
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::record::Edge;
use crate::scheduler::services::Services;
use crate::session::ResultRow;

/// The nodes that a context query names, by their places, with the commit that each came with. An ORDER BY in the query itself
/// would not hold: the optimizer drops the order of a subquery.
const SHOWN: &str = "
SELECT shown.role, n.node_id, n._seq AS seq
FROM (";
const SHOWN_END: &str = ") AS shown JOIN evo.nodes_versions n ON n.node_id = shown.node_id ORDER BY shown.place";

/// Nodes whose facts are read at once.
const FACTS_AT_ONCE: usize = 8;

/// A node that an attempt is shown.
struct Shown {
    role: String,
    node_id: String,
    seq: i64,
}

/// Nodes an operator is shown for an attempt, parents first: as they were when the attempt was planned, so that what others commit
/// meanwhile does not change what it asks.
///
/// # Errors
/// When the query fails, or a parent is not in the store.
pub async fn nodes(services: &Services, attempt: &Attempt, operator: Operator) -> Result<Vec<ContextNode>> {
    if operator.arity() == 0 {
        return Ok(Vec::new());
    }
    let failed = || SchedulerError::query(format!("context of a {operator}"));
    let snapshot = services.store.snapshot(Some(attempt.snapshot_id)).await?;
    let shown = shown(services, attempt, operator, &snapshot).await.map_err(failed())?;
    let mut nodes = Vec::with_capacity(shown.len());
    for shown in shown.chunks(FACTS_AT_ONCE) {
        nodes.extend(facts(services, shown, &snapshot).await.map_err(failed())?);
    }
    Ok(nodes)
}

async fn shown(
    services: &Services,
    attempt: &Attempt,
    operator: Operator,
    snapshot: &Arc<Snapshot>,
) -> datafusion::error::Result<Vec<Shown>> {
    let text = |value: &Option<String>| ScalarValue::Utf8(value.clone());
    let mut parameters = vec![
        ("run_id", text(&attempt.run_id)),
        ("parent_id", text(&attempt.parent_id)),
        ("parent2_id", text(&attempt.parent2_id)),
    ];
    parameters.extend(ContextSizes::of(operator).parameters());
    let sql = format!("{SHOWN}{}{SHOWN_END}", context_sql(operator));
    let rows = services
        .queries
        .rows(&sql, &parameters, None, Some(Arc::clone(snapshot)))
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Shown {
                role: row.text("role")?,
                node_id: row.text("node_id")?,
                seq: row.int("seq")?,
            })
        })
        .collect()
}

/// Facts of nodes, in their order.
async fn facts(
    services: &Services,
    shown: &[Shown],
    snapshot: &Arc<Snapshot>,
) -> datafusion::error::Result<Vec<ContextNode>> {
    let Some(last) = shown.last() else {
        return Ok(Vec::new());
    };
    // The query has a fixed number of places; the last node fills those that are left.
    let padded = shown.iter().chain(std::iter::repeat(last)).take(FACTS_AT_ONCE);
    let names: Vec<(String, String)> = (0..FACTS_AT_ONCE)
        .map(|place| (format!("seq{place}"), format!("node{place}")))
        .collect();
    let parameters: Vec<(&str, ScalarValue)> = names
        .iter()
        .zip(padded)
        .flat_map(|((seq, node), shown)| {
            [
                (seq.as_str(), ScalarValue::from(shown.seq)),
                (node.as_str(), ScalarValue::from(shown.node_id.as_str())),
            ]
        })
        .collect();
    let rows = services
        .queries
        .rows(facts_sql(), &parameters, None, Some(Arc::clone(snapshot)))
        .await?;
    let mut found = HashMap::with_capacity(shown.len());
    for row in rows.iter() {
        found.insert(row.text("node_id")?, row);
    }
    shown
        .iter()
        .filter_map(|shown| found.get(&shown.node_id).map(|row| context_node(shown, *row)))
        .collect()
}

fn context_node(shown: &Shown, row: ResultRow<'_>) -> datafusion::error::Result<ContextNode> {
    Ok(ContextNode {
        role: shown.role.clone(),
        node_id: shown.node_id.clone(),
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
        delta_vs_parent: row.optional_float("delta_vs_parent")?,
        method_overview: None,
        parent_comparison_experience: None,
        change: None,
    })
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
