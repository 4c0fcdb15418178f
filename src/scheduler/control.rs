//! Starting, resuming, cancelling and draining runs.

use std::sync::Arc;

use clade_catalog::{BoxError, Txn};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::budget;
use super::error::{Result, SchedulerError};
use super::run::{Progress, Run};
use super::services::Services;
use super::summaries;
use crate::scheduler::queue::conducted::{Conducted, Place, RunControl};
use crate::scheduler::queue::heartbeat::Heartbeat;
use crate::scheduler::queue::lease::{self, RunLeaseError};
use crate::scheduler::record::statement_rows::StatementRecord;
use crate::scheduler::run::cancel;
use crate::scheduler::run::conductor::Conductor;
use crate::scheduler::run::progress;

/// A run that this process conducts.
#[derive(Debug)]
pub struct RunHandle {
    /// Run id.
    pub run_id: String,
    task: JoinHandle<Result<Progress>>,
}

impl RunHandle {
    /// Waits for the end of the run.
    ///
    /// # Errors
    /// When the store failed; a failed run is a row, not an error.
    pub async fn wait(self) -> Result<Progress> {
        self.task.await?
    }
}

/// Conducts runs and statements on one store.
#[derive(Debug)]
pub struct Scheduler {
    pub(super) services: Arc<Services>,
    pub(super) conducted: Conducted,
    heartbeat: Mutex<Option<Heartbeat>>,
}

impl Scheduler {
    /// A scheduler over the shared services.
    pub fn new(services: Arc<Services>) -> Self {
        Self {
            services,
            conducted: Conducted::default(),
            heartbeat: Mutex::default(),
        }
    }

    /// The shared services.
    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// Leases are prolonged from the first acting statement on; a process that only reads never writes.
    pub(super) fn ensure_heartbeat(&self) {
        self.heartbeat
            .lock()
            .get_or_insert_with(|| Heartbeat::start(Arc::clone(&self.services)));
    }

    /// Records a run with its statement, budgets and lease in one commit, and conducts it in the background.
    ///
    /// # Errors
    /// When the task, model or sandbox is not known, a cost budget cannot hold, or the store fails.
    pub async fn start(&self, mut run: Run, sql: &str) -> Result<RunHandle> {
        let services = &self.services;
        let task = services.task(&run.task_id).await?;
        self.check(&run).await?;
        let (place, control) = self.enter(&run.run_id)?;
        services.ready_prompts(&task).await?;
        run.started_at = Some(services.now());
        let statement = StatementRecord {
            statement_id: run.statement_id.clone(),
            kind: "evolve".to_owned(),
            run_id: Some(run.run_id.clone()),
            sql: sql.to_owned(),
            snapshot_id: services.store.snapshot(None).await?.seq(),
            operator: None,
            model: run.model.clone(),
            sandbox: run.sandbox.clone(),
            options: run.options_text()?,
            attempts: 0,
            status: "running".to_owned(),
            error: None,
            created_at: run.created_at,
            finished_at: None,
        };
        let mut txn = Txn::new();
        txn.append("evo.runs", run.rows(&Progress::running(0))?);
        txn.append("evo.statements", statement.rows()?);
        let (run_id, owner, limits, now) = (run.run_id.clone(), services.owner.clone(), run.limits(), services.now());
        txn.control(move |tx| {
            if budget::is_known(tx, &run_id)? {
                return Err(Box::new(SchedulerError::Request(format!(
                    "there is a run '{run_id}' already: RESUME RUN '{run_id}' goes on with it"
                ))) as BoxError);
            }
            for (resource, limit) in limits {
                budget::set_limit(tx, &run_id, resource, limit)?;
            }
            Ok(lease::take_run(tx, &run_id, &owner, now)?)
        });
        services.store.commit(txn).await?;
        self.conduct(run, place, control).await
    }

    /// Checks what a run is to be made with, apart from its task.
    ///
    /// # Errors
    /// When the model or sandbox is not known, or a cost budget cannot hold.
    pub async fn check(&self, run: &Run) -> Result<()> {
        let services = &self.services;
        let model = services.models.get(&run.model).await?.describe();
        services.sandbox(&run.sandbox)?;
        if run.options.max_cost_usd.is_some() && !model.free && model.price.is_none() && !run.options.allow_unknown_cost
        {
            return Err(SchedulerError::UnknownCost {
                model: run.model.clone(),
            });
        }
        let is_limited = run.options.max_cost_usd.is_some() && !run.options.allow_unknown_cost;
        summaries::check_model(services, &run.options.attempt, is_limited).await
    }

    /// Goes on with a run that was interrupted: by a kill, a drain or a failure.
    ///
    /// # Errors
    /// When there is no such run, it has ended, or a live process conducts it.
    pub async fn resume(&self, run_id: &str) -> Result<RunHandle> {
        let (place, control) = self.enter(run_id)?;
        let run = Run::load(&self.services, run_id).await?;
        if matches!(run.status.as_str(), "finished" | "cancelled") {
            return Err(SchedulerError::Request(format!(
                "run '{run_id}' has ended ({}): there is nothing to resume",
                run.status
            )));
        }
        let task = self.services.task(&run.task_id).await?;
        self.services.ready_prompts(&task).await?;
        self.services.models.get(&run.model).await?;
        self.services.sandbox(&run.sandbox)?;
        let steps_done = progress::progress(&self.services, &run).await?.steps_done;
        let mut txn = Txn::new();
        txn.append("evo.runs", run.rows(&Progress::running(steps_done))?);
        let (id, owner, now) = (run.run_id.clone(), self.services.owner.clone(), self.services.now());
        txn.control(move |tx| {
            lease::take_run(tx, &id, &owner, now)?;
            // A request to a process that died before it saw it is not meant for this one.
            tx.execute("DELETE FROM run_requests WHERE run_id = ?1", [&id])
                .map_err(RunLeaseError::from)?;
            Ok::<_, RunLeaseError>(())
        });
        self.services.store.commit(txn).await?;
        self.conduct(run, place, control).await
    }

    pub(super) fn enter(&self, id: &str) -> Result<(Place, RunControl)> {
        let control = RunControl::default();
        Ok((self.conducted.enter(id, &control)?, control))
    }

    /// Conducts a run whose row and lease are in the store, in the background.
    async fn conduct(&self, run: Run, place: Place, control: RunControl) -> Result<RunHandle> {
        self.ensure_heartbeat();
        let run_id = run.run_id.clone();
        let conductor = match Conductor::prepare(Arc::clone(&self.services), run, control).await {
            Ok(conductor) => conductor,
            Err(error) => {
                lease::release_run_after(&self.services, &run_id, &error).await;
                return Err(error);
            }
        };
        let task = tokio::spawn(async move {
            let progress = conductor.conduct().await;
            drop(place);
            progress
        });
        Ok(RunHandle { run_id, task })
    }

    /// Cancels a run, whichever process conducts it; one that nobody conducts is cancelled here.
    ///
    /// # Errors
    /// When there is no such run or it has ended.
    pub async fn cancel(&self, run_id: &str) -> Result<()> {
        let services = &self.services;
        let run = Run::load(services, run_id).await?;
        if run.has_ended() {
            return Err(SchedulerError::Request(format!(
                "run '{run_id}' has ended ({}): there is nothing to cancel",
                run.status
            )));
        }
        let Ok(_place) = self.conducted.enter(run_id, &RunControl::default()) else {
            return cancel::request(services, run_id).await;
        };
        match lease::hold_run(services, run_id).await {
            Ok(()) => {}
            Err(SchedulerError::RunTaken(_)) => return cancel::request(services, run_id).await,
            Err(error) => return Err(error),
        }
        if let Err(error) = cancel::idle_run(services, &run).await {
            lease::release_run_after(services, run_id, &error).await;
            return Err(error);
        }
        lease::release_run(services, run_id).await
    }

    /// Asks everything that this process conducts to draw no more attempts.
    pub fn drain(&self) {
        self.conducted.drain();
    }

    /// Ends everything in flight now; it goes back into the queue.
    pub fn kill(&self) {
        self.conducted.kill();
    }

    /// Whether this process conducts anything.
    pub fn is_busy(&self) -> bool {
        !self.conducted.is_empty()
    }

    /// Waits until this process conducts nothing.
    pub async fn idle(&self) {
        self.conducted.idle().await;
    }
}
