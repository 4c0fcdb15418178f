//! A run of a program as `sandbox.jobs` keeps it.

use clade_catalog::{Rows, Value};
use serde_json::json;

use super::signed;
use crate::sandbox::CapturedLog;
use crate::scheduler::attempt::candidate::ProgramResult;
use crate::scheduler::error::Result;
use crate::scheduler::services::Services;

/// What a job was run for.
#[derive(Debug, Clone, Copy)]
pub struct JobPurpose<'a> {
    /// Attempt that it served.
    pub attempt_id: Option<&'a str>,
    /// Run that it belongs to.
    pub run_id: Option<&'a str>,
    /// Task.
    pub task_id: &'a str,
    /// Part of the task: validation or final.
    pub split: &'a str,
}

/// Rows of a sandbox job.
///
/// # Errors
/// When a blob cannot be written.
pub async fn job_rows(
    services: &Services,
    purpose: JobPurpose<'_>,
    backend: &str,
    run: &ProgramResult,
) -> Result<Rows> {
    let candidate = &run.candidate;
    let mut rows = Rows::new("sandbox.jobs")?;
    let Some(job) = &candidate.job else { return Ok(rows) };
    let submission = job.submission.as_ref();
    rows.push([
        ("job_id", run.job_id.clone().into()),
        ("attempt_id", purpose.attempt_id.map(str::to_owned).into()),
        ("run_id", purpose.run_id.map(str::to_owned).into()),
        ("task_id", purpose.task_id.into()),
        ("split", purpose.split.into()),
        ("backend", backend.into()),
        ("status", candidate.state.as_str().into()),
        ("detail", candidate.detail.clone().into()),
        ("cause", job.cause.as_str().into()),
        ("exit_code", job.exit_code.map(i64::from).into()),
        ("signal", job.signal.map(i64::from).into()),
        ("oom", job.oom.into()),
        ("cpu_seconds", job.cpu_seconds.into()),
        ("wall_seconds", job.wall_seconds.into()),
        (
            "evaluation_seconds",
            candidate
                .evaluation
                .as_ref()
                .map(|evaluation| evaluation.wall_seconds)
                .into(),
        ),
        ("peak_memory_bytes", signed(job.peak_memory_bytes).into()),
        ("stdout_head", job.stdout.head.clone().into()),
        ("stdout_tail", job.stdout.tail.clone().into()),
        ("stdout_bytes", signed(Some(job.stdout.bytes)).into()),
        ("stdout_hash", log_blob(services, &job.stdout).await?.into()),
        ("stderr_head", job.stderr.head.clone().into()),
        ("stderr_tail", job.stderr.tail.clone().into()),
        ("stderr_bytes", signed(Some(job.stderr.bytes)).into()),
        ("stderr_hash", log_blob(services, &job.stderr).await?.into()),
        ("logs_truncated", (job.stdout.truncated || job.stderr.truncated).into()),
        (
            "score",
            if purpose.split == "final" {
                Value::Null
            } else {
                candidate.score.into()
            },
        ),
        ("code_hash", run.code_hash.clone().into()),
        ("metric_hash", run.metric_hash.clone().into()),
        (
            "submission_hash",
            submission.map(|submission| submission.sha256.clone()).into(),
        ),
        (
            "submission_bytes",
            submission.and_then(|submission| signed(Some(submission.bytes))).into(),
        ),
        ("isolation", json!(job.isolation).to_string().into()),
        ("warm", job.warm.into()),
        ("queued_at", job.queued_at.into()),
        ("started_at", job.started_at.into()),
        ("finished_at", job.finished_at.into()),
    ])?;
    Ok(rows)
}

/// Blob of a log that its excerpts do not show whole.
async fn log_blob(services: &Services, log: &CapturedLog) -> Result<Option<String>> {
    let excerpt_is_all =
        log.head.len() + log.tail.len() == log.kept.len() && !log.truncated && std::str::from_utf8(&log.kept).is_ok();
    if excerpt_is_all {
        return Ok(None);
    }
    Ok(Some(services.store.put_blob(log.kept.clone()).await?))
}
