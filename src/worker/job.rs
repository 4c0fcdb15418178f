//! One slot of a worker, and a job from its arrival to its end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::backoff::Backoff;
use super::error::Fault;
use super::{Held, Worker};
use crate::sandbox::{JobEnd, JobOutcome, JobSpec, LogStream, SandboxError};
use crate::scheduler::WorkDir;
use crate::service::fleet::wire::{
    Assignment, Attempt, Claimed, End, Finish, OUTPUT_BYTES, ProbeOrder, Probed, RemoteRun,
};
use crate::service::{Class, LiveJob};

/// Time between two parts of live output.
const OUTPUT_PAUSE: Duration = Duration::from_millis(100);
/// Time after which live output that could not be sent is sent again.
const OUTPUT_AGAIN: Duration = Duration::from_secs(1);
/// Time to hand something in after the stop.
const LAST_TIME: Duration = Duration::from_secs(10);

/// What became of a job here.
enum Done {
    /// The program ran; its submission is in the folder.
    Ran(Box<JobOutcome>, WorkDir),
    /// It could not be run.
    Failed(String),
    /// It was broken off.
    Stopped,
}

/// Asks for jobs and runs them, one after the other.
pub(super) async fn slot(worker: Arc<Worker>, class: Class) {
    let mut backoff = Backoff::default();
    while !worker.stop.is_cancelled() {
        let claimed = tokio::select! {
            claimed = worker.server.claim(class) => claimed,
            () = worker.stop.cancelled() => return,
        };
        match claimed {
            Ok(Claimed { job: Some(job), .. }) => {
                backoff.reset();
                run(&worker, job).await;
            }
            Ok(Claimed { probe: Some(probe), .. }) => run_probe(&worker, probe).await,
            Ok(_) => backoff.reset(),
            Err(fault) => {
                warn!(%fault, "no job could be asked for; trying again");
                backoff.pause(&worker.stop).await;
            }
        }
    }
}

async fn run(worker: &Arc<Worker>, assignment: Assignment) {
    let attempt = Attempt {
        job_id: assignment.job_id.clone(),
        attempt: assignment.attempt,
    };
    let place = worker
        .live
        .enter(&attempt.job_id, assignment.limits.log_bytes, &worker.stop);
    let held = Held {
        attempt: attempt.attempt,
        job: Arc::clone(&place.job),
        is_lost: false,
    };
    worker.held.lock().insert(attempt.job_id.clone(), held);
    let output = tokio::spawn(follow(Arc::clone(worker), attempt.clone(), Arc::clone(&place.job)));
    let done = worker.execute(assignment, &place.job).await;
    // The end has the whole output.
    output.abort();
    worker.hand_in(&attempt, done, &place.job).await;
    worker.held.lock().remove(&attempt.job_id);
}

/// Sends output while the program runs.
async fn follow(worker: Arc<Worker>, attempt: Attempt, job: Arc<LiveJob>) {
    let mut changes = job.changes();
    let mut sent = [0; 2];
    loop {
        let mut is_more = false;
        for (stream, sent) in LogStream::BOTH.into_iter().zip(&mut sent) {
            let piece = job.read(stream, *sent, OUTPUT_BYTES);
            if piece.bytes.is_empty() {
                continue;
            }
            is_more = true;
            let next = piece.offset + piece.bytes.len() as u64;
            match worker.server.output(&attempt, stream, piece.offset, piece.bytes).await {
                Ok(()) => *sent = next,
                Err(fault) if fault.passes() => tokio::time::sleep(OUTPUT_AGAIN).await,
                Err(_) => return,
            }
        }
        tokio::time::sleep(OUTPUT_PAUSE).await;
        if !is_more && changes.changed().await.is_err() {
            return;
        }
    }
}

impl Worker {
    async fn execute(&self, assignment: Assignment, job: &Arc<LiveJob>) -> Done {
        let stopped = job.token();
        let mut backoff = Backoff::default();
        let data = loop {
            let fetch = self.cache.folder(&self.server, &assignment.job_id, &assignment.data);
            let fetched = tokio::select! {
                fetched = fetch => fetched,
                () = stopped.cancelled() => return Done::Stopped,
            };
            match fetched {
                Ok(folder) => break folder,
                Err(fault) if fault.is_lost_job() => return Done::Stopped,
                Err(fault) if fault.passes() => {
                    warn!(job = assignment.job_id, %fault, "the data of a job could not be fetched; trying again");
                    backoff.pause(stopped).await;
                }
                Err(fault) => return Done::Failed(format!("the data could not be fetched: {fault}")),
            }
        };
        let work = match WorkDir::create(self.cache.work_dir(), &assignment.job_id) {
            Ok(work) => work,
            Err(error) => return Done::Failed(format!("no folder could be made for the job: {error}")),
        };
        let spec = JobSpec {
            job_id: assignment.job_id,
            code: assignment.code,
            data_dir: data.path().to_owned(),
            env: assignment.environment,
            limits: assignment.limits,
            output_name: assignment.output_name,
            output_is_folder: assignment.output_is_folder,
            output_dir: work.path().to_owned(),
            warm: self.warm,
            observer: Some(job.observer()),
        };
        match self.sandbox.executor.run(spec, stopped).await {
            Ok(outcome) if outcome.end == JobEnd::Cancelled => Done::Stopped,
            Ok(outcome) => Done::Ran(Box::new(outcome), work),
            Err(SandboxError::Cancelled) => Done::Stopped,
            Err(error) => Done::Failed(error.to_string()),
        }
    }

    /// Says how a job ended.
    async fn hand_in(&self, attempt: &Attempt, done: Done, job: &LiveJob) {
        let told = match done {
            Done::Stopped if job.is_cancelled() => self.tell(attempt, End::Cancelled, None).await,
            Done::Stopped if self.is_lost(&attempt.job_id) => return,
            Done::Stopped => self.insist(attempt, || self.server.give_back(attempt)).await,
            Done::Failed(reason) => self.tell(attempt, End::Failed { reason }, None).await,
            Done::Ran(outcome, work) => {
                let submission = outcome.submission.as_ref().map(|submission| submission.path.clone());
                let run = End::Ran(Box::new(RemoteRun::pack(*outcome)));
                let told = self.tell(attempt, run, submission.as_deref()).await;
                drop(work);
                told
            }
        };
        match told {
            Ok(()) => {}
            Err(fault) if fault.is_lost_job() => warn!(job = attempt.job_id, "the job is another's by now"),
            Err(fault) if fault.passes() => {
                warn!(job = attempt.job_id, %fault, "the job begins anew when its lease ends");
            }
            Err(fault) => {
                error!(job = attempt.job_id, %fault, "the end of a job was not taken");
                let reason = format!("what the worker handed in was not taken: {fault}");
                if let Err(fault) = self.tell(attempt, End::Failed { reason }, None).await {
                    warn!(job = attempt.job_id, %fault, "the job begins anew when its lease ends");
                }
            }
        }
    }

    async fn tell(&self, attempt: &Attempt, end: End, submission: Option<&Path>) -> Result<(), Fault> {
        let finish = Finish {
            attempt: attempt.attempt,
            end,
        };
        let finish = &finish;
        self.insist(attempt, || async move {
            if let Some(file) = submission {
                self.server.submission(attempt, file).await?;
            }
            self.server.finish(&attempt.job_id, finish).await
        })
        .await
    }

    /// Tries until it goes well, is refused, or is of no use any more; not for long after the stop.
    async fn insist<T: Future<Output = Result<(), Fault>>>(
        &self,
        attempt: &Attempt,
        call: impl Fn() -> T,
    ) -> Result<(), Fault> {
        let too_late = async {
            self.stop.cancelled().await;
            tokio::time::sleep(LAST_TIME).await;
        };
        let insisting = async {
            let never = CancellationToken::new();
            let mut backoff = Backoff::default();
            loop {
                let fault = match call().await {
                    Err(fault) if fault.passes() && !self.is_lost(&attempt.job_id) => fault,
                    told => return told,
                };
                warn!(job = attempt.job_id, %fault, "the end of a job could not be told; trying again");
                backoff.pause(&never).await;
            }
        };
        tokio::select! {
            told = insisting => told,
            () = too_late => Err(Fault::Unreachable(format!("nothing was taken for {LAST_TIME:?} after the stop"))),
        }
    }
}

/// Runs a probe and tells what it printed.
async fn run_probe(worker: &Worker, order: ProbeOrder) {
    let (output, problem) = match probe(worker, &order).await {
        Ok(outcome) => {
            let problem = (outcome.end != JobEnd::Exited { code: 0 })
                .then(|| format!("{}\n{}", outcome.detail.unwrap_or_default(), outcome.stderr.tail));
            (outcome.stdout.text(), problem)
        }
        Err(error) => (String::new(), Some(error.to_string())),
    };
    let probed = Probed {
        probe_id: order.probe_id,
        output,
        problem,
    };
    if let Err(fault) = worker.server.probed(&probed).await {
        warn!(%fault, "the result of a probe could not be told; the next one comes");
    }
}

async fn probe(worker: &Worker, order: &ProbeOrder) -> Result<JobOutcome, SandboxError> {
    let parent = worker.cache.work_dir();
    let work = WorkDir::create(parent, &order.probe_id).map_err(SandboxError::io("make a folder in", parent))?;
    let data_dir = work.path().join("data");
    std::fs::create_dir(&data_dir).map_err(SandboxError::io("make", &data_dir))?;
    let spec = JobSpec {
        job_id: order.probe_id.clone(),
        code: order.code.clone(),
        data_dir,
        env: [("RESOURCE_TYPE".to_owned(), order.class.as_str().to_owned())].into(),
        limits: order.limits.clone(),
        output_name: "submission.csv".to_owned(),
        output_is_folder: false,
        output_dir: work.path().to_owned(),
        // A cold start looks at more.
        warm: false,
        observer: None,
    };
    worker.sandbox.executor.run(spec, &worker.stop).await
}
