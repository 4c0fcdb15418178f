//! One attempt, from its claim to the commit of its outcome: generate, check, execute, evaluate, record. A fault of the machine
//! or the provider is tried again by class; everything else ends as a row.

use std::sync::Arc;

use clade_catalog::Txn;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::attempt::Attempt;
use super::budget::{self, Resource};
use super::candidate::{ProgramResult, ProgramRun, run_program};
use super::context::{self, Parents};
use super::error::{Result, SchedulerError};
use super::facts;
use super::generate::{self, Generated};
use super::ids;
use super::index::{IndexedNode, NodeOutcome, RunIndex};
use super::queue;
use super::record::{self, Finished, NodeRecord};
use super::reserve::{self, Reserved};
use super::retry;
use super::services::Services;
use crate::error::ErrorClass;
use crate::gym::Task;
use crate::operators::PromptBudget;

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// The attempt.
    pub attempt: Attempt,
    /// Status of its row: done, failed, cancelled or abandoned; planned when it went back into the queue.
    pub status: &'static str,
    /// Node it became.
    pub node_id: Option<String>,
    /// Result state of the node.
    pub state: Option<String>,
    /// Validation score.
    pub score: Option<f64>,
    /// Gain over the best scored parent.
    pub delta_vs_parent: Option<f64>,
    /// Class of the failure.
    pub error_class: Option<String>,
    /// Message of the failure.
    pub error: Option<String>,
    /// Prompt tokens.
    pub tokens_prompt: Option<i64>,
    /// Completion tokens.
    pub tokens_completion: Option<i64>,
    /// Cost in US dollars.
    pub cost_usd: Option<f64>,
    /// When it was taken up.
    pub started_at: Option<i64>,
    /// When it ended.
    pub finished_at: Option<i64>,
}

/// Runs attempts of one run or statement.
#[derive(Debug, Clone)]
pub struct Pipeline {
    services: Arc<Services>,
    index: Arc<Mutex<RunIndex>>,
}

impl Pipeline {
    /// A pipeline over the shared services and the index of its run.
    pub fn new(services: Arc<Services>, index: Arc<Mutex<RunIndex>>) -> Self {
        Self { services, index }
    }

    /// Runs an attempt that this process has claimed as try number `tries`.
    ///
    /// # Errors
    /// Only faults of the store and of the configuration; everything else is an ending.
    pub async fn run(
        &self,
        attempt: Attempt,
        mut tries: i64,
        mut reserved: Reserved,
        cancel: &CancellationToken,
    ) -> Result<Ending> {
        loop {
            let started_at = self.services.now();
            let error = match self.once(&attempt, tries, reserved, started_at, cancel).await {
                Ok(ending) => return Ok(ending),
                Err(error) => error,
            };
            if let SchedulerError::LeaseLost(_) = &error {
                warn!(attempt = %attempt.attempt_id, tries, "the result came after the lease had lapsed");
                return record::late(&self.services, attempt, tries, started_at, &error).await;
            }
            let class = error.class();
            match class {
                ErrorClass::Cancelled => return record::put_back(&self.services, attempt, tries).await,
                _ if class.is_retryable() && tries < attempt.settings.max_tries => {
                    let pause = retry::pause(class, tries, retry::asked_pause(&error), attempt.seed);
                    warn!(attempt = %attempt.attempt_id, tries, %class, %error, ?pause, "trying again");
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = cancel.cancelled() => return record::put_back(&self.services, attempt, tries).await,
                    }
                    (tries, reserved) = reserve::claim(&self.services, &attempt).await?;
                }
                _ => return record::failed(&self.services, attempt, tries, started_at, &error).await,
            }
        }
    }

    async fn once(
        &self,
        attempt: &Attempt,
        tries: i64,
        reserved: Reserved,
        started_at: i64,
        cancel: &CancellationToken,
    ) -> Result<Ending> {
        let task = self.services.task(&attempt.task_id).await?;
        let operator = attempt.operator()?;
        let nodes = context::nodes(&self.services, attempt, operator).await?;
        let parents = Parents::of(attempt, &nodes)?;
        let prompt_budget = self.prompt_budget(attempt).await?;
        let generated = generate::generate(
            &self.services,
            attempt,
            tries,
            operator,
            &task,
            &nodes,
            prompt_budget,
            cancel,
        )
        .await?;
        let finished = self
            .execute(attempt, tries, reserved, &task, &parents, generated, started_at, cancel)
            .await?;
        self.commit(attempt, tries, finished).await
    }

    async fn prompt_budget(&self, attempt: &Attempt) -> Result<PromptBudget> {
        let scope = attempt.scope.clone();
        let balances = self
            .services
            .store
            .control_read(move |conn| {
                Ok::<_, rusqlite::Error>((
                    budget::balance(conn, &scope, Resource::Steps)?,
                    budget::balance(conn, &scope, Resource::ActiveSeconds)?,
                ))
            })
            .await?;
        let (steps, seconds) = balances;
        Ok(PromptBudget {
            steps_left: steps.limit.map(|limit| (limit - steps.spent) as i64),
            seconds_left: seconds.limit.map(|limit| limit - seconds.spent),
        })
    }

    /// Runs the program of a reply and gathers the facts of the node.
    #[expect(clippy::too_many_arguments, reason = "the stages of one attempt, each used once")]
    async fn execute(
        &self,
        attempt: &Attempt,
        tries: i64,
        reserved: Reserved,
        task: &Arc<Task>,
        parents: &Parents,
        generated: Generated,
        started_at: i64,
        cancel: &CancellationToken,
    ) -> Result<Finished> {
        let program = facts::Program::of_reply(generated.text());
        let generation = attempt.generation;
        let duplicate = program.code_hash.as_deref().and_then(|hash| {
            let index = self.index.lock();
            index
                .duplicate_of(hash, generation)
                .map(|node| (node.node_id.clone(), node.outcome.clone()))
        });
        let (outcome, candidate, duplicate_of) = match (&program.code, duplicate) {
            (None, _) => (facts::code_missing(&program), None, None),
            (Some(_), Some((node_id, outcome))) => {
                debug!(attempt = %attempt.attempt_id, of = %node_id, "same program: its outcome is taken over");
                (outcome, None, Some(node_id))
            }
            (Some(code), None) => {
                let result = self.run_program(attempt, tries, reserved, task, code, cancel).await?;
                (facts::outcome(task, &result), Some(result), None)
            }
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
        run_program(&self.services, run, cancel, None).await
    }

    /// Commits all rows of a finished attempt, its spend and its leave from the queue: all or nothing.
    async fn commit(&self, attempt: &Attempt, tries: i64, finished: Finished) -> Result<Ending> {
        let ending = finished.ending(attempt);
        let mut txn = Txn::new();
        record::rows(&self.services, &mut txn, attempt, tries, &finished).await?;
        let spend = finished.spend();
        let (id, owner, scope) = (
            attempt.attempt_id.clone(),
            self.services.owner.clone(),
            attempt.scope.clone(),
        );
        txn.control(move |tx| {
            queue::finish(tx, &id, &owner, tries)?;
            budget::release(tx, &id)?;
            for (resource, amount) in &spend {
                budget::spend(tx, &scope, *resource, *amount)?;
            }
            Ok::<_, queue::QueueError>(())
        });
        self.services.store.commit(txn).await?;
        self.index.lock().add(IndexedNode {
            node_id: attempt.node_id(),
            step: attempt.step,
            generation: attempt.generation,
            island: attempt.island,
            code_hash: finished.node.program.code_hash.clone(),
            method_family: finished.node.program.method_family.clone(),
            signed_score: finished.node.signed_score,
            outcome: NodeOutcome {
                ..finished.node.outcome
            },
        });
        Ok(ending)
    }
}
