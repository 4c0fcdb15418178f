//! One attempt, from its claim to the commit of its outcome: generate, check, execute, evaluate, record. A fault of the machine
//! or the provider is tried again by class; everything else ends as a row.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::candidate::{ProgramResult, ProgramRun, run_program};
use super::facts;
use super::park;
use super::preflight::preflight;
use super::retry;
use super::settle;
use crate::error::ErrorClass;
use crate::gym::Task;
use crate::sandbox::ResultState;
use crate::scheduler::attempt::Attempt;
use crate::scheduler::budget::reserve::{self, Claimed, Reserved};
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::generation::context::{self, Parents};
use crate::scheduler::generation::generate::{self, Generated};
use crate::scheduler::ids;
use crate::scheduler::queue::conducted::RunControl;
use crate::scheduler::record::{Ending, Finished, NodeRecord};
use crate::scheduler::run::index::{IndexedNode, NodeOutcome, RunIndex};
use crate::scheduler::services::Services;
use crate::scheduler::summaries::{self, Missing};

/// Runs attempts of one run or statement.
#[derive(Debug, Clone)]
pub struct Pipeline {
    services: Arc<Services>,
    index: Arc<Mutex<RunIndex>>,
    /// Told when an attempt that waits has given its time back.
    time_freed: Arc<Notify>,
}

impl Pipeline {
    /// A pipeline over the shared services and the index of its run.
    pub fn new(services: Arc<Services>, index: Arc<Mutex<RunIndex>>) -> Self {
        Self {
            services,
            index,
            time_freed: Arc::default(),
        }
    }

    /// Waits until an attempt in flight waits itself and has given its time back: another may fit into the budget now.
    pub async fn time_freed(&self) {
        self.time_freed.notified().await;
    }

    /// Runs an attempt that this process has claimed. While its model is paused it waits, which is no try; draining puts what
    /// waits back into the queue. It ends as planned when it went back.
    ///
    /// # Errors
    /// Only faults of the store and of the configuration; everything else is an ending.
    pub async fn run(&self, attempt: Attempt, mut claimed: Claimed, control: &RunControl) -> Result<Ending> {
        loop {
            let started_at = self.services.now();
            let error = match self.once(&attempt, &claimed, started_at, &control.kill).await {
                Ok(ending) => return Ok(ending),
                Err(error) => error,
            };
            let tries = claimed.tries;
            if let SchedulerError::LeaseLost(_) = &error {
                warn!(attempt = %attempt.attempt_id, "a result came after the lease had lapsed");
                return settle::late(&self.services, attempt, tries, started_at, &error).await;
            }
            if let SchedulerError::Model(model_error) = &error
                && let Some(pause) = model_error.pause()
            {
                park::note(&self.services, &attempt.model, pause).await?;
                debug!(attempt = %attempt.attempt_id, %error, "the attempt waits");
                match self.wait(&attempt, tries, park::time_left(pause), control).await {
                    Ok(true) => {}
                    Ok(false) => return settle::put_back(&self.services, attempt, tries).await,
                    Err(lost @ SchedulerError::LeaseLost(_)) => {
                        return settle::late(&self.services, attempt, tries, started_at, &lost).await;
                    }
                    Err(error) => return Err(error),
                }
                // Whoever took it over meanwhile asks the model; nobody asks twice.
                match reserve::time_again(&self.services, &attempt, &claimed).await {
                    Ok(reserved) => {
                        claimed.reserved = reserved;
                        claimed.requests += 1;
                        continue;
                    }
                    Err(lost @ SchedulerError::LeaseLost(_)) => {
                        return settle::late(&self.services, attempt, tries, started_at, &lost).await;
                    }
                    // Others hold the rest of the time; whoever conducts this attempt decides when it may go on.
                    Err(SchedulerError::Budget(_)) => {
                        return settle::put_back(&self.services, attempt, tries).await;
                    }
                    Err(error) => return Err(error),
                }
            }
            // Its generation took what was left of the time; whoever conducts this attempt decides when it may go on.
            if let SchedulerError::Budget(_) = &error {
                return settle::put_back(&self.services, attempt, tries).await;
            }
            let class = error.class();
            match class {
                ErrorClass::Cancelled => return settle::put_back(&self.services, attempt, tries).await,
                _ if class.is_retryable() && tries < attempt.settings.max_tries => {
                    let pause = retry::pause(class, tries, retry::asked_pause(&error), attempt.seed);
                    warn!(attempt = %attempt.attempt_id, tries, %class, %error, ?pause, "trying again");
                    match self.wait(&attempt, tries, pause, control).await {
                        Ok(true) => {}
                        Ok(false) => return settle::put_back(&self.services, attempt, tries).await,
                        Err(lost @ SchedulerError::LeaseLost(_)) => {
                            return settle::late(&self.services, attempt, tries, started_at, &lost).await;
                        }
                        Err(error) => return Err(error),
                    }
                    claimed = match reserve::claim(&self.services, &attempt).await {
                        Ok(claimed) => claimed,
                        Err(lost @ SchedulerError::LeaseLost(_)) => {
                            return settle::late(&self.services, attempt, tries, started_at, &lost).await;
                        }
                        // Others hold the rest of the budget; whoever conducts this attempt decides when it may go on.
                        Err(SchedulerError::Budget(_)) => {
                            return settle::put_back(&self.services, attempt, tries).await;
                        }
                        Err(error) => return Err(error),
                    };
                }
                _ => return settle::failed(&self.services, attempt, tries, started_at, &error).await,
            }
        }
    }

    /// Waits for so long, and holds no time of a budget meanwhile; false when somebody asked to drain or kill before.
    async fn wait(&self, attempt: &Attempt, tries: i64, time: Duration, control: &RunControl) -> Result<bool> {
        reserve::give_back_time(&self.services, attempt, tries).await?;
        self.time_freed.notify_one();
        Ok(park::wait(time, control).await)
    }

    async fn once(
        &self,
        attempt: &Attempt,
        claimed: &Claimed,
        started_at: i64,
        cancel: &CancellationToken,
    ) -> Result<Ending> {
        let task = self.services.task(&attempt.task_id).await?;
        let operator = attempt.operator()?;
        let mut nodes = context::nodes(&self.services, attempt, operator).await?;
        if claimed.paid_generation.is_some() {
            // The reply is there: nothing is asked for its prompt any more.
            summaries::fill_known(&self.services, attempt, &mut nodes, Missing::Facts).await?;
        } else {
            summaries::fill(&self.services, attempt, &mut nodes, cancel).await?;
        }
        let parents = Parents::of(attempt, &nodes)?;
        let generated = generate::generate(&self.services, attempt, claimed, operator, &task, &nodes, cancel).await?;
        let finished = self
            .execute(attempt, claimed, &task, &parents, generated, started_at, cancel)
            .await?;
        let ending = settle::done(&self.services, attempt, claimed.tries, &finished).await?;
        self.index.lock().add(IndexedNode {
            node_id: attempt.node_id(),
            step: attempt.step,
            generation: attempt.generation,
            island: attempt.island,
            code_hash: finished.node.program.code_hash,
            method_family: finished.node.program.method_family,
            signed_score: finished.node.signed_score,
            admitted: finished.node.admitted,
            outcome: finished.node.outcome,
        });
        Ok(ending)
    }

    /// Runs the program of a reply and gathers the facts of the node.
    #[expect(clippy::too_many_arguments, reason = "the stages of one attempt, each used once")]
    async fn execute(
        &self,
        attempt: &Attempt,
        claimed: &Claimed,
        task: &Arc<Task>,
        parents: &Parents,
        generated: Generated,
        started_at: i64,
        cancel: &CancellationToken,
    ) -> Result<Finished> {
        let program = facts::Program::of_reply(generated.text());
        let unusable = generated.fault.as_ref().map(facts::unusable_reply);
        let generation = attempt.generation;
        let duplicate = program.code_hash.as_deref().and_then(|hash| {
            let index = self.index.lock();
            index
                .duplicate_of(hash, generation)
                .map(|node| (node.node_id.clone(), node.outcome.clone()))
        });
        let (outcome, candidate, duplicate_of) = match (&program.code, duplicate) {
            (None, _) => {
                let outcome = unusable.unwrap_or_else(|| facts::code_missing(&program));
                (outcome, None, None)
            }
            (Some(_), Some((node_id, outcome))) => {
                debug!(attempt = %attempt.attempt_id, of = %node_id, "same program: its outcome is taken over");
                (outcome, None, Some(node_id))
            }
            (Some(code), None) => match self.preflight(attempt, task, code).await? {
                Some(refused) => (refused, None, None),
                None => {
                    let unbooked = if generated.committed { 0.0 } else { generated.seconds() };
                    let reserved = reserve::program_time(&self.services, attempt, claimed.reserved, unbooked).await?;
                    let result = self
                        .run_program(attempt, claimed.tries, reserved, task, code, cancel)
                        .await?;
                    (facts::outcome(task, &result), Some(result), None)
                }
            },
        };
        let signed_score = facts::signed_score(&outcome, task.row.higher_is_better);
        let index = self.index.lock();
        let node = NodeRecord {
            delta_vs_parent: parents.delta(signed_score),
            family_count_before: index.family_count(&program.method_family, generation),
            admitted: index.admits(signed_score, attempt.island, generation),
            is_buggy: signed_score.is_none(),
            signed_score,
            duplicate_of,
            outcome,
            program,
        };
        drop(index);
        Ok(Finished {
            node,
            generated,
            candidate,
            edges: parents.edges(signed_score),
            started_at,
            finished_at: self.services.now(),
        })
    }

    /// The outcome of a program that need not be run, where the statement or the task wants programs to be looked at.
    async fn preflight(&self, attempt: &Attempt, task: &Task, code: &str) -> Result<Option<NodeOutcome>> {
        if attempt.settings.preflight.unwrap_or(task.row.preflight) {
            preflight(&self.services, &attempt.sandbox, code).await
        } else {
            Ok(None)
        }
    }

    async fn run_program(
        &self,
        attempt: &Attempt,
        tries: i64,
        reserved: Reserved,
        task: &Arc<Task>,
        code: &str,
        cancel: &CancellationToken,
    ) -> Result<ProgramResult> {
        let run = ProgramRun {
            job_id: ids::job_id(&attempt.attempt_id, "validation", tries),
            sandbox: &attempt.sandbox,
            code,
            split: task.validation.as_ref().unwrap_or(&task.final_),
            self_reported: task.validation.is_none(),
            seed: attempt.seed,
            seconds: reserved.candidate_seconds,
            evaluation_seconds: reserved.evaluation_seconds,
            warm: attempt.settings.warm,
        };
        // What a search collects is only scored, never kept; the final run keeps its submission.
        let result = run_program(&self.services, run, cancel, None).await?;
        // A fault of the machine says nothing of the program: it is run again, and becomes a node only when that does not help.
        let is_unconfirmed = result.candidate.state == ResultState::SandboxUnconfirmed;
        if is_unconfirmed && tries < attempt.settings.max_tries {
            return Err(SchedulerError::Unconfirmed(result.candidate.detail.unwrap_or_default()));
        }
        Ok(result)
    }
}
