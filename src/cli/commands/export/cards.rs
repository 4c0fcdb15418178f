//! `clade export cards`: the experience cards of a run.

use serde_json::{Value, json};

use super::document::{RunQueries, SCHEMA_VERSION};
use crate::cli::error::CliError;
use crate::session::ResultRow;

const CARDS: &str = include_str!("../../../../sql/export/cards.sql");

/// The cards in the order of their steps.
pub async fn document(run: &RunQueries) -> Result<Value, CliError> {
    run.rows(CARDS).await?.iter().map(card).collect()
}

fn card(row: ResultRow<'_>) -> Result<Value, CliError> {
    let text = |name| row.optional_text(name);
    let number = |name| row.optional_float(name);
    let whole = |name| row.optional_int(name);
    let parents = row.texts("parents")?;
    let mut card = json!({
        "schema_version": SCHEMA_VERSION,
        "node_id": row.text("node_id")?,
        "step_id": row.int("step")?,
        "operator": row.text("operator")?,
        "parents": parents,
        "parent_node_ids": parents,
        "generation_id": whole("generation")?,
        "score": number("score")?,
        "fitness": number("fitness")?,
        // The reward of a program is made by a view over its group, when a model learns from it.
        "reward": null,
        "status": row.text("status")?,
        // There is no HTTP service whose code this could be: the status says how the job ended.
        "status_code": null,
        "is_buggy": row.bool("is_buggy")?,
        "sandbox_time_used": number("sandbox_seconds")?,
        "model_time_used": number("model_seconds")?,
        "model_plus_sandbox_time_used": number("total_seconds")?,
        "cost": number("cost_usd")?,
        "prompt_tokens": whole("tokens_prompt")?,
        "completion_tokens": whole("tokens_completion")?,
        "total_tokens": whole("tokens_total")?,
        "imports": row.texts("imports")?,
        "method_family_auto": row.text("method_family")?,
        "family_count_before": row.int("family_count_before")?,
        "is_new_direction": row.bool("is_new_direction")?,
        "novelty_score": number("novelty")?,
        "delta_vs_parent": number("delta_vs_parent")?,
        "error_signature": text("error_signature")?,
        "rank": whole("rank")?,
        "current_best": row.bool("is_current_best")?,
        "selection_utility": number("selection_utility")?,
        "plan": text("plan")?.unwrap_or_default(),
        "analysis": text("analysis")?.unwrap_or_default(),
    });
    if let Some(overview) = text("method_overview")? {
        card["rich_summary"] = json!({
            "method_overview": overview,
            "parent_comparison_experience": text("parent_comparison_experience")?,
        });
    }
    Ok(card)
}
