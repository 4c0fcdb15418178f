//! Conducts a run: draws attempts from the policy, keeps the workers busy, stops at a budget, drains or kills on request. The
//! two modes differ in one thing: a generation waits for all of its attempts before the next is drawn.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use clade_catalog::Txn;
use datafusion::common::ScalarValue;
use datafusion::common::runtime::SpawnedTask;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::draw::{self, Drawn};
use super::index::{IndexedNode, NodeOutcome, RunIndex};
use super::progress;
use super::wall_clock::{Scope, Signals, WallClock};
use crate::error::ErrorClass;
use crate::operators::PromptBudget;
use crate::scheduler::attempt::Attempt;
use crate::scheduler::attempt::pipeline::Pipeline;
use crate::scheduler::attempt::settle;
use crate::scheduler::budget::remaining::Remaining;
use crate::scheduler::budget::reserve;
use crate::scheduler::budget::{self, BudgetError, Resource};
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::final_run::final_run;
use crate::scheduler::queue;
use crate::scheduler::queue::conducted::RunControl;
use crate::scheduler::queue::lease::{self, RunLeaseError};
use crate::scheduler::record::{self, Ending};
use crate::scheduler::run::{Progress, Run};
use crate::scheduler::services::Services;

/// Failures of the machine or the provider in a row after which a run stops rather than spend its time failing.
const FAILURES_IN_A_ROW: usize = 5;
/// Pause before an attempt that another process holds is tried again.
const LEASE_PAUSE: Duration = Duration::from_secs(1);

/// Why a run stopped drawing attempts.
#[derive(Debug, Clone, PartialEq)]
pub enum StopReason {
    /// A budget is used up.
    Budget(&'static str),
    /// The policy has nothing to expand.
    PolicyEmpty,
    /// The user asked to drain or kill.
    Drained,
    /// CANCEL RUN.
    Cancelled,
    /// Another process conducts the run now.
    TakenOver,
    /// A fault that trying again does not mend.
    Failed(String),
}

impl StopReason {
    fn as_text(&self) -> String {
        match self {
            Self::Budget(resource) => (*resource).to_owned(),
            Self::PolicyEmpty => "policy_empty".to_owned(),
            Self::Drained => "drained".to_owned(),
            Self::Cancelled => "cancelled".to_owned(),
            Self::TakenOver => "taken_over".to_owned(),
            Self::Failed(_) => "failed".to_owned(),
        }
    }
}

/// Conducts one run.
#[derive(Debug)]
pub struct Conductor {
    services: Arc<Services>,
    run: Run,
    control: RunControl,
    pipeline: Pipeline,
    index: Arc<Mutex<RunIndex>>,
    position: Position,
    signals: Signals,
    /// What is in flight: ends with `control.kill` and when the wall budget is used up, drains with `control.drain` and when the
    /// run stops. The final run is not in flight.
    flights: RunControl,
}

impl Conductor {
    /// Prepares a run whose row and lease are in the store: reads what it has so far.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn prepare(services: Arc<Services>, run: Run, control: RunControl) -> Result<Self> {
        let index = Arc::new(Mutex::new(load_index(&services, &run.run_id).await?));
        let pipeline = Pipeline::new(Arc::clone(&services), Arc::clone(&index));
        let position = position(&services, &run).await?;
        let flights = control.flying();
        Ok(Self {
            services,
            run,
            control,
            pipeline,
            index,
            position,
            signals: Signals::default(),
            flights,
        })
    }

    /// Conducts the run to its end and records it.
    ///
    /// # Errors
    /// When the store fails; a failed run is a row, not an error.
    pub async fn conduct(mut self) -> Result<Progress> {
        let clock = WallClock::start(
            Arc::clone(&self.services),
            Scope {
                id: self.run.run_id.clone(),
                run_id: Some(self.run.run_id.clone()),
            },
            self.signals.clone(),
        );
        let watch = self.watch_signals();
        let mut flights = JoinSet::new();
        let stop = match self.search(&mut flights).await {
            Ok(stop) => stop,
            Err(error) => {
                self.break_off(flights).await;
                StopReason::Failed(error.to_string())
            }
        };
        info!(run = %self.run.run_id, ?stop, "no more attempts");
        let progress = match self.end(stop).await {
            Err(SchedulerError::RunLost(lost)) => self.left_to_another(&lost).await,
            progress => progress,
        };
        drop(watch);
        clock.stop().await;
        progress
    }

    /// Ends work when the clock says so: what is in flight when the wall budget is used up, everything (a final run too) when
    /// the run was cancelled or lost.
    fn watch_signals(&self) -> [SpawnedTask<()>; 2] {
        let (signals, kill) = (self.signals.clone(), self.control.kill.clone());
        let (used_up, flights) = (self.signals.used_up.clone(), self.flights.kill.clone());
        [
            SpawnedTask::spawn(async move {
                tokio::select! {
                    () = signals.cancelled.cancelled() => {}
                    () = signals.lost.cancelled() => {}
                }
                kill.cancel();
            }),
            SpawnedTask::spawn(async move {
                used_up.cancelled().await;
                flights.cancel();
            }),
        ]
    }

    /// How far the run is that another process conducts now; nothing of it is written here.
    async fn left_to_another(&self, lost: &lease::RunLost) -> Result<Progress> {
        warn!(run = %self.run.run_id, %lost, "the run is left to the other process");
        let mut progress = progress::progress(&self.services, &self.run).await?;
        progress.stop_reason = Some(StopReason::TakenOver.as_text());
        progress.error = Some(lost.to_string());
        Ok(progress)
    }

    async fn keep_lease(&self) -> Result<()> {
        let (run_id, owner) = (self.run.run_id.clone(), self.services.owner.clone());
        Ok(self
            .services
            .store
            .control_read(move |conn| lease::keep_run(conn, &run_id, &owner))
            .await?)
    }

    /// Ends what is in flight after a fault, so that a later process finds all of it in the queue.
    async fn break_off(&self, mut flights: JoinSet<Result<Ending>>) {
        self.control.kill.cancel();
        while let Some(ending) = flights.join_next().await {
            if let Err(error) = ending.map_err(SchedulerError::from).flatten() {
                warn!(run = %self.run.run_id, %error, "an attempt broke off");
            }
        }
        if let Err(error) = settle::put_back_all(&self.services, &self.run.statement_id).await {
            warn!(run = %self.run.run_id, %error, "attempts could not be put back; they are free when this process ends");
        }
    }

    async fn search(&mut self, flights: &mut JoinSet<Result<Ending>>) -> Result<StopReason> {
        let statement = self.run.statement_id.clone();
        self.services.store.control(lease::free_attempts_of_the_dead).await?;
        let mut ready: VecDeque<Attempt> = self
            .services
            .store
            .control_read(move |conn| queue::pending(conn, &statement))
            .await?
            .into();
        let mut failures = 0;
        let mut stop: Option<StopReason> = None;
        loop {
            if stop.is_none() {
                stop = self.requested_stop();
            }
            if stop.is_some() {
                self.flights.drain.cancel();
            }
            let wants_more = if self.run.has_generations() {
                flights.is_empty()
            } else {
                flights.len() < self.run.options.workers
            };
            // Another attempt can start only when one in flight has ended.
            let mut is_blocked = self.run.has_generations();
            if stop.is_none() && ready.is_empty() && wants_more {
                let RunControl { drain, kill } = self.control.clone();
                // A policy may take long, or never end.
                let planned = tokio::select! {
                    planned = self.plan() => planned,
                    () = drain.cancelled() => Err(SchedulerError::Cancelled),
                    () = kill.cancelled() => Err(SchedulerError::Cancelled),
                };
                match planned {
                    Ok(planned) if planned.is_empty() && flights.is_empty() => stop = Some(StopReason::PolicyEmpty),
                    Ok(planned) => {
                        is_blocked |= planned.is_empty();
                        ready.extend(planned);
                    }
                    Err(SchedulerError::Budget(exhausted)) if flights.is_empty() => {
                        stop = Some(StopReason::Budget(exhausted.resource));
                    }
                    Err(SchedulerError::Budget(_)) => is_blocked = true,
                    Err(SchedulerError::Cancelled) => continue,
                    Err(SchedulerError::RunLost(_)) => {
                        self.control.kill.cancel();
                        stop = Some(StopReason::TakenOver);
                    }
                    Err(error) => {
                        stop = Some(StopReason::Failed(error.to_string()));
                    }
                }
            }
            while stop.is_none() && flights.len() < self.run.options.workers {
                let Some(attempt) = ready.pop_front() else { break };
                match reserve::claim(&self.services, &attempt).await {
                    Ok(claimed) => {
                        let (pipeline, control) = (self.pipeline.clone(), self.flights.clone());
                        flights.spawn(async move { pipeline.run(attempt, claimed, &control).await });
                    }
                    Err(SchedulerError::Budget(exhausted)) if flights.is_empty() => {
                        stop = Some(StopReason::Budget(exhausted.resource));
                    }
                    Err(SchedulerError::Budget(_)) => {
                        ready.push_front(attempt);
                        is_blocked = true;
                        break;
                    }
                    Err(SchedulerError::LeaseLost(_)) => {
                        // A process on another machine held it and may be dead: its lease lapses in a while.
                        ready.push_back(attempt);
                        is_blocked = true;
                        self.services.clock.sleep(LEASE_PAUSE).await;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            if stop.is_none() && !is_blocked && flights.len() < self.run.options.workers {
                continue;
            }
            let idle = flights.is_empty();
            let ending = tokio::select! {
                biased;
                ending = flights.join_next() => ending,
                () = self.signals.used_up.cancelled(), if stop.is_none() => continue,
                () = self.pipeline.time_freed(), if stop.is_none() => continue,
            };
            match ending {
                Some(ending) => {
                    let ending = ending??;
                    if let Some(reason) = note(&ending, &mut failures) {
                        stop = stop.or(Some(reason));
                    }
                    if ending.status == "planned" {
                        ready.push_back(ending.attempt);
                    }
                }
                None => {
                    if let Some(stop) = stop.take_if(|_| idle) {
                        return Ok(stop);
                    }
                }
            }
        }
    }

    fn requested_stop(&self) -> Option<StopReason> {
        if self.signals.lost.is_cancelled() {
            Some(StopReason::TakenOver)
        } else if self.signals.cancelled.is_cancelled() {
            Some(StopReason::Cancelled)
        } else if self.control.drain.is_cancelled() || self.control.kill.is_cancelled() {
            Some(StopReason::Drained)
        } else if self.signals.used_up.is_cancelled() {
            Some(StopReason::Budget(Resource::WallSeconds.as_str()))
        } else {
            None
        }
    }

    /// Draws and plans the next attempts: one, or a generation.
    async fn plan(&mut self) -> Result<Vec<Attempt>> {
        let run = &self.run;
        let wanted = if run.has_generations() {
            run.options.generation_size
        } else {
            1
        };
        let remaining = Remaining::of_run(&self.services, &run.run_id).await?;
        let slots = wanted.min(remaining.steps);
        if slots < 1 {
            let scope = run.run_id.clone();
            let limit = run.options.steps as f64;
            return Err(SchedulerError::Budget(budget::BudgetExhausted {
                scope,
                resource: Resource::Steps.as_str(),
                wanted: 1.0,
                left: 0.0,
                limit,
            }));
        }
        let snapshot = self.services.store.snapshot(None).await?;
        let mut candidates = draw::candidates(&self.services, run, &self.index, Arc::clone(&snapshot)).await?;
        let mut attempts = Vec::new();
        for step in self.position.next_step..self.position.next_step + slots {
            let Some(drawn) = draw::draw(run, &candidates, step)? else {
                break;
            };
            candidates.taken(&drawn);
            let prompt_budget = remaining.prompt_budget(step - self.position.next_step);
            attempts.push(self.attempt(step, snapshot.seq(), drawn, prompt_budget));
        }
        if attempts.is_empty() {
            return Ok(attempts);
        }
        let mut txn = Txn::new();
        txn.append("evo.attempts", record::planned_rows(&attempts)?);
        let (planned, run_id, owner) = (attempts.clone(), run.run_id.clone(), self.services.owner.clone());
        txn.control(move |tx| {
            lease::keep_run(tx, &run_id, &owner)?;
            for attempt in &planned {
                reserve::step(tx, attempt).map_err(|error| Box::new(error) as clade_catalog::BoxError)?;
                queue::enqueue(tx, attempt)?;
            }
            Ok::<_, clade_catalog::BoxError>(())
        });
        self.services.store.commit(txn).await?;
        self.position.next_step += attempts.len() as i64;
        self.position.next_generation += 1;
        Ok(attempts)
    }

    fn attempt(&self, step: i64, snapshot_id: i64, drawn: Drawn, prompt_budget: PromptBudget) -> Attempt {
        let run = &self.run;
        let ordinal = step - 1;
        Attempt {
            attempt_id: crate::scheduler::ids::attempt_id(&run.statement_id, ordinal, 0),
            statement_id: run.statement_id.clone(),
            run_id: Some(run.run_id.clone()),
            scope: run.run_id.clone(),
            task_id: run.task_id.clone(),
            ordinal,
            sample: 0,
            step,
            generation: run.has_generations().then_some(self.position.next_generation),
            island: self.island(&drawn, ordinal),
            operator: drawn.operator,
            parent_id: drawn.parent_id,
            parent2_id: drawn.parent2_id,
            seed: crate::scheduler::ids::derive_seed(run.options.seed, "step", step, 0),
            snapshot_id,
            policy: Some(run.policy.clone()),
            draw: Some(drawn.record),
            model: run.model.clone(),
            sandbox: run.sandbox.clone(),
            settings: run.options.attempt.clone(),
            prompt_budget,
            queued_at: self.services.now(),
        }
    }

    /// A child lives on the island that its parents were drawn for, else on its first parent's; drafts go round.
    fn island(&self, drawn: &Drawn, ordinal: i64) -> i64 {
        if let Some(island) = drawn.island {
            return island;
        }
        let parent = drawn.parent_id.as_deref().and_then(|id| self.index.lock().place(id));
        parent.map_or(ordinal % self.run.options.islands, |place| place.island)
    }

    /// Final selection, final run and grade where the search ended by itself; then the run's last row.
    async fn end(&mut self, stop: StopReason) -> Result<Progress> {
        let services = Arc::clone(&self.services);
        self.keep_lease().await?;
        if matches!(
            stop,
            StopReason::Cancelled | StopReason::Budget(_) | StopReason::PolicyEmpty
        ) {
            // Nobody takes up what a run that has ended still had in the queue.
            settle::cancel_pending(&services, &self.run.statement_id).await?;
        }
        let mut progress = progress::progress(&services, &self.run).await?;
        progress.stop_reason = Some(stop.as_text());
        match &stop {
            StopReason::Budget(_) | StopReason::PolicyEmpty => {
                progress.status = "finished";
                if self.run.options.grade {
                    match final_run(&services, &self.run, &self.control.kill).await {
                        Ok(done) => {
                            progress.final_node_id = done.node_id;
                            progress.error = done.error.map(|error| format!("final run: {error}"));
                        }
                        Err(_) if self.signals.cancelled.is_cancelled() => {
                            progress.status = "cancelled";
                            progress.stop_reason = Some(StopReason::Cancelled.as_text());
                        }
                        Err(SchedulerError::Cancelled) => progress.status = "interrupted",
                        Err(error) => progress.error = Some(format!("final run: {error}")),
                    }
                }
            }
            StopReason::Drained => progress.status = "interrupted",
            StopReason::Cancelled => progress.status = "cancelled",
            // It had the lease a moment ago, so it was given back: the run can go on.
            StopReason::TakenOver => progress.status = "interrupted",
            StopReason::Failed(message) => {
                progress.status = "failed";
                progress.error = Some(message.clone());
            }
        }
        progress.finished_at = Some(services.now());
        let mut txn = Txn::new();
        txn.append("evo.runs", self.run.rows(&progress)?);
        if progress.status != "interrupted" {
            txn.append(
                "evo.statements",
                crate::scheduler::record::statement_rows::ended(&self.services, &self.run.statement_id, &progress)
                    .await?,
            );
        }
        let (run_id, owner) = (self.run.run_id.clone(), services.owner.clone());
        txn.control(move |tx| {
            lease::keep_run(tx, &run_id, &owner)?;
            tx.execute("DELETE FROM run_requests WHERE run_id = ?1", [&run_id])?;
            Ok::<_, RunLeaseError>(lease::give_up_run(tx, &run_id, &owner)?)
        });
        services.store.commit(txn).await?;
        Ok(progress)
    }
}

/// What an ending means for the run. A node whose program the machine could not run is a failure like an attempt without a node.
fn note(ending: &Ending, failures: &mut usize) -> Option<StopReason> {
    let is_node = ending.status == "done";
    if is_node && ending.error_class.as_deref() != Some(ErrorClass::Infra.as_str()) {
        *failures = 0;
        return None;
    }
    if !is_node && ending.status != "failed" {
        return None;
    }
    let message = ending.error.clone().unwrap_or_default();
    if ending.error_class.as_deref() == Some(ErrorClass::Config.as_str()) {
        return Some(StopReason::Failed(message));
    }
    *failures += 1;
    (*failures >= FAILURES_IN_A_ROW)
        .then(|| StopReason::Failed(format!("{failures} attempts in a row failed; the last: {message}")))
}

/// Where a run stands. Only its conductor plans for it, so the position is read once and counted on.
#[derive(Debug)]
struct Position {
    next_step: i64,
    next_generation: i64,
}

async fn position(services: &Services, run: &Run) -> Result<Position> {
    let rows = services
        .queries
        .rows(
            "SELECT max(step) AS step, max(generation) AS generation FROM evo.attempts WHERE run_id = $run",
            &[("run", ScalarValue::from(run.run_id.as_str()))],
            None,
            None,
        )
        .await
        .map_err(SchedulerError::query("the run's position"))?;
    let read = || -> datafusion::error::Result<Position> {
        let row = rows.first();
        let step = row.map(|row| row.optional_int("step")).transpose()?.flatten();
        let generation = row.map(|row| row.optional_int("generation")).transpose()?.flatten();
        Ok(Position {
            next_step: step.unwrap_or(0) + 1,
            next_generation: generation.map_or(0, |last| last + 1),
        })
    };
    read().map_err(SchedulerError::query("the run's position"))
}

/// Reads a run's nodes into an index.
///
/// # Errors
/// When the query fails.
pub async fn load_index(services: &Services, run_id: &str) -> Result<RunIndex> {
    let rows = services
        .queries
        .rows(
            "SELECT node_id, step, generation, island, code_hash, method_family, signed_score, admitted, status, score, score_source,
                    self_reported_score, error_class, error_signature, error
             FROM evo.nodes WHERE run_id = $run ORDER BY step",
            &[("run", ScalarValue::from(run_id))],
            None,
            None,
        )
        .await
        .map_err(SchedulerError::query("nodes of the run"))?;
    let read = || -> datafusion::error::Result<RunIndex> {
        let mut index = RunIndex::default();
        for row in rows.iter() {
            index.add(IndexedNode {
                node_id: row.text("node_id")?,
                step: row.int("step")?,
                generation: row.optional_int("generation")?,
                island: row.int("island")?,
                code_hash: row.optional_text("code_hash")?,
                method_family: row.text("method_family")?,
                signed_score: row.optional_float("signed_score")?,
                admitted: row.bool("admitted")?,
                outcome: NodeOutcome {
                    status: row.text("status")?,
                    score: row.optional_float("score")?,
                    score_source: row.text("score_source")?,
                    self_reported_score: row.optional_float("self_reported_score")?,
                    error_class: row.optional_text("error_class")?,
                    error_signature: row.optional_text("error_signature")?,
                    error: row.optional_text("error")?,
                },
            });
        }
        Ok(index)
    };
    read().map_err(SchedulerError::query("nodes of the run"))
}

// Budget errors travel through commits as boxed errors; this keeps the conversion in one place.
impl From<BudgetError> for SchedulerError {
    fn from(error: BudgetError) -> Self {
        match error {
            BudgetError::Exhausted(exhausted) => Self::Budget(exhausted),
            BudgetError::Control(error) => Self::Store(clade_catalog::StoreError::Control(Box::new(error))),
        }
    }
}
