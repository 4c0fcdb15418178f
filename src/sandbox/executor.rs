//! The interfaces of a back end.

use std::fmt::Debug;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::SandboxError;
use super::job::{EvaluationSpec, JobSpec};
use super::outcome::{Evaluation, JobOutcome};
use super::probe::Probe;
use super::report::{CapabilityReport, IsolationReport};

/// Runs candidate programs.
#[async_trait]
pub trait Executor: Send + Sync + Debug {
    /// Name as used in statements and stored with jobs.
    fn name(&self) -> &str;

    /// Whether programs run on other machines, so that they take no place on this one.
    fn runs_elsewhere(&self) -> bool {
        false
    }

    /// Runs a job to its end. A program that fails is an outcome, not an error.
    async fn run(&self, job: JobSpec, cancel: &CancellationToken) -> Result<JobOutcome, SandboxError>;

    /// What the machine offers to this back end.
    async fn capabilities(&self) -> Result<CapabilityReport, SandboxError>;

    /// What a job of this back end is shut in by when nothing goes wrong.
    async fn isolation(&self) -> Result<IsolationReport, SandboxError>;

    /// What the interpreter of candidates says of a program before it runs, and which of the modules it does not have. A back end
    /// that cannot ask it has nothing to say.
    async fn probe(&self, code: &str, modules: &[String]) -> Result<Probe, SandboxError> {
        let _ = (code, modules);
        Ok(Probe::default())
    }

    /// Removes what dead processes have left: directories and control groups. Gives how many were removed.
    async fn sweep(&self) -> Result<usize, SandboxError>;
}

/// Scores collected submissions.
#[async_trait]
pub trait Evaluator: Send + Sync + Debug {
    /// Applies the metric. A submission that is refused is an [`Evaluation`], not an error.
    async fn evaluate(&self, spec: EvaluationSpec, cancel: &CancellationToken) -> Result<Evaluation, SandboxError>;
}
