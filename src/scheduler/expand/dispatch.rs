//! The work of an EXPAND: its attempts are run some at a time, within its budgets, and reported as they end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use clade_catalog::Txn;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::warn;

use crate::dialect::OnError;
use crate::scheduler::attempt::Attempt;
use crate::scheduler::attempt::pipeline::Pipeline;
use crate::scheduler::attempt::settle;
use crate::scheduler::budget::reserve;
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::queue::conducted::{Place, RunControl};
use crate::scheduler::queue::lease;
use crate::scheduler::record::Ending;
use crate::scheduler::record::statement_rows::StatementRecord;
use crate::scheduler::run::Run;
use crate::scheduler::run::cancel;
use crate::scheduler::run::wall_clock::{Scope, Signals, WallClock};
use crate::scheduler::services::Services;

/// Pause before an attempt that another process holds is tried again.
const LEASE_PAUSE: Duration = Duration::from_millis(500);

/// Runs the attempts of one statement.
pub(super) struct Dispatch {
    pub(super) services: Arc<Services>,
    pub(super) pipeline: Pipeline,
    pub(super) statement: StatementRecord,
    pub(super) control: RunControl,
    pub(super) on_error: OnError,
    pub(super) concurrency: usize,
    /// Given up before the channel closes: who has read the last row may send the statement again.
    pub(super) _places: Vec<Place>,
    pub(super) sender: mpsc::UnboundedSender<Result<Ending>>,
}

impl Dispatch {
    /// Runs what is ready and reports every ending, those of earlier processes first; then records how the statement ended.
    pub(super) async fn run(self, ready: VecDeque<Attempt>, ended: Vec<Ending>) {
        let is_over = ready.is_empty() && self.statement.finished_at.is_some();
        let worked = if is_over {
            ended.into_iter().for_each(|ending| self.report(Ok(ending)));
            Ok(())
        } else {
            self.work(ready, ended).await
        };
        for outcome in [worked, self.give_up_lease().await] {
            if let Err(error) = outcome {
                self.report(Err(error));
            }
        }
    }

    async fn work(&self, ready: VecDeque<Attempt>, ended: Vec<Ending>) -> Result<()> {
        let signals = Signals::default();
        let clock = WallClock::start(
            Arc::clone(&self.services),
            Scope {
                id: self.statement.statement_id.clone(),
                run_id: self.statement.run_id.clone(),
            },
            signals.clone(),
        );
        let mut flights = JoinSet::new();
        let outcome = match self.attempts(&mut flights, ready, ended, &signals).await {
            Ok(outcome) => outcome,
            Err(error) => self.broken_off(flights, error).await,
        };
        clock.stop().await;
        if signals.cancelled.is_cancelled()
            && let Some(run_id) = &self.statement.run_id
        {
            cancel::idle_run(&self.services, &Run::load(&self.services, run_id).await?).await?;
        }
        if outcome.interrupted {
            return Ok(());
        }
        self.close(&outcome).await
    }

    /// A fault has broken the work off: what is in flight goes back into the queue, where the statement finds it when it is sent
    /// again under its id.
    async fn broken_off(&self, mut flights: JoinSet<Result<Ending>>, error: SchedulerError) -> Outcome {
        self.control.kill.cancel();
        while let Some(ending) = flights.join_next().await {
            match ending.map_err(SchedulerError::from).flatten() {
                Ok(ending) if ending.status != "planned" => self.report(Ok(ending)),
                Ok(_) => {}
                Err(error) => warn!(statement = %self.statement.statement_id, %error, "an attempt broke off"),
            }
        }
        if let Err(error) = settle::put_back_all(&self.services, &self.statement.statement_id).await {
            warn!(statement = %self.statement.statement_id, %error, "attempts could not be put back; they are free when this process ends");
        }
        let outcome = Outcome {
            broken_off: true,
            error: Some(error.to_string()),
            ..Outcome::default()
        };
        self.report(Err(error));
        outcome
    }

    /// Nobody may listen any more: that cancels nothing.
    fn report(&self, ending: Result<Ending>) {
        if self.sender.send(ending).is_err() {
            tracing::debug!(statement = %self.statement.statement_id, "nobody waits for the rows");
        }
    }

    async fn attempts(
        &self,
        flights: &mut JoinSet<Result<Ending>>,
        mut ready: VecDeque<Attempt>,
        ended: Vec<Ending>,
        signals: &Signals,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        for ending in ended {
            outcome.count(&ending);
            self.report(Ok(ending));
        }
        let mut stopping: Option<String> = None;
        let flying = self.control.flying();
        loop {
            let has_work = !(ready.is_empty() && flights.is_empty());
            if has_work
                && stopping.is_none()
                && let Some(reason) = self.reason_to_stop(signals)
            {
                stopping = Some(reason);
                self.control.kill.cancel();
            }
            if stopping.is_some() {
                flying.drain.cancel();
            }
            let draining = self.control.drain.is_cancelled() || self.control.kill.is_cancelled();
            while !draining && stopping.is_none() && flights.len() < self.concurrency {
                let Some(attempt) = ready.pop_front() else { break };
                match reserve::claim(&self.services, &attempt).await {
                    Ok(claimed) => {
                        let (pipeline, control) = (self.pipeline.clone(), flying.clone());
                        flights.spawn(async move { pipeline.run(attempt, claimed, &control).await });
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
                        self.services.clock.sleep(LEASE_PAUSE).await;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            let ending = tokio::select! {
                biased;
                ending = flights.join_next() => ending,
                () = signals.any(), if stopping.is_none() => continue,
                () = self.pipeline.time_freed(), if stopping.is_none() => continue,
            };
            match ending {
                Some(ending) => {
                    let ending = ending??;
                    if ending.status == "planned" {
                        ready.push_back(ending.attempt);
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
        outcome.cancelled = settle::cancel_pending(&self.services, &self.statement.statement_id).await?;
        outcome.error = stopping;
        if self.on_error == OnError::Fail
            && let Some(reason) = &outcome.error
        {
            self.report(Err(SchedulerError::Request(reason.clone())));
        }
        Ok(outcome)
    }

    fn reason_to_stop(&self, signals: &Signals) -> Option<String> {
        let run_id = self.statement.run_id.as_deref().unwrap_or_default();
        if signals.lost.is_cancelled() {
            Some(format!("run '{run_id}' was taken over by another process"))
        } else if signals.cancelled.is_cancelled() {
            Some(format!("run '{run_id}' was cancelled"))
        } else if signals.used_up.is_cancelled() {
            Some("the wall budget of the statement is used up".to_owned())
        } else {
            None
        }
    }

    async fn close(&self, outcome: &Outcome) -> Result<()> {
        let all_failed = outcome.done == 0 && outcome.failures > 0;
        let cut_short = outcome.error.is_some() && outcome.cancelled > 0;
        let status = if outcome.broken_off || all_failed || cut_short {
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
        Ok(())
    }

    async fn give_up_lease(&self) -> Result<()> {
        match &self.statement.run_id {
            Some(run_id) => lease::release_run(&self.services, run_id).await,
            None => Ok(()),
        }
    }
}

#[derive(Debug, Default)]
struct Outcome {
    done: u64,
    failures: u64,
    cancelled: usize,
    interrupted: bool,
    broken_off: bool,
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
