//! What a job's run is told as: its result for the client, its row for the store.

use clade_catalog::Rows;

use crate::sandbox::{CandidateResult, CapturedLog, Collected, JobOutcome, ResultState};
use crate::scheduler::{JobPurpose, ProgramResult, Services, job_rows};
use crate::service::error::Result;
use crate::service::queue::{Claim, DataRef, EvalSplit, LogFacts, Ran, RunDetail, StoredResult, SubmissionFacts};

/// What the client is told.
pub fn result_of(claim: &Claim, ran: &Ran) -> StoredResult {
    let candidate = &ran.candidate;
    let is_success = candidate.state == ResultState::Success;
    let (score, source) = match (&ran.metric_hash, candidate.score, candidate.self_reported) {
        (Some(_), score, _) => (score, "evaluator"),
        (None, _, own) => (own.filter(|_| is_success), "self_reported"),
    };
    let job = candidate.job.as_ref();
    StoredResult {
        result: candidate.state,
        score,
        score_source: score.map(|_| source.to_owned()),
        detail: RunDetail {
            reason: reason(&claim.request.data, candidate),
            cause: job.map(|job| job.cause),
            exit_code: job.and_then(|job| job.exit_code),
            signal: job.and_then(|job| job.signal),
            oom: job.is_some_and(|job| job.oom),
            wall_seconds: job.and_then(|job| job.wall_seconds),
            cpu_seconds: job.and_then(|job| job.cpu_seconds),
            peak_memory_bytes: job.and_then(|job| job.peak_memory_bytes),
            evaluation_seconds: candidate.evaluation.as_ref().map(|evaluation| evaluation.wall_seconds),
            limits: Some(ran.limits.clone()),
            isolation: job.map(|job| job.isolation.grade),
            layers: job.map_or_else(Vec::new, |job| job.isolation.layers.keys().copied().collect()),
            end: job.map(|job| job.end.clone()),
            sandbox: job.map(|job| job.isolation.clone()),
            warm: job.is_some_and(|job| job.warm),
            program_times: [
                job.and_then(|job| job.started_at.map(|time| time.timestamp_micros())),
                job.map(|job| job.finished_at.timestamp_micros()),
            ],
            logs: job.map_or_else(Default::default, |job| [&job.stdout, &job.stderr].map(log_facts)),
            submission: job.and_then(|job| job.submission.as_ref().map(submission_facts)),
            no_submission: job.and_then(no_submission),
        },
    }
}

fn log_facts(log: &CapturedLog) -> LogFacts {
    LogFacts {
        bytes: log.bytes,
        truncated: log.truncated,
    }
}

fn submission_facts(submission: &Collected) -> SubmissionFacts {
    let name = submission.path.file_name().unwrap_or_default();
    SubmissionFacts {
        name: name.to_string_lossy().into_owned(),
        bytes: submission.bytes,
        sha256: submission.sha256.clone(),
    }
}

/// Why a program that ended well left no submission.
fn no_submission(job: &JobOutcome) -> Option<String> {
    job.detail
        .clone()
        .filter(|_| job.end.verdict().is_none() && job.submission.is_none())
}

/// The reason of the state. What a metric says may hold hidden answers: only its word on whether the submission is valid is passed
/// on, and of the real test not even that.
fn reason(data: &DataRef, candidate: &CandidateResult) -> Option<String> {
    const PASSED_ON: [&str; 2] = ["the submission is not valid", "the submission cannot be read"];
    let reason = candidate.detail.as_deref()?;
    if candidate.evaluation.is_none() {
        return Some(reason.to_owned());
    }
    let (stage, _) = reason.split_once(": ").unwrap_or((reason, ""));
    let is_final = matches!(
        data,
        DataRef::Task {
            split: EvalSplit::Final,
            ..
        }
    );
    let passed_on = !is_final && PASSED_ON.contains(&stage);
    Some(if passed_on { reason } else { stage }.to_owned())
}

/// The row of `sandbox.jobs`; none where no program ran.
pub async fn job_row(services: &Services, claim: &Claim, ran: &Ran) -> Result<Rows> {
    let data = claim.request.data.name();
    let purpose = JobPurpose {
        attempt_id: None,
        run_id: None,
        task_id: &data,
        split: claim.request.data.split(),
    };
    let program = ProgramResult {
        job_id: claim.lease.job_id.clone(),
        code_hash: claim.request.code_hash.clone(),
        metric_hash: ran.metric_hash.clone(),
        candidate: ran.candidate.clone(),
    };
    Ok(job_rows(services, purpose, &ran.backend, &program).await?)
}
