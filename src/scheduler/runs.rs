//! Starting, resuming, cancelling and draining runs.

use std::sync::Arc;

use clade_catalog::Txn;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::budget;
use super::conducting::{Conducting, Entry};
use super::conductor::Conductor;
use super::error::{Result, SchedulerError};
use super::finish;
use super::heartbeat::Heartbeat;
use super::lease::{self, RunLeaseError};
use super::run::{Progress, Run};
use super::services::Services;
use super::statement::StatementRecord;

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
    pub(super) conducting: Conducting,
    heartbeat: Mutex<Option<Heartbeat>>,
}

impl Scheduler {
    /// A scheduler over the shared services.
    pub fn new(services: Arc<Services>) -> Self {
        Self {
            services,
            conducting: Conducting::default(),
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
        services.task(&run.task_id).await?;
        let model = services.models.get(&run.model)?.describe();
        services.sandbox(&run.sandbox)?;
        if run.options.max_cost_usd.is_some() && !model.free && model.price.is_none() && !run.options.allow_unknown_cost
        {
            return Err(SchedulerError::UnknownCost { model: run.model });
        }
        if StatementRecord::find(services, &run.statement_id).await?.is_some() {
            return Err(SchedulerError::Request(format!(
                "there is a run '{}' already: RESUME RUN '{}' goes on with it",
                run.run_id, run.run_id
            )));
        }
        let entry = self.conducting.begin(&run.run_id)?;
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
            options: serde_json::to_string(&run.options).unwrap_or_default(),
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
            for (resource, limit) in limits {
                budget::set_limit(tx, &run_id, resource, limit)?;
            }
            lease::take_run(tx, &run_id, &owner, now)
        });
        services.store.commit(txn).await?;
        self.conduct(run, entry).await
    }

    /// Goes on with a run that was interrupted: by a kill, a drain or a failure.
    ///
    /// # Errors
    /// When there is no such run, it has ended, or a live process conducts it.
    pub async fn resume(&self, run_id: &str) -> Result<RunHandle> {
        let run = Run::load(&self.services, run_id).await?;
        if matches!(run.status.as_str(), "finished" | "cancelled") {
            return Err(SchedulerError::Request(format!(
                "run '{run_id}' has ended ({}): there is nothing to resume",
                run.status
            )));
        }
        self.services.task(&run.task_id).await?;
        self.services.models.get(&run.model)?;
        self.services.sandbox(&run.sandbox)?;
        let entry = self.conducting.begin(run_id)?;
        let steps_done = finish::progress(&self.services, &run).await?.steps_done;
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
        self.conduct(run, entry).await
    }

    async fn conduct(&self, run: Run, entry: Entry) -> Result<RunHandle> {
        self.ensure_heartbeat();
        let run_id = run.run_id.clone();
        let conductor = Conductor::prepare(Arc::clone(&self.services), run, entry.control.clone()).await?;
        let task = tokio::spawn(async move {
            let progress = conductor.conduct().await;
            drop(entry);
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
        if matches!(run.status.as_str(), "finished" | "cancelled" | "failed") {
            return Err(SchedulerError::Request(format!(
                "run '{run_id}' has ended ({}): there is nothing to cancel",
                run.status
            )));
        }
        let now = services.now();
        let conducted = services
            .store
            .control_read(move |conn| lease::conducted_runs(conn, now))
            .await?;
        if conducted.iter().any(|(id, _)| id == run_id) {
            let id = run_id.to_owned();
            services
                .store
                .control(move |tx| {
                    tx.execute(
                        "INSERT OR REPLACE INTO run_requests (run_id, request) VALUES (?1, 'cancel')",
                        [id],
                    )
                    .map(|_| ())
                })
                .await?;
            return Ok(());
        }
        super::record::cancel_pending(services, &run.statement_id).await?;
        let mut progress = finish::progress(services, &run).await?;
        progress.status = "cancelled";
        progress.stop_reason = Some("cancelled".to_owned());
        progress.finished_at = Some(services.now());
        let mut txn = Txn::new();
        txn.append("evo.runs", run.rows(&progress)?);
        txn.append(
            "evo.statements",
            super::statement::ended(services, &run.statement_id, &progress).await?,
        );
        services.store.commit(txn).await?;
        Ok(())
    }

    /// Asks everything that this process conducts to draw no more attempts.
    pub fn drain(&self) {
        self.conducting
            .controls()
            .iter()
            .for_each(|control| control.drain.cancel());
    }

    /// Ends everything in flight now; it goes back into the queue.
    pub fn kill(&self) {
        self.conducting
            .controls()
            .iter()
            .for_each(|control| control.kill.cancel());
    }

    /// Whether this process conducts anything.
    pub fn is_busy(&self) -> bool {
        self.conducting.is_busy()
    }
}
