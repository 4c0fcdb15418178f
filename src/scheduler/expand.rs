//! EXPAND: every input row and sample becomes an attempt, planned in one commit; what ends is streamed as it ends. A statement
//! that is run again under its id goes on where it was and repeats nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use clade_catalog::Txn;
use datafusion::common::ScalarValue;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::attempt::{Attempt, AttemptSettings};
use super::budget::{self, Resource};
use super::conducting::Entry;
use super::conductor::load_index;
use super::error::{Result, SchedulerError};
use super::ids;
use super::index::RunIndex;
use super::lease;
use super::pipeline::{Ending, Pipeline};
use super::queue;
use super::record;
use super::reserve;
use super::runs::Scheduler;
use super::services::Services;
use super::statement::StatementRecord;
use crate::dialect::{ExpandOptions, OnError};
use crate::operators::Operator;
use crate::plan::ExpandInput;

/// An EXPAND whose input rows are known.
#[derive(Debug, Clone)]
pub struct ExpandPlan {
    /// Text of the statement.
    pub sql: String,
    /// Operator of the clause.
    pub operator: Operator,
    /// Options.
    pub options: ExpandOptions,
    /// Input rows, in order.
    pub rows: Vec<ExpandInput>,
    /// Generator.
    pub model: String,
    /// Executor.
    pub sandbox: String,
    /// Snapshot on which the rows were chosen.
    pub snapshot_id: i64,
    /// Run that the children join; `None` for a free-standing statement.
    pub run_id: Option<String>,
    /// Settings of each attempt.
    pub settings: AttemptSettings,
    /// Attempts in flight at once.
    pub concurrency: usize,
}

/// A statement in progress.
#[derive(Debug)]
pub struct Expansion {
    /// Statement id.
    pub statement_id: String,
    /// Attempts that are still to be made, as they were planned.
    pub planned: Vec<Ending>,
    /// Endings as they come; the channel closes when the statement has ended.
    pub endings: mpsc::UnboundedReceiver<Result<Ending>>,
}

/// What is known of a node that is to be a parent.
struct ParentFacts {
    task_id: String,
    is_buggy: bool,
    island: i64,
}

impl Scheduler {
    /// Plans an EXPAND in one commit and runs its attempts in the background. Dropping the receiver cancels nothing.
    ///
    /// # Errors
    /// When an input row is wrong, a cost budget cannot hold, or the store fails.
    pub async fn expand(&self, plan: ExpandPlan) -> Result<Expansion> {
        let services = Arc::clone(&self.services);
        let model = services.models.get(&plan.model)?.describe();
        services.sandbox(&plan.sandbox)?;
        if plan.options.max_cost_usd.is_some()
            && !model.free
            && model.price.is_none()
            && plan.options.allow_unknown_cost != Some(true)
        {
            return Err(SchedulerError::UnknownCost { model: plan.model });
        }
        let statement_id = plan.options.id.clone().unwrap_or_else(ids::fresh_id);
        // A statement that joins a run plans steps of it, which its conductor would plan too.
        let entry = self.conducting.begin(plan.run_id.as_ref().unwrap_or(&statement_id))?;
        services.store.control(lease::free_attempts_of_the_dead).await?;
        let (statement, ready, ended) = match StatementRecord::find(&services, &statement_id).await? {
            Some(statement) => resumed(&services, statement, &plan).await?,
            None => planned(&services, &plan, &statement_id).await?,
        };
        self.ensure_heartbeat();
        let index = match &plan.run_id {
            Some(run_id) => load_index(&services, run_id).await?,
            None => RunIndex::default(),
        };
        let (sender, endings) = mpsc::unbounded_channel();
        let planned = ready.iter().map(|attempt| Ending::open(attempt, "planned")).collect();
        let dispatch = Dispatch {
            pipeline: Pipeline::new(Arc::clone(&services), Arc::new(Mutex::new(index))),
            services,
            statement,
            entry,
            on_error: plan.options.on_error.unwrap_or(OnError::Record),
            concurrency: plan.concurrency.max(1),
            max_wall: plan.options.max_wall,
            sender,
        };
        tokio::spawn(dispatch.run(ready, ended));
        Ok(Expansion {
            statement_id,
            planned,
            endings,
        })
    }
}

/// Seeds are stored in signed columns; the highest bit is dropped.
fn to_signed(seed: u64) -> i64 {
    i64::try_from(seed & (u64::MAX >> 1)).unwrap_or(i64::MAX)
}

type Begun = (StatementRecord, VecDeque<Attempt>, Vec<Ending>);

/// Attempts of an EXPAND, checked row by row; nothing is written.
///
/// # Errors
/// When an input row is wrong.
pub(super) async fn attempts_of(services: &Services, plan: &ExpandPlan, statement_id: &str) -> Result<Vec<Attempt>> {
    let parents = parent_facts(services, &plan.rows).await?;
    let samples = i64::try_from(plan.options.samples.unwrap_or(1)).unwrap_or(i64::MAX);
    let now = services.now();
    let seed = plan.options.seed.map_or(now, to_signed);
    let first_step = match &plan.run_id {
        Some(run_id) => last_step(services, run_id).await? + 1,
        None => 1,
    };
    let mut attempts = Vec::new();
    for (ordinal, row) in (0i64..).zip(&plan.rows) {
        let (task_id, island) = check_row(services, ordinal, row, &parents).await?;
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
                queued_at: now,
            });
        }
    }
    Ok(attempts)
}

/// Writes the statement with all its attempts in one commit.
async fn planned(services: &Services, plan: &ExpandPlan, statement_id: &str) -> Result<Begun> {
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
        options: plan.options.to_string(),
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
    let (queued, scope, run_id, owner) = (
        attempts.clone(),
        statement_id.to_owned(),
        plan.run_id.clone(),
        services.owner.clone(),
    );
    txn.control(move |tx| {
        for (resource, limit) in limits {
            budget::set_limit(tx, &scope, resource, limit)?;
        }
        for attempt in &queued {
            queue::enqueue(tx, attempt)?;
        }
        if let Some(run_id) = run_id {
            lease::take_run(tx, &run_id, &owner, now)?;
        }
        Ok::<_, clade_catalog::BoxError>(())
    });
    services.store.commit(txn).await?;
    Ok((statement, attempts.into(), Vec::new()))
}

/// What a statement that was begun earlier still has to do, and what it has done.
async fn resumed(services: &Services, statement: StatementRecord, plan: &ExpandPlan) -> Result<Begun> {
    if statement.kind != "expand" || statement.sql != plan.sql {
        return Err(SchedulerError::Request(format!(
            "there is another statement '{}' already: it was `{}`; choose another id",
            statement.statement_id, statement.sql
        )));
    }
    let id = statement.statement_id.clone();
    let pending = services
        .store
        .control_read(move |conn| queue::pending(conn, &id))
        .await?;
    let ended = ended_attempts(services, &statement, &plan.settings).await?;
    Ok((statement, pending.into(), ended))
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

async fn last_step(services: &Services, run_id: &str) -> Result<i64> {
    super::run::Run::load(services, run_id).await?;
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

async fn parent_facts(services: &Services, rows: &[ExpandInput]) -> Result<HashMap<String, ParentFacts>> {
    let ids: Vec<&String> = rows
        .iter()
        .flat_map(|row| row.parent_id.iter().chain(&row.parent2_id))
        .collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let list: Vec<ScalarValue> = ids.iter().map(|id| ScalarValue::from(id.as_str())).collect();
    let list = ScalarValue::List(ScalarValue::new_list_nullable(&list, &arrow::datatypes::DataType::Utf8));
    let rows = services
        .queries
        .rows(
            "SELECT node_id, task_id, is_buggy, island FROM evo.nodes WHERE array_has($ids, node_id)",
            &[("ids", list)],
            None,
            None,
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
    let refuse = |reason: String| SchedulerError::Request(format!("EXPAND, input row {}: {reason}", ordinal + 1));
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

/// Runs the attempts of one statement.
struct Dispatch {
    services: Arc<Services>,
    pipeline: Pipeline,
    statement: StatementRecord,
    /// Ends before `sender`: who has read the last row may start the next statement.
    entry: Entry,
    on_error: OnError,
    concurrency: usize,
    max_wall: Option<Duration>,
    sender: mpsc::UnboundedSender<Result<Ending>>,
}

impl Dispatch {
    async fn run(mut self, ready: VecDeque<Attempt>, ended: Vec<Ending>) {
        let outcome = self.attempts(ready, ended).await;
        let closed = match outcome {
            Ok(Outcome { interrupted: true, .. }) => self.give_up_lease().await,
            Ok(outcome) => self.close(&outcome).await,
            Err(error) => {
                let closed = self
                    .close(&Outcome {
                        error: Some(error.to_string()),
                        ..Outcome::default()
                    })
                    .await;
                self.report(Err(error));
                closed
            }
        };
        if let Err(error) = closed {
            self.report(Err(error));
        }
    }

    /// Nobody may listen any more: that cancels nothing.
    fn report(&self, ending: Result<Ending>) {
        if self.sender.send(ending).is_err() {
            tracing::debug!(statement = %self.statement.statement_id, "nobody waits for the rows");
        }
    }

    async fn attempts(&mut self, mut ready: VecDeque<Attempt>, ended: Vec<Ending>) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        for ending in ended {
            outcome.count(&ending);
            self.report(Ok(ending));
        }
        let deadline = self.max_wall.map(|wall| tokio::time::Instant::now() + wall);
        let mut flights: JoinSet<Result<Ending>> = JoinSet::new();
        let mut stopping: Option<String> = None;
        loop {
            let draining = self.entry.control.drain.is_cancelled() || self.entry.control.kill.is_cancelled();
            while !draining && stopping.is_none() && flights.len() < self.concurrency {
                let Some(attempt) = ready.pop_front() else { break };
                match reserve::claim(&self.services, &attempt).await {
                    Ok((tries, reserved)) => {
                        let (pipeline, kill) = (self.pipeline.clone(), self.entry.control.kill.clone());
                        flights.spawn(async move { pipeline.run(attempt, tries, reserved, &kill).await });
                    }
                    Err(SchedulerError::Budget(exhausted)) if flights.is_empty() => {
                        stopping = Some(exhausted.to_string())
                    }
                    Err(SchedulerError::Budget(_)) => {
                        ready.push_front(attempt);
                        break;
                    }
                    Err(SchedulerError::LeaseLost(_)) => {
                        ready.push_back(attempt);
                        tokio::time::sleep(Duration::from_millis(500)).await;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            let wall_is_up = async {
                match deadline {
                    Some(deadline) if stopping.is_none() => tokio::time::sleep_until(deadline).await,
                    _ => std::future::pending().await,
                }
            };
            let ending = tokio::select! {
                ending = flights.join_next() => ending,
                () = wall_is_up => {
                    stopping = Some("the wall budget of the statement is used up".to_owned());
                    self.entry.control.kill.cancel();
                    continue;
                }
            };
            match ending {
                Some(ending) => {
                    let ending = ending??;
                    if ending.status == "planned" {
                        continue;
                    }
                    outcome.count(&ending);
                    let limit = match self.on_error {
                        OnError::Record => u64::MAX,
                        OnError::Fail => 1,
                        OnError::StopAfter(count) => count,
                    };
                    if outcome.failures >= limit && stopping.is_none() {
                        stopping = Some(format!(
                            "stopped after {} failed attempts, as on_error asks; the last: {}",
                            outcome.failures,
                            ending.error.clone().unwrap_or_default()
                        ));
                    }
                    self.report(Ok(ending));
                }
                None if stopping.is_some() => break,
                None if draining => {
                    outcome.interrupted = true;
                    return Ok(outcome);
                }
                None if ready.is_empty() => break,
                None => {}
            }
        }
        outcome.cancelled = record::cancel_pending(&self.services, &self.statement.statement_id).await?;
        outcome.error = stopping;
        if self.on_error == OnError::Fail
            && let Some(reason) = &outcome.error
        {
            self.report(Err(SchedulerError::Request(reason.clone())));
        }
        Ok(outcome)
    }

    async fn close(&self, outcome: &Outcome) -> Result<()> {
        let status = if outcome.done == 0 && outcome.failures > 0 || outcome.error.is_some() && outcome.cancelled > 0 {
            "failed"
        } else {
            "done"
        };
        let statement = StatementRecord {
            status: status.to_owned(),
            error: outcome.error.clone(),
            finished_at: Some(self.services.now()),
            ..self.statement.clone()
        };
        let mut txn = Txn::new();
        txn.append("evo.statements", statement.rows()?);
        self.services.store.commit(txn).await?;
        self.give_up_lease().await
    }

    async fn give_up_lease(&self) -> Result<()> {
        let Some(run_id) = self.statement.run_id.clone() else {
            return Ok(());
        };
        let owner = self.services.owner.clone();
        Ok(self
            .services
            .store
            .control(move |tx| lease::give_up_run(tx, &run_id, &owner))
            .await?)
    }
}

#[derive(Debug, Default)]
struct Outcome {
    done: u64,
    failures: u64,
    cancelled: usize,
    interrupted: bool,
    error: Option<String>,
}

impl Outcome {
    /// A statement of which every row failed has failed, whatever the rows are called.
    fn count(&mut self, ending: &Ending) {
        if ending.status == "done" && ending.state.as_deref() == Some("success") {
            self.done += 1;
        } else {
            self.failures += 1;
        }
    }
}
