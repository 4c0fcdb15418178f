//! Summaries of the nodes that a prompt is about to show: taken from the store, or asked of the memory model, once a node. What the
//! model does not deliver is replaced by the facts in words, so that a search never waits for its memory.

mod ask;
mod book;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, AttemptSettings};
use super::error::{Result, SchedulerError};
use super::services::Services;
use crate::memory::{FACTS_SQL, NodeFacts, ParentFacts, STORED_SQL, Summary};
use crate::operators::ContextNode;

/// Summaries that this process is asking for: whoever needs one of them waits for the same answer.
#[derive(Debug, Default)]
pub struct SummariesInWork(Mutex<HashMap<String, Arc<OnceCell<Summary>>>>);

impl SummariesInWork {
    fn cell(&self, node_id: &str) -> Arc<OnceCell<Summary>> {
        Arc::clone(self.0.lock().entry(node_id.to_owned()).or_default())
    }

    /// Forgets an answer that is in the store now. A question that failed stays for those who wait for it.
    fn done(&self, node_id: &str) {
        let mut cells = self.0.lock();
        if cells.get(node_id).is_some_and(|cell| cell.initialized()) {
            cells.remove(node_id);
        }
    }
}

/// What a node without a summary gets in a prompt that is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The facts in words.
    Facts,
    /// A text as long as a summary may be.
    Longest,
}

/// Gives the nodes their summaries, asking the memory model for those that nobody has asked for.
///
/// # Errors
/// When the store or the configuration of the memory model fails, or the attempt is cancelled.
pub async fn fill(
    services: &Services,
    attempt: &Attempt,
    nodes: &mut [ContextNode],
    cancel: &CancellationToken,
) -> Result<()> {
    let Some(model) = &attempt.settings.memory_model else {
        return Ok(());
    };
    let generator = services.models.get(model).await?;
    let mut known = stored(services, ids_of(nodes)).await?;
    let missing: Vec<String> = without_summary(nodes, &known).map(str::to_owned).collect();
    let asked = missing.iter().map(|node_id| {
        let generator = Arc::clone(&generator);
        async move {
            let cell = services.summaries.cell(node_id);
            let is_asking = AtomicBool::new(false);
            let ask = || {
                is_asking.store(true, Ordering::Relaxed);
                ask::summary_of(services, attempt, &*generator, node_id, cancel)
            };
            // Who asks books what comes, also when the attempt is ended; who waits for another's answer just leaves.
            let left = async {
                cancel.cancelled().await;
                if is_asking.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
            };
            let summary = tokio::select! {
                summary = cell.get_or_try_init(ask) => summary.cloned(),
                () = left => Err(SchedulerError::Cancelled),
            };
            services.summaries.done(node_id);
            summary
        }
    });
    // All are heard to their end: an answer that came is paid for.
    let made: Vec<Result<Summary>> = join_all(asked).await;
    for (node_id, summary) in missing.into_iter().zip(made) {
        known.insert(node_id, summary?);
    }
    attach(nodes, &known);
    Ok(())
}

/// Gives the nodes the summaries that are in the store; nobody is asked. For prompts that are looked at and not sent.
///
/// # Errors
/// When the store fails.
pub async fn fill_known(
    services: &Services,
    attempt: &Attempt,
    nodes: &mut [ContextNode],
    missing: Missing,
) -> Result<()> {
    if attempt.settings.memory_model.is_none() {
        return Ok(());
    }
    let mut known = stored(services, ids_of(nodes)).await?;
    let unknown: Vec<String> = without_summary(nodes, &known).map(str::to_owned).collect();
    for node_id in unknown {
        let summary = match missing {
            Missing::Longest => Summary::longest(),
            Missing::Facts => Summary::of_facts(&facts(services, &node_id).await?),
        };
        known.insert(node_id, summary);
    }
    attach(nodes, &known);
    Ok(())
}

/// Checks that the memory model can be one, and that its price is known where a cost budget has to hold.
///
/// # Errors
/// When it is not known, writes programs only, or has no price under a cost budget.
pub async fn check_model(services: &Services, settings: &AttemptSettings, is_cost_limited: bool) -> Result<()> {
    let Some(name) = &settings.memory_model else {
        return Ok(());
    };
    let info = services.models.get(name).await?.describe();
    if !info.writes_texts {
        return Err(SchedulerError::Request(format!(
            "model '{name}' writes programs only, so it cannot be the memory model: name a language model, or 'none'"
        )));
    }
    if is_cost_limited && !info.free && info.price.is_none() {
        return Err(SchedulerError::UnknownCost { model: name.clone() });
    }
    Ok(())
}

fn attach(nodes: &mut [ContextNode], known: &HashMap<String, Summary>) {
    for node in nodes {
        if let Some(summary) = known.get(&node.node_id) {
            node.method_overview = Some(summary.method_overview.clone());
            node.parent_comparison_experience = Some(summary.parent_comparison_experience.clone());
        }
    }
}

fn ids_of(nodes: &[ContextNode]) -> impl Iterator<Item = &str> {
    nodes.iter().map(|node| node.node_id.as_str())
}

/// Nodes that have a program and no summary.
fn without_summary<'a>(nodes: &'a [ContextNode], known: &'a HashMap<String, Summary>) -> impl Iterator<Item = &'a str> {
    nodes
        .iter()
        .filter(|node| node.code.is_some() && !known.contains_key(&node.node_id))
        .map(|node| node.node_id.as_str())
}

/// The summaries that nodes have.
async fn stored(services: &Services, node_ids: impl Iterator<Item = &str>) -> Result<HashMap<String, Summary>> {
    let ids: Vec<ScalarValue> = node_ids.map(ScalarValue::from).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let ids = ScalarValue::List(ScalarValue::new_list_nullable(&ids, &DataType::Utf8));
    let failed = || SchedulerError::query("summaries");
    let rows = services
        .queries
        .rows(STORED_SQL, &[("node_ids", ids)], None, None)
        .await
        .map_err(failed())?;
    let read = || -> datafusion::error::Result<_> {
        rows.iter()
            .map(|row| {
                let summary = Summary {
                    method_overview: row.text("method_overview")?,
                    parent_comparison_experience: row.text("parent_comparison_experience")?,
                };
                Ok((row.text("node_id")?, summary))
            })
            .collect()
    };
    read().map_err(failed())
}

async fn facts(services: &Services, node_id: &str) -> Result<NodeFacts> {
    let failed = || SchedulerError::query(format!("facts of node {node_id}"));
    let rows = services
        .queries
        .rows(FACTS_SQL, &[("node_id", ScalarValue::from(node_id))], None, None)
        .await
        .map_err(failed())?;
    let read = || -> datafusion::error::Result<NodeFacts> {
        let mut facts = NodeFacts::default();
        for row in rows.iter() {
            facts.operator = row.text("operator")?;
            facts.code = row.optional_text("code")?.unwrap_or_default();
            facts.plan = row.optional_text("plan")?;
            facts.status = row.text("status")?;
            facts.score = row.optional_float("score")?;
            facts.delta_vs_parent = row.optional_float("delta_vs_parent")?;
            facts.error_signature = row.optional_text("error_signature")?;
            facts.error = row.optional_text("error")?;
            facts.method_family = row.text("method_family")?;
            facts.description = row.text("description")?;
            facts.metric = row.text("metric")?;
            facts.higher_is_better = row.bool("higher_is_better")?;
            if row.optional_text("parent_id")?.is_some() {
                facts.parents.push(ParentFacts {
                    status: row.text("parent_status")?,
                    score: row.optional_float("parent_score")?,
                    error_signature: row.optional_text("parent_error_signature")?,
                    method_family: row.text("parent_method_family")?,
                    changes: row.optional_text("changes")?,
                });
            }
        }
        Ok(facts)
    };
    read().map_err(failed())
}
