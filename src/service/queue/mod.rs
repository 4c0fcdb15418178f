//! The queue of the service. Rows of the control database say what there is; the order in memory says what comes next; what a worker
//! does goes through [`JobSource`].

mod order;
mod record;
mod request;
mod rows;
mod source;
mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use clade_catalog::{Appends, StoreError, Txn};
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction};
use serde_json::json;
use tokio::sync::{Notify, broadcast};

pub use self::order::Waiting;
pub use self::record::{Filter, JobRecord, LogFacts, RunDetail, StoredResult, SubmissionFacts};
pub use self::request::{Class, DataRef, EvalSplit, JobRequest, JobState, Output};
pub use self::source::{Claim, Ended, JobSource, Lease, Ran, Worker};
pub use self::table::Submitted;

use self::order::Order;
use self::rows::{TABLE, Version};
use self::table::{Lost, NewJob, WaitingRow};
use super::error::{Result, ServiceError};
use super::figures::Figures;
use super::run::{LiveJobs, job_row, result_of};
use crate::sandbox::ResultState;
use crate::scheduler::{Services, fresh_id};

/// Ends of jobs that somebody who waits may fall behind by, before it has to look itself.
const ENDS_KEPT: usize = 1024;

/// Limits of the queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    /// Jobs that may wait.
    pub waiting: u32,
    /// Times that a job is begun.
    pub attempts: u32,
    /// Time after its end that a job is answered for.
    pub keep: Duration,
    /// After this time without a sign of life a job is taken from its worker.
    pub lease: Duration,
}

/// The queue.
#[derive(Debug)]
pub struct Queue {
    services: Arc<Services>,
    limits: QueueLimits,
    order: Mutex<Order>,
    changed: Notify,
    ended: broadcast::Sender<Arc<str>>,
    is_closed: AtomicBool,
    live: Arc<LiveJobs>,
    figures: Arc<Figures>,
}

/// A request that may be queued.
#[derive(Debug, Clone)]
pub struct Submission {
    /// User.
    pub user: String,
    /// What is asked for.
    pub request: JobRequest,
    /// The program.
    pub code: String,
    /// Jobs of the user that may wait.
    pub queued_limit: u32,
}

impl Queue {
    /// Takes the queue of a store up: jobs of dead processes wait again, and the order is made from the rows.
    pub async fn open(
        services: Arc<Services>,
        limits: QueueLimits,
        live: Arc<LiveJobs>,
        figures: Arc<Figures>,
    ) -> Result<Self> {
        let queue = Self {
            services,
            limits,
            order: Mutex::default(),
            changed: Notify::new(),
            ended: broadcast::Sender::new(ENDS_KEPT),
            is_closed: AtomicBool::new(false),
            live,
            figures,
        };
        queue.recover().await?;
        queue.forget_old().await?;
        let (served, waiting) = queue
            .read(|connection| Ok((table::served(connection)?, table::waiting(connection)?)))
            .await?;
        {
            let mut order = queue.order.lock();
            served.iter().for_each(|user| order.note_served(user));
            // Those that were recovered are there already; a job is there once however often it is pushed.
            for (job, limit) in waiting {
                order.push(job, limit);
            }
        }
        Ok(queue)
    }

    /// Puts a request into the queue. It is durable when this returns.
    pub async fn submit(&self, submission: Submission) -> Result<Submitted> {
        let Submission {
            user,
            request,
            code,
            queued_limit,
        } = submission;
        let running_limit = request.running_limit;
        let job = NewJob {
            job_id: fresh_id(),
            user,
            request_hash: request.hash(),
            queued_at: self.services.now(),
            queue_limit: self.limits.waiting,
            queued_limit,
            request,
            code,
        };
        let waiting = Waiting {
            job_id: job.job_id.clone(),
            user: job.user.clone(),
            class: job.request.class,
            priority: job.request.priority,
        };
        let submitted = self
            .change(move |tx, appends| {
                let submitted = table::insert(tx, &job)?;
                if matches!(submitted, Submitted::New { .. }) {
                    let version = Version {
                        job_id: &job.job_id,
                        user: &job.user,
                        request: &job.request,
                        request_hash: &job.request_hash,
                        code: &job.code,
                        state: JobState::Queued,
                        worker: None,
                        attempts: 0,
                        result: None,
                        detail: None,
                        queued_at: job.queued_at,
                        started_at: None,
                        finished_at: None,
                    };
                    appends.append(TABLE, version.rows()?);
                }
                Ok(submitted)
            })
            .await?;
        if matches!(submitted, Submitted::New { .. }) {
            self.order.lock().push(waiting, running_limit);
            self.changed.notify_waiters();
        }
        Ok(submitted)
    }

    /// The job of an id.
    pub async fn find(&self, job_id: &str) -> Result<Option<JobRecord>> {
        let job_id = job_id.to_owned();
        self.read(move |connection| record::find(connection, &job_id)).await
    }

    /// Jobs, the newest first.
    pub async fn list(&self, filter: Filter) -> Result<Vec<JobRecord>> {
        self.read(move |connection| record::list(connection, &filter)).await
    }

    /// Ends a job; gives the state that it has from now on, which is `running` until its worker has stopped it.
    pub async fn cancel(&self, job: &JobRecord) -> Result<JobState> {
        let (job_id, now) = (job.job_id.clone(), self.services.now());
        let state = self
            .change(move |tx, appends| {
                let before = record::find(tx, &job_id)?;
                let Some(before) = before else { return Ok(None) };
                let program = table::program(tx, &job_id)?;
                let state = table::cancel(tx, &job_id, now)?;
                if before.state == JobState::Queued && state == Some(JobState::Cancelled) {
                    let version = Version::of_record(&before, &program).ended(JobState::Cancelled, now);
                    appends.append(TABLE, version.rows()?);
                }
                Ok(state)
            })
            .await?;
        let waiting = Waiting {
            job_id: job.job_id.clone(),
            user: job.user.clone(),
            class: job.request.class,
            priority: job.request.priority,
        };
        match state {
            Some(JobState::Running) => self.live.cancel(&job.job_id),
            Some(JobState::Cancelled) if self.order.lock().remove(&waiting) => self.tell_end(&job.job_id),
            _ => {}
        }
        Ok(state.unwrap_or(job.state))
    }

    /// Jobs that wait for a class.
    pub fn waiting(&self, class: Class) -> usize {
        self.order.lock().waiting(class)
    }

    /// Jobs by state, as the rows say.
    pub async fn by_state(&self) -> Result<Vec<(String, i64)>> {
        self.read(table::by_state).await
    }

    /// Tells the ids of jobs that end from now on.
    pub fn ends(&self) -> broadcast::Receiver<Arc<str>> {
        self.ended.subscribe()
    }

    /// Whether a job that has not ended needs an upload.
    pub async fn needs_upload(&self, hash: &str) -> Result<bool> {
        let hash = hash.to_owned();
        self.read(move |connection| table::needs_upload(connection, &hash))
            .await
    }

    /// Gives out no more jobs.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Whether no more jobs are given out.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Takes the jobs back whose workers are gone: they wait again, or have failed when they were begun too often. One that runs here is
    /// not lost, whatever a clock that was set anew makes of its lease.
    pub async fn recover(&self) -> Result<usize> {
        let (now, most) = (self.services.now(), self.limits.attempts);
        let live = Arc::clone(&self.live);
        let is_lost = move |lost: &Lost| live.get(&lost.lease.job_id).is_none();
        let found = self.read(move |connection| table::lost_jobs(connection, now)).await?;
        if !found.iter().any(&is_lost) {
            return Ok(0);
        }
        let recovered = self
            .change(move |tx, appends| {
                let mut waiting: Vec<WaitingRow> = Vec::new();
                let mut others: Vec<String> = Vec::new();
                // Looked for again: what is written must be true in this transaction.
                for lost in table::lost_jobs(tx, now)?.into_iter().filter(is_lost) {
                    let lease = &lost.lease;
                    let Some(record) = record::find(tx, &lease.job_id)? else {
                        continue;
                    };
                    let program = table::program(tx, &lease.job_id)?;
                    let version = Version::of_record(&record, &program);
                    if lost.cancel_requested {
                        table::end(tx, lease, JobState::Cancelled, None, now)?;
                        appends.append(TABLE, version.ended(JobState::Cancelled, now).rows()?);
                        others.push(lease.job_id.clone());
                    } else if record.attempts >= most {
                        let reason = begun_too_often(record.attempts);
                        table::end(tx, lease, JobState::Failed, Some(&failure(&reason)?), now)?;
                        let version = Version {
                            detail: Some(&reason),
                            ..version.ended(JobState::Failed, now)
                        };
                        appends.append(TABLE, version.rows()?);
                        others.push(lease.job_id.clone());
                    } else {
                        table::put_back(tx, lease, true)?;
                        appends.append(TABLE, version.queued(record.attempts).rows()?);
                        waiting.push((
                            Waiting {
                                job_id: record.job_id.clone(),
                                user: record.user.clone(),
                                class: record.request.class,
                                priority: record.request.priority,
                            },
                            record.request.running_limit,
                        ));
                    }
                }
                Ok((waiting, others))
            })
            .await?;
        let (waiting, others) = recovered;
        let count = waiting.len() + others.len();
        {
            let mut order = self.order.lock();
            for (job, limit) in waiting {
                order.push(job, limit);
            }
        }
        others.iter().for_each(|job_id| self.tell_end(job_id));
        self.changed.notify_waiters();
        Ok(count)
    }

    /// Forgets jobs that ended long ago; their rows in the tables stay.
    pub async fn forget_old(&self) -> Result<usize> {
        let keep = i64::try_from(self.limits.keep.as_micros()).unwrap_or(i64::MAX);
        let before = self.services.now().saturating_sub(keep);
        self.change(move |tx, _| table::forget(tx, before)).await
    }

    /// Waits for a job until `patience` ends, and takes it up; none when there was none, or when the queue gives out no more. It must
    /// not be dropped before it ends: a job may be on its way.
    pub async fn claim_until(
        &self,
        worker: &Worker,
        patience: impl Future<Output = ()> + Send,
    ) -> Result<Option<Claim>> {
        let mut patience = std::pin::pin!(patience);
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            if self.is_closed() {
                return Ok(None);
            }
            let taken = self.order.lock().take(worker.class);
            let Some(job) = taken else {
                tokio::select! {
                    () = changed => continue,
                    () = &mut patience => return Ok(None),
                }
            };
            match self.take_up(&job, worker).await {
                Ok(Some(claim)) => {
                    self.figures.note_start(&claim);
                    return Ok(Some(claim));
                }
                // Another process of this store has it, or it was cancelled.
                Ok(None) => self.order.lock().note_ended(&job.user),
                Err(error) => {
                    self.order.lock().put_back(job);
                    return Err(error);
                }
            }
        }
    }

    /// The job of a lease that still holds, for a worker that had it before this server began; none when it holds no more.
    pub async fn take_over(&self, lease: &Lease) -> Result<Option<Claim>> {
        let wanted = lease.clone();
        let found = self
            .read(move |connection| {
                if !table::is_held(connection, &wanted)? {
                    return Ok(None);
                }
                let program = table::program(connection, &wanted.job_id)?;
                Ok(record::find(connection, &wanted.job_id)?.map(|record| (record, program)))
            })
            .await?;
        let Some((record, (request_hash, code))) = found else {
            return Ok(None);
        };
        self.order.lock().note_running(&record.user);
        Ok(Some(Claim {
            lease: lease.clone(),
            user: record.user,
            started_at: record.started_at.unwrap_or(record.queued_at),
            queued_at: record.queued_at,
            worker_id: record.worker.unwrap_or_default(),
            request: record.request,
            request_hash,
            code,
        }))
    }

    /// After this time without a sign of life a job is taken from its worker.
    pub fn lease(&self) -> Duration {
        self.limits.lease
    }

    fn lease_end(&self, now: i64) -> i64 {
        now.saturating_add(i64::try_from(self.limits.lease.as_micros()).unwrap_or(i64::MAX))
    }

    fn tell_end(&self, job_id: &str) {
        // Nobody waits: then nobody is told.
        let _ = self.ended.send(Arc::from(job_id));
    }

    async fn take_up(&self, job: &Waiting, worker: &Worker) -> Result<Option<Claim>> {
        let (job_id, user, worker) = (job.job_id.clone(), job.user.clone(), worker.clone());
        let now = self.services.now();
        let until = self.lease_end(now);
        self.change(move |tx, appends| {
            let claimed = table::claim(tx, &job_id, &worker.owner, &worker.worker_id, now, until)?;
            let Some(claimed) = claimed else { return Ok(None) };
            let claim = Claim {
                lease: Lease {
                    job_id,
                    owner: worker.owner,
                    attempt: claimed.attempts,
                },
                user,
                request: claimed.request,
                request_hash: claimed.request_hash,
                code: claimed.code,
                queued_at: claimed.queued_at,
                started_at: now,
                worker_id: worker.worker_id,
            };
            appends.append(TABLE, Version::of_claim(&claim).rows()?);
            Ok(Some(claim))
        })
        .await
    }

    /// Puts a job back that a worker had.
    async fn return_job(&self, claim: &Claim, counts: bool) -> Result<()> {
        let now = self.services.now();
        let attempts = claim.lease.attempt - u32::from(!counts);
        let own = claim.clone();
        let is_cancelled = self
            .change(move |tx, appends| {
                let version = Version::of_claim(&own);
                let is_cancelled = table::extend(tx, &own.lease, now)?;
                if is_cancelled {
                    table::end(tx, &own.lease, JobState::Cancelled, None, now)?;
                    appends.append(TABLE, version.ended(JobState::Cancelled, now).rows()?);
                } else {
                    table::put_back(tx, &own.lease, counts)?;
                    appends.append(TABLE, version.queued(attempts).rows()?);
                }
                Ok(is_cancelled)
            })
            .await?;
        let mut order = self.order.lock();
        order.note_ended(&claim.user);
        if !is_cancelled {
            let waiting = Waiting {
                job_id: claim.lease.job_id.clone(),
                user: claim.user.clone(),
                class: claim.request.class,
                priority: claim.request.priority,
            };
            order.push(waiting, claim.request.running_limit);
        }
        drop(order);
        if is_cancelled {
            self.tell_end(&claim.lease.job_id);
        }
        self.changed.notify_waiters();
        Ok(())
    }

    /// Ends a job that a worker had, with the rows of its run.
    async fn end(&self, claim: &Claim, state: JobState, ran: Option<&Ran>, reason: Option<&str>) -> Result<()> {
        let now = self.services.now();
        let result = match (ran, reason) {
            (Some(ran), _) => Some(stored(&result_of(claim, ran))?),
            (None, Some(reason)) => Some(failure(reason)?),
            (None, None) => None,
        };
        let mut txn = Txn::new();
        if let Some(ran) = ran {
            txn.append("sandbox.jobs", job_row(&self.services, claim, ran).await?);
        }
        let version = Version {
            result: ran.map(|ran| ran.candidate.state),
            detail: reason,
            ..Version::of_claim(claim).ended(state, now)
        };
        txn.append(TABLE, version.rows()?);
        let lease = claim.lease.clone();
        txn.control(move |tx| table::end(tx, &lease, state, result.as_deref(), now));
        self.services.store.commit(txn).await?;
        self.order.lock().note_ended(&claim.user);
        self.figures.note_end(claim, state, now);
        self.tell_end(&claim.lease.job_id);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Changes control tables and appends rows in one commit.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Transaction<'_>, &mut Appends) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let slot = Arc::new(Mutex::new(None));
        let result = Arc::clone(&slot);
        let mut txn = Txn::new();
        txn.control_rows(move |tx, appends| change(tx, appends).map(|value| *result.lock() = Some(value)));
        self.services.store.commit(txn).await?;
        let value = slot.lock().take();
        value.ok_or(ServiceError::Store(StoreError::Closed))
    }

    async fn read<T: Send + 'static>(&self, read: impl FnOnce(&Connection) -> Result<T> + Send + 'static) -> Result<T> {
        Ok(self.services.store.control_read(read).await?)
    }
}

#[async_trait]
impl JobSource for Queue {
    async fn claim(&self, worker: &Worker) -> Result<Option<Claim>> {
        self.claim_until(worker, std::future::pending()).await
    }

    async fn extend(&self, lease: &Lease) -> Result<bool> {
        let (lease, until) = (lease.clone(), self.lease_end(self.services.now()));
        self.change(move |tx, _| table::extend(tx, &lease, until)).await
    }

    async fn finish(&self, claim: &Claim, ended: Ended) -> Result<()> {
        let finished = match ended {
            Ended::Ran(ran) => {
                let state = match ran.candidate.state {
                    ResultState::SandboxUnconfirmed => JobState::Failed,
                    _ => JobState::Completed,
                };
                let reason = match state {
                    JobState::Failed => ran.candidate.detail.clone(),
                    _ => None,
                };
                self.end(claim, state, Some(&*ran), reason.as_deref()).await
            }
            Ended::Failed { retry: true, .. } if claim.lease.attempt < self.limits.attempts => {
                self.return_job(claim, true).await
            }
            Ended::Failed { reason, .. } => self.end(claim, JobState::Failed, None, Some(&reason)).await,
            Ended::Cancelled => self.end(claim, JobState::Cancelled, None, None).await,
        };
        if let Err(ServiceError::LeaseLost { .. }) = &finished {
            self.note_lost(claim);
        }
        finished
    }

    async fn give_back(&self, claim: &Claim) -> Result<()> {
        let returned = self.return_job(claim, false).await;
        if let Err(ServiceError::LeaseLost { .. }) = &returned {
            self.note_lost(claim);
        }
        returned
    }

    fn note_lost(&self, claim: &Claim) {
        self.order.lock().note_ended(&claim.user);
        self.changed.notify_waiters();
    }
}

fn begun_too_often(attempts: u32) -> String {
    format!("it was begun {attempts} times, and each time its worker was gone before it ended")
}

/// The stored result of a job that the service could not run.
fn failure(reason: &str) -> Result<String> {
    stored(&StoredResult {
        result: ResultState::SandboxUnconfirmed,
        score: None,
        score_source: None,
        detail: RunDetail {
            reason: Some(reason.to_owned()),
            ..RunDetail::default()
        },
    })
}

fn stored(result: &StoredResult) -> Result<String> {
    Ok(json!(result).to_string())
}
