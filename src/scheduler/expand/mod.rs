//! EXPAND: every input row and sample becomes an attempt, planned in one commit; what ends is streamed as it ends. A statement
//! that is run again under its id goes on where it was and repeats nothing.

mod dispatch;
mod plan;
mod resume;

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use self::dispatch::Dispatch;
pub(super) use self::plan::attempts_of;
use super::attempt::{Attempt, AttemptSettings};
use super::control::Scheduler;
use super::error::{Result, SchedulerError};
use super::ids;
use super::record::Ending;
use super::services::Services;
use super::summaries;
use crate::dialect::{ExpandOptions, OnError};
use crate::operators::Operator;
use crate::plan::ExpandInput;
use crate::scheduler::attempt::pipeline::Pipeline;
use crate::scheduler::queue::conducted::RunControl;
use crate::scheduler::queue::lease;
use crate::scheduler::record::statement_rows::StatementRecord;
use crate::scheduler::run::conductor::load_index;
use crate::scheduler::run::index::RunIndex;

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

/// A statement as it stands when its work begins: what is still to be done, and what has ended.
struct Begun {
    statement: StatementRecord,
    ready: Vec<Attempt>,
    ended: Vec<Ending>,
}

impl Scheduler {
    /// Plans an EXPAND in one commit and runs its attempts in the background. Dropping the receiver cancels nothing.
    ///
    /// # Errors
    /// When an input row is wrong, a cost budget cannot hold, somebody is at work on the statement or on the run it adds to, or the
    /// store fails.
    pub async fn expand(&self, plan: ExpandPlan) -> Result<Expansion> {
        let services = Arc::clone(&self.services);
        let model = services.models.get(&plan.model).await?.describe();
        services.sandbox(&plan.sandbox)?;
        if plan.options.max_cost_usd.is_some()
            && !model.free
            && model.price.is_none()
            && plan.options.allow_unknown_cost != Some(true)
        {
            return Err(SchedulerError::UnknownCost { model: plan.model });
        }
        let is_limited = plan.options.max_cost_usd.is_some() && plan.options.allow_unknown_cost != Some(true);
        summaries::check_model(&services, &plan.settings, is_limited).await?;
        let statement_id = plan.options.id.clone().unwrap_or_else(ids::fresh_id);
        let control = RunControl::default();
        let mut places = vec![self.conducted.enter(&statement_id, &control)?];
        self.ensure_heartbeat();
        if let Some(run_id) = &plan.run_id {
            places.push(self.conducted.enter(run_id, &control)?);
            lease::hold_run(&services, run_id).await?;
        }
        let begun = begin(&services, &plan, &statement_id).await;
        let (begun, index) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                if let Some(run_id) = &plan.run_id {
                    lease::release_run_after(&services, run_id, &error).await;
                }
                return Err(error);
            }
        };
        let (sender, endings) = mpsc::unbounded_channel();
        let planned = begun
            .ready
            .iter()
            .map(|attempt| Ending::open(attempt, "planned"))
            .collect();
        let dispatch = Dispatch {
            pipeline: Pipeline::new(Arc::clone(&services), Arc::new(Mutex::new(index))),
            services,
            statement: begun.statement,
            control,
            on_error: plan.options.on_error.unwrap_or(OnError::Record),
            concurrency: plan.concurrency.max(1),
            _places: places,
            sender,
        };
        tokio::spawn(dispatch.run(begun.ready.into(), begun.ended));
        Ok(Expansion {
            statement_id,
            planned,
            endings,
        })
    }
}

/// Plans the statement, or finds what an earlier process has left of it.
async fn begin(services: &Services, plan: &ExpandPlan, statement_id: &str) -> Result<(Begun, RunIndex)> {
    services.store.control(lease::free_attempts_of_the_dead).await?;
    let begun = match StatementRecord::find(services, statement_id).await? {
        Some(statement) => resume::resumed(services, statement, plan).await?,
        None => plan::planned(services, plan, statement_id).await?,
    };
    let tasks: BTreeSet<&str> = begun.ready.iter().map(|attempt| attempt.task_id.as_str()).collect();
    for task_id in tasks {
        services.ready_prompts(&*services.task(task_id).await?).await?;
    }
    let index = match &plan.run_id {
        Some(run_id) => load_index(services, run_id).await?,
        None => RunIndex::default(),
    };
    Ok((begun, index))
}
