//! The planning of an EXPAND: its rows are checked and become attempts, written in one commit.

use std::collections::HashMap;

use clade_catalog::{BoxError, Txn};
use datafusion::common::ScalarValue;

use super::{Begun, ExpandPlan};
use crate::operators::{Operator, PromptBudget};
use crate::plan::ExpandInput;
use crate::scheduler::attempt::Attempt;
use crate::scheduler::budget::{self, Resource};
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::ids;
use crate::scheduler::queue;
use crate::scheduler::record;
use crate::scheduler::record::statement_rows::StatementRecord;
use crate::scheduler::run::Run;
use crate::scheduler::services::Services;

/// Most attempts of one statement: all of them are planned in one commit.
const MOST_ATTEMPTS: i64 = 1_000_000;

/// What is known of a node that is to be a parent.
struct ParentFacts {
    task_id: String,
    is_buggy: bool,
    island: i64,
}

/// Seeds are stored in signed columns; the highest bit is dropped.
fn to_signed(seed: u64) -> i64 {
    i64::try_from(seed & (u64::MAX >> 1)).unwrap_or(i64::MAX)
}

/// Attempts of an EXPAND, checked row by row; nothing is written.
///
/// # Errors
/// When an input row is wrong.
pub(in crate::scheduler) async fn attempts_of(
    services: &Services,
    plan: &ExpandPlan,
    statement_id: &str,
) -> Result<Vec<Attempt>> {
    let parents = parent_facts(services, plan).await?;
    let samples = i64::try_from(plan.options.samples.unwrap_or(1)).unwrap_or(i64::MAX);
    let wanted = i64::try_from(plan.rows.len())
        .unwrap_or(i64::MAX)
        .saturating_mul(samples);
    if wanted > MOST_ATTEMPTS {
        return Err(SchedulerError::Request(format!(
            "the EXPAND asks for {wanted} attempts, but a statement may plan {MOST_ATTEMPTS} at most: take fewer rows or samples"
        )));
    }
    let now = services.now();
    let seed = plan.options.seed.map_or(now, to_signed);
    let run = match &plan.run_id {
        Some(run_id) => Some(Run::load(services, run_id).await?),
        None => None,
    };
    let first_step = match &run {
        Some(run) => last_step(services, &run.run_id).await? + 1,
        None => 1,
    };
    let mut attempts = Vec::new();
    for (ordinal, row) in (0i64..).zip(&plan.rows) {
        let (task_id, island) = check_row(services, ordinal, row, &parents).await?;
        if let Some(run) = run.as_ref().filter(|run| run.task_id != task_id) {
            return Err(refusal(
                ordinal,
                &format!(
                    "it is of task '{task_id}', but the session's run '{}' is of task '{}': unset clade.run_id, or choose rows of \
                     that task",
                    run.run_id, run.task_id
                ),
            ));
        }
        let (row_seed, place) = row.seed.map_or((seed, ordinal), |own| (to_signed(own), 0));
        for sample in 0..samples {
            attempts.push(Attempt {
                attempt_id: ids::attempt_id(statement_id, ordinal, sample),
                statement_id: statement_id.to_owned(),
                run_id: plan.run_id.clone(),
                scope: statement_id.to_owned(),
                task_id: task_id.clone(),
                ordinal,
                sample,
                step: first_step + ordinal * samples + sample,
                generation: None,
                island,
                operator: row.operator.as_str().to_owned(),
                parent_id: row.parent_id.clone(),
                parent2_id: row.parent2_id.clone(),
                seed: ids::derive_seed(row_seed, "row", place, sample),
                snapshot_id: plan.snapshot_id,
                policy: None,
                draw: None,
                model: plan.model.clone(),
                sandbox: plan.sandbox.clone(),
                settings: plan.settings.clone(),
                prompt_budget: PromptBudget::default(),
                queued_at: now,
            });
        }
    }
    Ok(attempts)
}

/// Writes the statement with all its attempts in one commit.
pub(super) async fn planned(services: &Services, plan: &ExpandPlan, statement_id: &str) -> Result<Begun> {
    let attempts = attempts_of(services, plan, statement_id).await?;
    let now = services.now();
    let statement = StatementRecord {
        statement_id: statement_id.to_owned(),
        kind: "expand".to_owned(),
        run_id: plan.run_id.clone(),
        sql: plan.sql.clone(),
        snapshot_id: plan.snapshot_id,
        operator: Some(plan.operator.as_str().to_owned()),
        model: plan.model.clone(),
        sandbox: plan.sandbox.clone(),
        options: plan.options.to_json().to_string(),
        attempts: i64::try_from(attempts.len()).unwrap_or(i64::MAX),
        status: if attempts.is_empty() { "done" } else { "running" }.to_owned(),
        error: None,
        created_at: now,
        finished_at: attempts.is_empty().then_some(now),
    };
    let limits = [
        (Resource::Tokens, plan.options.max_tokens.map(|tokens| tokens as f64)),
        (Resource::CostUsd, plan.options.max_cost_usd),
        (Resource::Jobs, plan.options.max_jobs.map(|jobs| jobs as f64)),
        (
            Resource::WallSeconds,
            plan.options.max_wall.map(|wall| wall.as_secs_f64()),
        ),
    ];
    let mut txn = Txn::new();
    txn.append("evo.statements", statement.rows()?);
    txn.append("evo.attempts", record::planned_rows(&attempts)?);
    let (queued, scope) = (attempts.clone(), statement_id.to_owned());
    txn.control(move |tx| {
        if budget::is_known(tx, &scope)? {
            return Err(Box::new(SchedulerError::Request(format!(
                "there is another statement or run '{scope}' already; choose another id"
            ))) as BoxError);
        }
        for (resource, limit) in limits {
            budget::set_limit(tx, &scope, resource, limit)?;
        }
        for attempt in &queued {
            queue::enqueue(tx, attempt)?;
        }
        Ok(())
    });
    services.store.commit(txn).await?;
    Ok(Begun {
        statement,
        ready: attempts,
        ended: Vec::new(),
    })
}

/// Last step that an attempt of a run has, of its own or of an EXPAND.
async fn last_step(services: &Services, run_id: &str) -> Result<i64> {
    let rows = services
        .queries
        .rows(
            "SELECT max(step) AS step FROM evo.attempts WHERE run_id = $run",
            &[("run", ScalarValue::from(run_id))],
            None,
            None,
        )
        .await
        .map_err(SchedulerError::query("attempts of the run"))?;
    let step = rows
        .first()
        .map(|row| row.optional_int("step"))
        .transpose()
        .map_err(SchedulerError::query("attempts"))?;
    Ok(step.flatten().unwrap_or(0))
}

fn refusal(ordinal: i64, reason: &str) -> SchedulerError {
    SchedulerError::Request(format!("EXPAND, input row {}: {reason}", ordinal + 1))
}

async fn parent_facts(services: &Services, plan: &ExpandPlan) -> Result<HashMap<String, ParentFacts>> {
    let ids: Vec<&String> = plan
        .rows
        .iter()
        .flat_map(|row| row.parent_id.iter().chain(&row.parent2_id))
        .collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let snapshot = services.store.snapshot(Some(plan.snapshot_id)).await?;
    let list: Vec<ScalarValue> = ids.iter().map(|id| ScalarValue::from(id.as_str())).collect();
    let list = ScalarValue::List(ScalarValue::new_list_nullable(&list, &arrow::datatypes::DataType::Utf8));
    let rows = services
        .queries
        .rows(
            "SELECT node_id, task_id, is_buggy, island FROM evo.nodes WHERE array_has($ids, node_id)",
            &[("ids", list)],
            None,
            Some(snapshot),
        )
        .await
        .map_err(SchedulerError::query("parents"))?;
    let read = || -> datafusion::error::Result<_> {
        rows.iter()
            .map(|row| {
                let facts = ParentFacts {
                    task_id: row.text("task_id")?,
                    is_buggy: row.bool("is_buggy")?,
                    island: row.int("island")?,
                };
                Ok((row.text("node_id")?, facts))
            })
            .collect()
    };
    read().map_err(SchedulerError::query("parents"))
}

/// Task and island of an input row.
async fn check_row(
    services: &Services,
    ordinal: i64,
    row: &ExpandInput,
    parents: &HashMap<String, ParentFacts>,
) -> Result<(String, i64)> {
    let refuse = |reason: String| refusal(ordinal, &reason);
    let operator = row.operator;
    let mut found = Vec::new();
    for (name, id) in [("parent_id", &row.parent_id), ("parent2_id", &row.parent2_id)] {
        if let Some(id) = id {
            let facts = parents
                .get(id)
                .ok_or_else(|| refuse(format!("{name} '{id}' is no node of this store")))?;
            found.push((id, facts));
        }
    }
    if found.len() != operator.arity() {
        let needs = ["no parent", "parent_id", "parent_id and parent2_id"][operator.arity()];
        return Err(refuse(format!(
            "a {operator} takes {needs}, but {} are given",
            found.len()
        )));
    }
    let Some((first_id, first)) = found.first() else {
        let task_id = row
            .task_id
            .clone()
            .ok_or_else(|| refuse("a draft needs task_id".to_owned()))?;
        services.task(&task_id).await?;
        return Ok((task_id, 0));
    };
    if operator == Operator::Debug && !first.is_buggy {
        return Err(refuse(format!(
            "node '{first_id}' is healthy: there is nothing to debug; use improve"
        )));
    }
    if operator != Operator::Debug && found.iter().any(|(_, facts)| facts.is_buggy) {
        let buggy: Vec<&str> = found
            .iter()
            .filter(|(_, facts)| facts.is_buggy)
            .map(|(id, _)| id.as_str())
            .collect();
        return Err(refuse(format!(
            "node '{}' has failed: it can be debugged, not taken for {operator}",
            buggy.join("', '")
        )));
    }
    if let [(first_id, first), (second_id, second)] = found.as_slice() {
        if first_id == second_id {
            return Err(refuse(format!(
                "a crossover needs two different parents, both are '{first_id}'"
            )));
        }
        if first.task_id != second.task_id {
            return Err(refuse(format!(
                "the parents solve different tasks: '{}' and '{}'",
                first.task_id, second.task_id
            )));
        }
    }
    match &row.task_id {
        Some(task_id) if *task_id != first.task_id => Err(refuse(format!(
            "task_id is '{task_id}', but the parent solves '{}'",
            first.task_id
        ))),
        _ => Ok((first.task_id.clone(), first.island)),
    }
}
