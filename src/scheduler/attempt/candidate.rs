//! Running a program on one part of a task, and what its rows need to know of it.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::work_dir::WorkDir;
use crate::gym::{Submission, TaskSplit};
use crate::sandbox::{
    CandidateJob, CandidateResult, Evaluation, EvaluationSpec, Evaluator, ResultState, SandboxError, Scoring,
    run_candidate,
};
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::ids;
use crate::scheduler::services::Services;

/// A program to run.
#[derive(Debug, Clone)]
pub struct ProgramRun<'a> {
    /// Job id.
    pub job_id: String,
    /// Executor name.
    pub sandbox: &'a str,
    /// Program text.
    pub code: &'a str,
    /// Part of the task.
    pub split: &'a TaskSplit,
    /// The task has no answers of its own for this part: the program's printed score counts.
    pub self_reported: bool,
    /// Seed that the program finds in `CLADE_SEED`.
    pub seed: i64,
    /// Wall seconds of the program.
    pub seconds: f64,
    /// Wall seconds of the evaluation.
    pub evaluation_seconds: f64,
    /// Start from the warm pool.
    pub warm: bool,
}

/// A program that was run.
#[derive(Debug, Clone)]
pub struct ProgramResult {
    /// Job id.
    pub job_id: String,
    /// SHA-256 of the program text.
    pub code_hash: String,
    /// SHA-256 of the metric.
    pub metric_hash: Option<String>,
    /// What became of it.
    pub candidate: CandidateResult,
}

impl ProgramResult {
    /// Seconds in the sandbox: program and evaluation.
    pub fn sandbox_seconds(&self) -> f64 {
        let run = self
            .candidate
            .job
            .as_ref()
            .and_then(|job| job.wall_seconds)
            .unwrap_or(0.0);
        run + self
            .candidate
            .evaluation
            .as_ref()
            .map_or(0.0, |evaluation| evaluation.wall_seconds)
    }

    /// The score the search goes by: the evaluator's, or the program's own where the task has no other.
    pub fn score(&self, self_reported: bool) -> Option<f64> {
        let candidate = &self.candidate;
        if self_reported {
            candidate
                .self_reported
                .filter(|_| candidate.state == ResultState::Success)
        } else {
            candidate.score
        }
    }
}

/// Runs and scores a program. Its collected submission is handed to `keep` before the job's folder is removed.
///
/// # Errors
/// When the back end fails or the work folder cannot be used.
pub async fn run_program(
    services: &Services,
    run: ProgramRun<'_>,
    cancel: &CancellationToken,
    keep: Option<&mut Option<Vec<u8>>>,
) -> Result<ProgramResult> {
    let sandbox = services.sandbox(run.sandbox)?;
    // A program that runs elsewhere takes no place here; its evaluation does.
    let waiting = SlottedEvaluator {
        evaluator: &*sandbox.evaluator,
        slots: &services.job_slots,
    };
    let (_slot, evaluator): (_, &dyn Evaluator) = if sandbox.executor.runs_elsewhere() {
        (None, &waiting)
    } else {
        (Some(slot(&services.job_slots, cancel).await?), &*sandbox.evaluator)
    };
    let metric_hash = match run.self_reported {
        true => None,
        false => Some(hash_of(&run.split.metric_py).await?),
    };
    let work_dir = WorkDir::create(&services.work_dir, &run.job_id).map_err(|source| SchedulerError::Io {
        path: services.work_dir.clone(),
        source,
    })?;
    let mut limits = services.candidate_limits.clone();
    limits.wall = Duration::from_secs_f64(run.seconds);
    let mut evaluation_limits = services.evaluation_limits.clone();
    evaluation_limits.wall = Duration::from_secs_f64(run.evaluation_seconds);
    let scoring = if run.self_reported {
        Scoring::SelfReported
    } else {
        Scoring::Metric {
            metric_py: run.split.metric_py.clone(),
            answers: run.split.answers.clone(),
        }
    };
    let job = CandidateJob {
        job_id: run.job_id.clone(),
        code: run.code.to_owned(),
        data_dir: run.split.public_dir.clone(),
        scoring,
        env: [("CLADE_SEED".to_owned(), run.seed.to_string())].into(),
        limits,
        evaluation_limits,
        output_name: run.split.submission.name().to_owned(),
        output_is_folder: run.split.submission == Submission::Folder,
        output_dir: work_dir.path().to_owned(),
        warm: run.warm,
        warm_evaluation: run.warm,
        self_reported: clade_udfs::text::final_validation_score,
        observer: None,
    };
    let result = run_candidate(&*sandbox.executor, evaluator, job, cancel).await;
    let kept = match (&result, keep) {
        (Ok(candidate), Some(keep)) => match candidate.job.as_ref().and_then(|job| job.submission.as_ref()) {
            Some(submission) => tokio::fs::read(&submission.path).await.map(|bytes| *keep = Some(bytes)),
            None => Ok(()),
        },
        _ => Ok(()),
    };
    kept.map_err(|source| SchedulerError::Io {
        path: work_dir.path().to_owned(),
        source,
    })?;
    drop(work_dir);
    Ok(ProgramResult {
        job_id: run.job_id,
        code_hash: ids::sha256_hex(run.code.as_bytes()),
        metric_hash,
        candidate: result?,
    })
}

/// Waits for a place of this machine.
async fn slot<'a>(slots: &'a Semaphore, cancel: &CancellationToken) -> Result<SemaphorePermit<'a>, SandboxError> {
    tokio::select! {
        slot = slots.acquire() => slot.map_err(|_| SandboxError::Cancelled),
        () = cancel.cancelled() => Err(SandboxError::Cancelled),
    }
}

/// An evaluator that takes a place of this machine for each evaluation.
#[derive(Debug)]
struct SlottedEvaluator<'a> {
    evaluator: &'a dyn Evaluator,
    slots: &'a Semaphore,
}

#[async_trait]
impl Evaluator for SlottedEvaluator<'_> {
    async fn evaluate(&self, spec: EvaluationSpec, cancel: &CancellationToken) -> Result<Evaluation, SandboxError> {
        let _slot = slot(self.slots, cancel).await?;
        self.evaluator.evaluate(spec, cancel).await
    }
}

async fn hash_of(path: &Path) -> Result<String> {
    let bytes = tokio::fs::read(path).await.map_err(|source| SchedulerError::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(ids::sha256_hex(&bytes))
}
