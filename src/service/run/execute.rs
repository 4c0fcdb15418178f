//! One job from its claim to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::data::DataFinder;
use super::live::{LiveJob, LiveJobs};
use crate::sandbox::{CandidateJob, SandboxError, Scoring, run_candidate};
use crate::scheduler::{Sandbox, Services, WorkDir, sha256_hex};
use crate::service::queue::{Claim, Ended, Ran};
use crate::service::submissions::Submissions;

/// How the clients' programs are to be run; there is one way.
const EXECUTION_MODE: &str = "shell";

/// Runs jobs.
#[derive(Debug)]
pub struct Runner {
    /// What the sandboxes work with.
    pub services: Arc<Services>,
    /// Name of the back end.
    pub backend: String,
    /// The back end.
    pub sandbox: Sandbox,
    /// Finds the data.
    pub data: DataFinder,
    /// Jobs that run here.
    pub live: Arc<LiveJobs>,
    /// Where submissions are kept.
    pub submissions: Arc<Submissions>,
    /// Start programs from the warm pool.
    pub warm: bool,
    /// Time between two signs of life of a running job.
    pub extend_every: Duration,
}

impl Runner {
    /// Runs a job to its end. When its token is cancelled it ends as cancelled, for whatever reason that was.
    pub async fn run(&self, claim: &Claim, job: &Arc<LiveJob>) -> Ended {
        match self.try_run(claim, job, job.token()).await {
            Ok(ended) => ended,
            Err(SandboxError::Cancelled) => Ended::Cancelled,
            Err(error) => Ended::Failed {
                retry: error.class().is_retryable(),
                reason: error.to_string(),
            },
        }
    }

    async fn try_run(
        &self,
        claim: &Claim,
        job: &Arc<LiveJob>,
        cancel: &CancellationToken,
    ) -> Result<Ended, SandboxError> {
        let found = match self.data.find(&claim.request).await {
            Ok(found) => found,
            Err(reason) => return Ok(Ended::Failed { reason, retry: false }),
        };
        let _slot = tokio::select! {
            slot = self.services.job_slots.acquire() => slot.map_err(|_| SandboxError::Cancelled)?,
            () = cancel.cancelled() => return Err(SandboxError::Cancelled),
        };
        let metric_hash = metric_hash(&found.scoring).await?;
        let parent = &self.services.work_dir;
        let work_dir =
            WorkDir::create(parent, &claim.lease.job_id).map_err(SandboxError::io("make a folder in", parent))?;
        let mut limits = self.services.candidate_limits.clone();
        limits.wall = Duration::from_secs_f64(claim.request.timeout);
        let candidate = CandidateJob {
            job_id: claim.lease.job_id.clone(),
            code: claim.code.clone(),
            data_dir: found.dir,
            scoring: found.scoring,
            env: environment(claim),
            limits: limits.clone(),
            evaluation_limits: self.services.evaluation_limits.clone(),
            output_name: found.output.name,
            output_is_folder: found.output.is_folder,
            output_dir: work_dir.path().to_owned(),
            warm: self.warm,
            warm_evaluation: self.warm,
            self_reported: clade_udfs::text::final_validation_score,
            observer: Some(job.observer()),
        };
        let (executor, evaluator) = (&*self.sandbox.executor, &*self.sandbox.evaluator);
        let candidate = run_candidate(executor, evaluator, candidate, cancel).await?;
        let ran = Ran {
            backend: self.backend.clone(),
            candidate,
            limits,
            metric_hash,
        };
        let ended = keep_submission(&self.submissions, claim, ran).await;
        drop(work_dir);
        Ok(ended)
    }
}

/// The end of a program that ran, once its submission is kept.
pub async fn keep_submission(submissions: &Submissions, claim: &Claim, ran: Ran) -> Ended {
    let submission = ran.candidate.job.as_ref().and_then(|job| job.submission.as_ref());
    let kept = match submission {
        Some(submission) => submissions.keep(&claim.lease, submission).await,
        None => Ok(()),
    };
    match kept {
        Ok(()) => Ended::Ran(Box::new(ran)),
        Err(error) => Ended::Failed {
            reason: format!("the submission could not be kept: {error}"),
            retry: true,
        },
    }
}

/// SHA-256 of the metric; none where there is none.
///
/// # Errors
/// When it cannot be read.
pub async fn metric_hash(scoring: &Scoring) -> Result<Option<String>, SandboxError> {
    match scoring {
        Scoring::Metric { metric_py, .. } => {
            let bytes = tokio::fs::read(metric_py).await;
            Ok(Some(sha256_hex(&bytes.map_err(SandboxError::io("read", metric_py))?)))
        }
        Scoring::SelfReported | Scoring::Unscored => Ok(None),
    }
}

/// Variables of the program: those of the request and ours. Where the data lies is told by the back end.
pub fn environment(claim: &Claim) -> BTreeMap<String, String> {
    let request = &claim.request;
    let mut env = request.environment.clone();
    let ours = [
        ("EXECUTION_MODE", EXECUTION_MODE.to_owned()),
        ("RESOURCE_TYPE", request.class.as_str().to_owned()),
        ("PRIORITY", request.priority.to_string()),
        ("JOB_ID", claim.lease.job_id.clone()),
        ("JOB_NAME", request.name.clone()),
        ("JOB_TIMEOUT", request.timeout.to_string()),
    ];
    env.extend(ours.map(|(name, value)| (name.to_owned(), value)));
    env.extend(request.trace_id.clone().map(|trace| ("TRACE_ID".to_owned(), trace)));
    env
}
