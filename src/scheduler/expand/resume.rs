//! A statement that was begun earlier: what it still has to do, and what it has done.

use datafusion::common::ScalarValue;

use super::{Begun, ExpandPlan};
use crate::operators::PromptBudget;
use crate::scheduler::attempt::{Attempt, AttemptSettings};
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::queue;
use crate::scheduler::record::Ending;
use crate::scheduler::record::statement_rows::StatementRecord;
use crate::scheduler::services::Services;

/// What a statement that was begun earlier still has to do, and what it has done.
pub(super) async fn resumed(services: &Services, statement: StatementRecord, plan: &ExpandPlan) -> Result<Begun> {
    if statement.kind != "expand" || statement.sql != plan.sql {
        return Err(SchedulerError::Request(format!(
            "there is another statement '{}' already: it was `{}`; choose another id",
            statement.statement_id, statement.sql
        )));
    }
    if statement.run_id != plan.run_id {
        let run = |id: &Option<String>| {
            id.as_ref()
                .map_or_else(|| "no run".to_owned(), |id| format!("run '{id}'"))
        };
        return Err(SchedulerError::Request(format!(
            "statement '{}' adds to {}, but the session's clade.run_id is {}: set it as it was to go on",
            statement.statement_id,
            run(&statement.run_id),
            run(&plan.run_id)
        )));
    }
    let id = statement.statement_id.clone();
    let ready = services
        .store
        .control_read(move |conn| queue::pending(conn, &id))
        .await?;
    let ended = ended_attempts(services, &statement, &plan.settings).await?;
    Ok(Begun {
        statement,
        ready,
        ended,
    })
}

async fn ended_attempts(
    services: &Services,
    statement: &StatementRecord,
    settings: &AttemptSettings,
) -> Result<Vec<Ending>> {
    let rows = services
        .queries
        .rows(
            "SELECT a.*, n.status AS state, n.score, n.delta_vs_parent, n.error_class AS node_error_class, n.error AS node_error
             FROM evo.attempts a LEFT JOIN evo.nodes n ON n.node_id = a.node_id
             WHERE a.statement_id = $id AND a.status <> 'planned' AND NOT a.late
             ORDER BY a.ordinal, a.sample",
            &[("id", ScalarValue::from(statement.statement_id.as_str()))],
            None,
            None,
        )
        .await
        .map_err(SchedulerError::query("attempts of the statement"))?;
    let read = || -> datafusion::error::Result<Vec<Ending>> {
        rows.iter()
            .map(|row| {
                let attempt = Attempt {
                    attempt_id: row.text("attempt_id")?,
                    statement_id: row.text("statement_id")?,
                    run_id: row.optional_text("run_id")?,
                    scope: statement.statement_id.clone(),
                    task_id: row.text("task_id")?,
                    ordinal: row.int("ordinal")?,
                    sample: row.int("sample")?,
                    step: row.optional_int("step")?.unwrap_or_default(),
                    generation: row.optional_int("generation")?,
                    island: row.int("island")?,
                    operator: row.text("operator")?,
                    parent_id: row.optional_text("parent_id")?,
                    parent2_id: row.optional_text("parent2_id")?,
                    seed: row.int("seed")?,
                    snapshot_id: row.int("snapshot_id")?,
                    policy: None,
                    draw: None,
                    model: statement.model.clone(),
                    sandbox: statement.sandbox.clone(),
                    settings: settings.clone(),
                    prompt_budget: PromptBudget::default(),
                    queued_at: row.int("queued_at")?,
                };
                let status = match row.text("status")?.as_str() {
                    "done" => "done",
                    "failed" => "failed",
                    "cancelled" => "cancelled",
                    _ => "abandoned",
                };
                Ok(Ending {
                    node_id: row.optional_text("node_id")?,
                    state: row.optional_text("state")?,
                    score: row.optional_float("score")?,
                    delta_vs_parent: row.optional_float("delta_vs_parent")?,
                    error_class: row
                        .optional_text("node_error_class")?
                        .or(row.optional_text("error_class")?),
                    error: row.optional_text("node_error")?.or(row.optional_text("error")?),
                    tokens_prompt: row.optional_int("tokens_prompt")?,
                    tokens_completion: row.optional_int("tokens_completion")?,
                    cost_usd: row.optional_float("cost_usd")?,
                    started_at: row.optional_int("started_at")?,
                    finished_at: row.optional_int("finished_at")?,
                    ..Ending::open(&attempt, status)
                })
            })
            .collect()
    };
    read().map_err(SchedulerError::query("attempts of the statement"))
}
