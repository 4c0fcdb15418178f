//! The end of a job that ran on another machine: what its worker hands in is checked, and scored here.

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::held::HeldJob;
use super::refusal::Refusal;
use super::wire::{Attempt, End, Finish};
use super::{Fleet, is_suspicious};
use crate::sandbox::{JobOutcome, ResultState, SandboxError, judge};
use crate::service::queue::{Ended, JobSource, Ran};
use crate::service::run::{keep_alive, keep_submission, report};

/// Room of a log beyond its limit: the line that says how much is left out.
const LOG_ROOM: u64 = 1024;

/// An end that was checked.
#[derive(Debug)]
enum Checked {
    Ran(Box<JobOutcome>),
    Ended(Ended),
}

impl Fleet {
    /// Takes the end of a job. The worker is done with it when this returns; it is scored and written after that.
    pub(super) async fn finish(
        self: &Arc<Self>,
        worker_id: &str,
        key_id: &str,
        job_id: String,
        finish: Finish,
    ) -> Result<(), Refusal> {
        let attempt = Attempt {
            job_id,
            attempt: finish.attempt,
        };
        // It is told again to the server that comes after this one.
        if self.parts.queue.is_closed() {
            return Err(Refusal::Stopping);
        }
        let job = self.held_attempt(worker_id, key_id, &attempt)?;
        match self.parts.queue.extend(&job.claim.lease).await {
            Ok(true) => job.live.job.cancel(),
            Ok(false) => {}
            Err(error) => {
                let refusal = Refusal::from(error);
                if matches!(refusal, Refusal::NotHeld(_)) {
                    self.drop_job(worker_id, &job);
                }
                return Err(refusal);
            }
        }
        let checked = check(&job, finish.end).await?;
        let suspicious = match &checked {
            Checked::Ran(outcome) => is_suspicious(outcome.state),
            Checked::Ended(ended) => matches!(ended, Ended::Failed { .. }),
        };
        let limit = self.parts.quarantine_after;
        let backend = self.with(worker_id, key_id, |member| {
            // Another request may have handed it in meanwhile.
            let is_here = member.jobs.remove(&attempt.job_id).is_some();
            if is_here {
                member.note_end(suspicious, limit);
            }
            is_here.then(|| member.facts.backend.clone())
        })?;
        let Some(backend) = backend else {
            return Err(Refusal::NotHeld(attempt.job_id));
        };
        self.changed.notify_waiters();
        let fleet = Arc::clone(self);
        self.evaluations
            .spawn(async move { fleet.conclude(&job, checked, backend).await });
        Ok(())
    }

    /// Scores a job and writes its end. Its lease is kept alive meanwhile.
    async fn conclude(&self, job: &HeldJob, checked: Checked, backend: String) {
        let (queue, live) = (&*self.parts.queue, &*job.live.job);
        let is_cancelled = live.is_cancelled();
        let every: Duration = queue.lease() / 6;
        let ended = match checked {
            _ if is_cancelled => Some(Ended::Cancelled),
            Checked::Ended(ended) => Some(ended),
            Checked::Ran(outcome) => {
                let scoring = self.score(job, *outcome, backend);
                keep_alive(queue, &job.claim, live, every, scoring).await
            }
        };
        if let Some(ended) = ended {
            report(queue, &job.claim, ended, live.is_cancelled(), &self.parts.stop).await;
        }
    }

    async fn score(&self, job: &HeldJob, outcome: JobOutcome, backend: String) -> Ended {
        // Another machine may do better.
        if is_suspicious(outcome.state) {
            let reason = outcome
                .detail
                .unwrap_or_else(|| "the sandbox of the worker failed".to_owned());
            return Ended::Failed { reason, retry: true };
        }
        let cancel = job.live.job.token();
        let services = &self.parts.services;
        let slot = tokio::select! {
            slot = services.job_slots.acquire() => slot,
            () = cancel.cancelled() => return Ended::Cancelled,
        };
        let Ok(_slot) = slot else { return Ended::Cancelled };
        let judging = self.judging(&job.found.scoring);
        match judge(&*self.parts.sandbox.evaluator, outcome, &judging, cancel).await {
            Ok(candidate) => {
                let ran = Ran {
                    backend,
                    candidate,
                    limits: job.limits.clone(),
                    metric_hash: job.metric_hash.clone(),
                };
                keep_submission(&self.parts.submissions, &job.claim, ran).await
            }
            Err(SandboxError::Cancelled) => Ended::Cancelled,
            Err(error) => Ended::Failed {
                retry: error.class().is_retryable(),
                reason: error.to_string(),
            },
        }
    }
}

/// Looks at what a worker hands in. The submission is the one that lies here, whatever the worker says of it.
async fn check(job: &HeldJob, end: End) -> Result<Checked, Refusal> {
    let run = match end {
        End::Cancelled if job.live.job.is_cancelled() => return Ok(Checked::Ended(Ended::Cancelled)),
        End::Cancelled => {
            return Err(Refusal::Malformed(
                "nobody cancelled the job: give it back instead".to_owned(),
            ));
        }
        End::Failed { reason } => return Ok(Checked::Ended(Ended::Failed { reason, retry: true })),
        End::Ran(run) => run,
    };
    let malformed = |problem: String| Refusal::Malformed(problem);
    let mut outcome = run
        .unpack()
        .map_err(|error| malformed(format!("an output of the program is not Base64: {error}")))?;
    let most = job.limits.log_bytes.saturating_add(LOG_ROOM);
    for log in [&outcome.stdout, &outcome.stderr] {
        if log.kept.len() as u64 > most {
            return Err(malformed(format!(
                "an output of the program has more than {most} bytes"
            )));
        }
    }
    // A program that went well has a submission, and only the evaluation makes a success.
    if matches!(outcome.state, Some(ResultState::Success | ResultState::ScoringFailed)) {
        return Err(malformed("only the server says how a submission is scored".to_owned()));
    }
    if let Some(said) = outcome.submission.take() {
        outcome.submission = Some(job.check_submission(&said).await?);
    }
    if is_suspicious(outcome.state) {
        warn!(
            job = job.claim.lease.job_id,
            reason = outcome.detail,
            "the sandbox of a worker failed"
        );
    }
    Ok(Checked::Ran(Box::new(outcome)))
}
