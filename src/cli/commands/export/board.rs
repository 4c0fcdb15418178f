//! `clade export board`: the strategy board of a run.

use serde_json::{Map, Value, json};

use super::document::{RunQueries, SCHEMA_VERSION};
use crate::cli::error::CliError;
use crate::session::{ResultRow, ResultRows};

const SUMMARY: &str = include_str!("../../../../sql/export/board/summary.sql");
const FAMILIES: &str = include_str!("../../../../sql/export/board/families.sql");
const COUNTS: &str = include_str!("../../../../sql/export/board/counts.sql");
const NODES: &str = include_str!("../../../../sql/export/board/nodes.sql");
const DRAWS: &str = include_str!("../../../../sql/export/board/draws.sql");

/// The board.
pub async fn document(run: &RunQueries) -> Result<Value, CliError> {
    let summary = run.rows(SUMMARY).await?;
    let summary = summary
        .first()
        .ok_or_else(|| CliError::Failed("the board of the run is empty".to_owned()))?;
    let families = run.rows(FAMILIES).await?;
    let counts = run.rows(COUNTS).await?;
    let nodes = run.rows(NODES).await?;
    let draws = run.rows(DRAWS).await?;
    Ok(json!({
        "schema_version": SCHEMA_VERSION,
        "num_nodes": summary.int("nodes")?,
        "best_node": summary.optional_text("best_node")?,
        "best_score": summary.optional_float("best_score")?,
        "current_best_family": summary.optional_text("best_family")?,
        "method_family_stats": by_text(&families, "method_family", family)?,
        "underexplored_families": underexplored(&families)?,
        "repeated_errors": count(&counts, "error")?,
        "novelty_by_node": by_text(&nodes, "node_id", |node| Ok(json!(node.optional_float("novelty")?)))?,
        "rank_by_node": ranks(&nodes)?,
        "current_best_by_node": by_text(&nodes, "node_id", |node| Ok(json!(node.bool("is_current_best")?)))?,
        "family_best_nodes": family_best(&families)?,
        "recent_delta_trend": summary.optional_float("mean_gain")?,
        "status_count": count(&counts, "status")?,
        "operator_counts": count(&counts, "operator")?,
        "parent_graph": by_text(&nodes, "node_id", |node| Ok(json!(node.texts("parents")?)))?,
        "score_history": list(&nodes, score)?,
        "runtime_stats": {
            "sandbox_total": summary.optional_float("sandbox_seconds")?,
            "sandbox_avg": summary.optional_float("mean_sandbox_seconds")?,
            "model_total": summary.optional_float("model_seconds")?,
            "model_avg": summary.optional_float("mean_model_seconds")?,
        },
        "parent_selection_weights": list(&draws, draw)?,
    }))
}

/// An object with a value for each row.
fn by_text(
    rows: &ResultRows,
    key: &str,
    value: impl Fn(ResultRow<'_>) -> Result<Value, CliError>,
) -> Result<Map<String, Value>, CliError> {
    rows.iter().map(|row| Ok((row.text(key)?, value(row)?))).collect()
}

fn list(rows: &ResultRows, value: impl Fn(ResultRow<'_>) -> Result<Value, CliError>) -> Result<Vec<Value>, CliError> {
    rows.iter().map(value).collect()
}

fn family(row: ResultRow<'_>) -> Result<Value, CliError> {
    Ok(json!({
        "count": row.int("nodes")?,
        "valid_count": row.int("good")?,
        "fail_count": row.int("failed")?,
        "best": row.optional_float("best_score")?,
        "best_node": row.optional_text("best_node_id")?,
        "fail_rate": row.optional_float("fail_rate")?,
    }))
}

/// Names of families in the order of the alphabet.
fn underexplored(families: &ResultRows) -> Result<Vec<String>, CliError> {
    let mut names = Vec::new();
    for family in families.iter() {
        if family.bool("is_underexplored")? {
            names.push(family.text("method_family")?);
        }
    }
    Ok(names)
}

/// The best node of each family that has one.
fn family_best(families: &ResultRows) -> Result<Map<String, Value>, CliError> {
    let mut best = Map::new();
    for family in families.iter() {
        if let Some(node) = family.optional_text("best_of_family")? {
            best.insert(family.text("method_family")?, json!(node));
        }
    }
    Ok(best)
}

/// Counts of one kind by name.
fn count(counts: &ResultRows, kind: &str) -> Result<Map<String, Value>, CliError> {
    let mut named = Map::new();
    for row in counts.iter() {
        if row.text("kind")? == kind {
            named.insert(row.text("name")?, json!(row.int("nodes")?));
        }
    }
    Ok(named)
}

/// Places of the nodes that have a valid score.
fn ranks(nodes: &ResultRows) -> Result<Map<String, Value>, CliError> {
    let mut ranks = Map::new();
    for node in nodes.iter() {
        if let Some(rank) = node.optional_int("rank")? {
            ranks.insert(node.text("node_id")?, json!(rank));
        }
    }
    Ok(ranks)
}

fn score(node: ResultRow<'_>) -> Result<Value, CliError> {
    Ok(json!({
        "step_id": node.int("step")?,
        "node_id": node.text("node_id")?,
        "score": node.optional_float("score")?,
        "fitness": node.optional_float("fitness")?,
    }))
}

fn draw(row: ResultRow<'_>) -> Result<Value, CliError> {
    let parents = [row.optional_text("parent_id")?, row.optional_text("parent2_id")?];
    let parents: Vec<String> = parents.into_iter().flatten().collect();
    Ok(json!({"enabled": true, "selected_node_ids": parents}))
}
