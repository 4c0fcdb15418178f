//! One job at the service, from its request to its outcome.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Parts;
use super::answers::{Accepted, Detail, Job, LogFacts, Request, Status};
use super::fault::Patience;
use super::follow::follow;
use super::leaving::Leaving;
use super::notes::{self, OpenJob};
use super::service::Service;
use crate::sandbox::SandboxError;
use crate::sandbox::job::JobSpec;
use crate::sandbox::logs::CapturedLog;
use crate::sandbox::observe::LogStream;
use crate::sandbox::outcome::{Collected, JobOutcome};
use crate::scheduler::ENGINE_VERSION;

/// Times that a job is handed in: one of an earlier request may be of no use, and data may be gone.
const MOST_TURNS: u32 = 8;
/// Time that a cancelled job may take to end.
const CANCEL_TIME: Duration = Duration::from_secs(30);
/// Time between two looks at a job.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Time that what is followed may still take when the job has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(5);
/// Room of a log beyond its limit: the line that says how much is left out.
const LOG_ROOM: u64 = 1024;

/// Why a job did not come to an outcome.
enum Stop {
    Error(SandboxError),
    /// What became of it is not known.
    Lost(SandboxError),
    /// The service has its data no more.
    NoData(SandboxError),
    /// An earlier run of the very same job is of no use.
    Again(SandboxError),
}

impl From<SandboxError> for Stop {
    fn from(error: SandboxError) -> Self {
        Self::Error(error)
    }
}

/// Runs a job to its end.
pub(super) async fn run(
    service: &Arc<Service>,
    parts: &Parts,
    job: &JobSpec,
    cancel: &CancellationToken,
) -> Result<JobOutcome, SandboxError> {
    let queued_at = Utc::now();
    let (mut last, mut turn) = (None, 0);
    for _ in 0..MOST_TURNS {
        let id = tokio::select! {
            id = parts.data.at(service, &job.data_dir, cancel) => id?,
            () = cancel.cancelled() => return Err(SandboxError::Cancelled),
        };
        let request = Request::new(job, &service.options, &id, turn);
        match once(service, parts, job, &request, queued_at, cancel).await {
            Ok(outcome) => return Ok(outcome),
            Err(Stop::Error(error) | Stop::Lost(error)) => return Err(error),
            Err(Stop::NoData(error)) => {
                parts.data.forget(&id);
                last = Some(error);
            }
            Err(Stop::Again(error)) => {
                turn += 1;
                last = Some(error);
            }
        }
    }
    Err(last.unwrap_or_else(|| SandboxError::Helper("the job was never handed in".to_owned())))
}

async fn once(
    service: &Arc<Service>,
    parts: &Parts,
    job: &JobSpec,
    request: &Request<'_>,
    queued_at: DateTime<Utc>,
    cancel: &CancellationToken,
) -> Result<JobOutcome, Stop> {
    let mut open = Open::new(service, parts, request)?;
    let (accepted, is_replay) = match place(service, request, cancel).await {
        Ok(placed) => placed,
        Err(stop) => {
            // What was refused is not there; what had no answer may be.
            open.is_settled = !matches!(stop, Stop::Lost(_));
            return Err(stop);
        }
    };
    let job_id = accepted.job_id;
    open.job_id = Some(job_id.clone());
    if is_replay && matches!(accepted.status, Status::Failed | Status::Cancelled) {
        open.is_settled = true;
        return Err(Stop::Again(ended_elsewhere(
            service,
            &job_id,
            "had ended without a result before",
        )));
    }
    let mut followers = JoinSet::new();
    if let Some(observer) = &job.observer {
        for stream in LogStream::BOTH {
            followers.spawn(follow(Arc::clone(service), job_id.clone(), stream, observer.clone()));
        }
    }
    let work = async {
        let ended = wait(service, request, &job_id).await.map_err(Stop::Lost)?;
        let outcome = outcome(service, job, ended, queued_at, is_replay).await?;
        // Their last event has come, or is about to.
        let _ = timeout(LAST_OUTPUT, async { while followers.join_next().await.is_some() {} }).await;
        Ok::<_, Stop>(outcome)
    };
    let done = tokio::select! {
        done = work => done,
        () = cancel.cancelled() => {
            open.is_settled = withdraw(service, &job_id).await;
            return Err(Stop::Error(SandboxError::Cancelled));
        }
    };
    open.is_settled = !matches!(done, Err(Stop::Lost(_)));
    done
}

/// A job that is open at the service as far as is known. One that nobody waits for any more is cancelled there.
struct Open {
    service: Arc<Service>,
    leaving: Arc<Leaving>,
    job: OpenJob,
    note: PathBuf,
    job_id: Option<String>,
    is_settled: bool,
}

impl Open {
    fn new(service: &Arc<Service>, parts: &Parts, request: &Request<'_>) -> Result<Self, SandboxError> {
        let job = OpenJob {
            url: service.options.url.clone(),
            name: request.name.to_owned(),
            key: request.idempotency_key.clone(),
        };
        let note = parts
            .notes
            .add(&job)
            .map_err(SandboxError::io("note an open job in", &service.options.notes))?;
        Ok(Self {
            service: Arc::clone(service),
            leaving: Arc::clone(&parts.leaving),
            job,
            note,
            job_id: None,
            is_settled: false,
        })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.is_settled {
            notes::remove(&self.note);
            return;
        }
        self.leaving
            .cancel(&self.service, self.job_id.take(), self.job.clone(), self.note.clone());
    }
}

/// Hands a job in, as often as it takes; the flag says whether it was there before. One that had no answer is handed in again as the
/// same job.
async fn place(service: &Service, request: &Request<'_>, cancel: &CancellationToken) -> Result<(Accepted, bool), Stop> {
    let mut patience = Patience::new(service.options.give_up);
    let mut is_again = false;
    loop {
        if cancel.is_cancelled() {
            return Err(match is_again {
                true => Stop::Lost(SandboxError::Cancelled),
                false => Stop::Error(SandboxError::Cancelled),
            });
        }
        let fault = match service.submit(request).await {
            // A second try finds the job of the first, which is a new one.
            Ok(placed) => return Ok((placed.accepted, placed.is_replay && !is_again)),
            Err(fault) => fault,
        };
        is_again |= fault.may_have_arrived();
        if fault.is_unknown_data() {
            return Err(Stop::NoData(service.error(fault)));
        }
        patience.after(fault, cancel).await.map_err(|fault| match is_again {
            true => Stop::Lost(service.error(fault)),
            false => Stop::Error(service.error(fault)),
        })?;
    }
}

/// Waits for the end of a job.
async fn wait(service: &Service, request: &Request<'_>, job_id: &str) -> Result<Job, SandboxError> {
    let never = CancellationToken::new();
    let mut patience = Patience::new(service.options.give_up);
    loop {
        let begin = Instant::now();
        let answer = match service.wait(request).await {
            Ok(job) if job.job_id == job_id => Ok(job),
            // Its key is known no more, or its data; its id is.
            Ok(_) => service.job(job_id).await,
            Err(fault) if fault.passes() => Err(fault),
            Err(_) => service.job(job_id).await,
        };
        match answer {
            Ok(job) if job.status.is_end() => return Ok(job),
            Ok(_) => {
                patience.reset();
                // A server that stops answers at once.
                sleep(LOOK_AGAIN.saturating_sub(begin.elapsed())).await;
            }
            Err(fault) => patience
                .after(fault, &never)
                .await
                .map_err(|fault| service.error(fault))?,
        }
    }
}

/// Cancels a job and waits for its end, for a while; says whether it has ended.
async fn withdraw(service: &Service, job_id: &str) -> bool {
    let never = CancellationToken::new();
    let withdrawing = async {
        let mut patience = Patience::new(CANCEL_TIME);
        let mut is_asked = false;
        loop {
            let answer = match is_asked {
                false => service.cancel(job_id).await.map(|accepted| accepted.status),
                true => service.job(job_id).await.map(|job| job.status),
            };
            match answer {
                Ok(status) if status.is_end() => return true,
                Ok(_) => {
                    is_asked = true;
                    sleep(LOOK_AGAIN).await;
                }
                Err(fault) if fault.is("unknown_job") => return true,
                Err(fault) => {
                    if let Err(fault) = patience.after(fault, &never).await {
                        tracing::warn!(job = job_id, %fault, "a cancelled job may run on at the job service");
                        return false;
                    }
                }
            }
        }
    };
    timeout(CANCEL_TIME, withdrawing).await.unwrap_or_else(|_| {
        tracing::warn!(job = job_id, "a cancelled job has not ended at the job service yet");
        false
    })
}

fn ended_elsewhere(service: &Service, job_id: &str, what: &str) -> SandboxError {
    SandboxError::Service {
        url: service.options.url.clone(),
        reason: format!("gave no result of job {job_id}: it {what}"),
        advice: "The job can be tried again".to_owned(),
    }
}

/// What became of a job that ended, with its logs and its submission.
async fn outcome(
    service: &Service,
    job: &JobSpec,
    ended: Job,
    queued_at: DateTime<Utc>,
    is_replay: bool,
) -> Result<JobOutcome, Stop> {
    let job_id = &ended.job_id;
    let reason = || {
        let detail = ended.result.as_ref().and_then(|result| result.detail.reason.as_deref());
        detail.unwrap_or("it does not say why").to_owned()
    };
    let what = match ended.status {
        Status::Cancelled => Some("was cancelled there, not from here".to_owned()),
        Status::Failed => Some(format!("could not be run: {}", reason())),
        _ => None,
    };
    if let Some(what) = what {
        let error = ended_elsewhere(service, job_id, &what);
        return Err(if is_replay {
            Stop::Again(error)
        } else {
            Stop::Error(error)
        });
    }
    let old = || {
        SandboxError::Config(format!(
            "the job service at {} does not say how the program of job {job_id} ended: {}. It needs version {ENGINE_VERSION}",
            service.options.url,
            reason()
        ))
    };
    let detail = ended.result.as_ref().map(|result| &result.detail).ok_or_else(old)?;
    let (Some(end), Some(isolation)) = (detail.end.clone(), detail.sandbox.clone()) else {
        return Err(old().into());
    };
    let taken = match end.verdict() {
        Some(_) => None,
        None => Some(take(service, job, job_id, detail, is_replay).await?),
    };
    let [stdout, stderr] = [(LogStream::Stdout, detail.stdout), (LogStream::Stderr, detail.stderr)];
    let most = job.limits.log_bytes;
    let stdout = log(service, job_id, stdout.0, stdout.1, most).await?;
    let stderr = log(service, job_id, stderr.0, stderr.1, most).await?;
    let (state, why, submission) = end.settle(taken);
    Ok(JobOutcome {
        cause: end.cause(),
        end,
        state,
        detail: why,
        exit_code: detail.exit_code,
        signal: detail.signal,
        oom: detail.oom,
        cpu_seconds: detail.cpu_seconds,
        wall_seconds: detail.wall_seconds,
        peak_memory_bytes: detail.peak_memory_bytes,
        stdout,
        stderr,
        submission,
        isolation,
        warm: detail.warm,
        queued_at,
        started_at: detail.started_at,
        finished_at: detail.finished_at.unwrap_or_else(Utc::now),
    })
}

/// Fetches the submission of a program that ended well; the inner error says why there is none.
async fn take(
    service: &Service,
    job: &JobSpec,
    job_id: &str,
    detail: &Detail,
    is_replay: bool,
) -> Result<Result<Collected, String>, Stop> {
    let Some(facts) = &detail.submission else {
        let reason = detail.no_submission.clone();
        return Ok(Err(
            reason.unwrap_or_else(|| format!("the program wrote no {}", job.output_name))
        ));
    };
    let limit = job.limits.submission_bytes;
    if facts.bytes > limit {
        return Ok(Err(format!(
            "{} has {} bytes, the limit is {limit}",
            facts.name, facts.bytes
        )));
    }
    let target = job.output_path();
    let never = CancellationToken::new();
    let mut patience = Patience::new(service.options.give_up);
    loop {
        match service.submission(job_id, facts, &target).await {
            Ok(collected) => return Ok(Ok(collected)),
            // The earlier run of this very job is of no use without it.
            Err(fault) if fault.is("submission_gone") && is_replay => return Err(Stop::Again(service.error(fault))),
            Err(fault) => patience
                .after(fault, &never)
                .await
                .map_err(|fault| service.error(fault))?,
        }
    }
}

/// Fetches a log, as much of its beginning and its end as may be kept.
async fn log(
    service: &Service,
    job_id: &str,
    stream: LogStream,
    facts: LogFacts,
    most: u64,
) -> Result<CapturedLog, SandboxError> {
    if facts.bytes == 0 || most == 0 {
        return Ok(CapturedLog::of_ends(Vec::new(), &[], facts.bytes));
    }
    let (head, total) = part(service, job_id, stream, 0, most.saturating_add(LOG_ROOM)).await?;
    if head.len() as u64 >= total {
        return Ok(CapturedLog::of_kept(head, facts.bytes, facts.truncated));
    }
    let keep = most / 2;
    let (tail, _) = part(service, job_id, stream, total.saturating_sub(most - keep), most - keep).await?;
    let mut head = head;
    head.truncate(usize::try_from(keep).unwrap_or(usize::MAX));
    Ok(CapturedLog::of_ends(head, &tail, facts.bytes.max(total)))
}

/// Bytes of a log from a place on, and how many there are in all.
async fn part(
    service: &Service,
    job_id: &str,
    stream: LogStream,
    offset: u64,
    most: u64,
) -> Result<(Vec<u8>, u64), SandboxError> {
    let never = CancellationToken::new();
    let (mut bytes, mut offset) = (Vec::new(), offset);
    loop {
        let left = most.saturating_sub(bytes.len() as u64);
        let part = service
            .insist(&never, || service.log(job_id, stream, offset, left))
            .await?;
        let is_last = part.bytes.is_empty() || part.next >= part.total;
        bytes.extend_from_slice(&part.bytes);
        offset = part.next;
        if is_last || bytes.len() as u64 >= most {
            return Ok((bytes, part.total));
        }
    }
}
