//! The workers of this process. Each takes a job, runs it, keeps its lease alive, and says how it ended.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::execute::Runner;
use super::live::LiveJob;
use crate::service::error::ServiceError;
use crate::service::queue::{Claim, Ended, JobSource, Worker};

/// Time after a fault of the store before it is tried again.
const FAULT_PAUSE: Duration = Duration::from_secs(1);

/// What a worker does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerStatus {
    /// The worker.
    pub worker: Worker,
    /// The job that it runs.
    pub job_id: Option<String>,
    /// User of that job.
    pub user: Option<String>,
}

/// What all workers do.
#[derive(Debug, Default)]
pub struct Board(Mutex<Vec<WorkerStatus>>);

impl Board {
    /// Adds a worker, idle; gives its place.
    pub fn add(&self, worker: Worker) -> usize {
        let mut board = self.0.lock();
        board.push(WorkerStatus {
            worker,
            job_id: None,
            user: None,
        });
        board.len() - 1
    }

    /// What all workers do now.
    pub fn all(&self) -> Vec<WorkerStatus> {
        self.0.lock().clone()
    }

    fn set(&self, place: usize, job: Option<&Claim>) {
        if let Some(status) = self.0.lock().get_mut(place) {
            status.job_id = job.map(|claim| claim.lease.job_id.clone());
            status.user = job.map(|claim| claim.user.clone());
        }
    }
}

/// Takes jobs and runs them until the queue gives out no more. When `stop` is cancelled, the job that runs goes back.
pub async fn work(
    source: Arc<dyn JobSource>,
    runner: Arc<Runner>,
    worker: Worker,
    board: Arc<Board>,
    stop: CancellationToken,
) {
    let place = board.add(worker.clone());
    loop {
        match source.claim(&worker).await {
            Ok(Some(claim)) => {
                board.set(place, Some(&claim));
                let log_bytes = runner.services.candidate_limits.log_bytes;
                let live = runner.live.enter(&claim.lease.job_id, log_bytes, &stop);
                let running = runner.run(&claim, &live.job);
                let ended = keep_alive(&*source, &claim, &live.job, runner.extend_every, running).await;
                if let Some(ended) = ended {
                    report(&*source, &claim, ended, live.job.is_cancelled(), &stop).await;
                }
                drop(live);
                board.set(place, None);
            }
            Ok(None) => return,
            Err(error) => {
                warn!(worker = worker.worker_id, %error, "no job could be taken; trying again");
                tokio::time::sleep(FAULT_PAUSE).await;
            }
        }
    }
}

/// Waits for the end of work on a job and keeps its lease alive; none when the lease is lost.
pub async fn keep_alive(
    source: &dyn JobSource,
    claim: &Claim,
    job: &LiveJob,
    every: Duration,
    work: impl Future<Output = Ended> + Send,
) -> Option<Ended> {
    let mut running = std::pin::pin!(work);
    let mut is_lost = false;
    loop {
        tokio::select! {
            ended = &mut running => {
                if is_lost {
                    source.note_lost(claim);
                }
                return (!is_lost).then_some(ended);
            }
            () = tokio::time::sleep(every) => {}
        }
        match source.extend(&claim.lease).await {
            Ok(true) => job.cancel(),
            Ok(false) => {}
            Err(error @ ServiceError::LeaseLost { .. }) => {
                warn!(%error, "the job is broken off");
                is_lost = true;
                job.token().cancel();
            }
            Err(error) => warn!(job = claim.lease.job_id, %error, "the lease could not be prolonged"),
        }
    }
}

/// Says how a job ended, however often that takes: what is known of it must not be lost to a fault that passes.
pub async fn report(source: &dyn JobSource, claim: &Claim, ended: Ended, is_cancelled: bool, stop: &CancellationToken) {
    let goes_back = matches!(ended, Ended::Cancelled) && !is_cancelled;
    loop {
        let told = match goes_back {
            true => source.give_back(claim).await,
            false => source.finish(claim, ended.clone()).await,
        };
        match told {
            Ok(()) => return,
            Err(error @ ServiceError::LeaseLost { .. }) => {
                warn!(%error, "the job was given to another worker meanwhile");
                return;
            }
            Err(error) => {
                error!(job = claim.lease.job_id, %error, "the end of the job could not be written; trying again");
                if stop.is_cancelled() {
                    // The next start takes the job up again.
                    return;
                }
                tokio::time::sleep(FAULT_PAUSE).await;
            }
        }
    }
}
