//! What a worker needs of the queue. The workers of this process call it directly; one on another machine can be served with the same
//! four calls, whose arguments and answers are plain data.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::request::{Class, JobRequest};
use crate::sandbox::{CandidateResult, Limits};
use crate::service::error::Result;

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Its id.
    pub worker_id: String,
    /// The process that it belongs to.
    pub owner: String,
    /// Jobs that it takes.
    pub class: Class,
}

/// The right to run a job: one attempt of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Job.
    pub job_id: String,
    /// Process that holds it.
    pub owner: String,
    /// Number of the attempt.
    pub attempt: u32,
}

/// A job to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Claim {
    /// The right to run it.
    pub lease: Lease,
    /// User.
    pub user: String,
    /// What was asked for.
    pub request: JobRequest,
    /// SHA-256 of the request.
    pub request_hash: String,
    /// The program.
    pub code: String,
    /// When it came, microseconds UTC.
    pub queued_at: i64,
    /// When it was taken up.
    pub started_at: i64,
    /// Worker that took it up.
    pub worker_id: String,
}

/// A program that ran.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ran {
    /// Back end.
    pub backend: String,
    /// What became of it.
    pub candidate: CandidateResult,
    /// Limits that it ran under.
    pub limits: Limits,
    /// SHA-256 of the metric.
    pub metric_hash: Option<String>,
}

/// How a job ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The program ran, or there was a reason in the request not to run it.
    Ran(Box<Ran>),
    /// The service could not run it.
    Failed {
        /// Why.
        reason: String,
        /// Trying again may help.
        retry: bool,
    },
    /// The user cancelled it.
    Cancelled,
}

/// The queue as a worker sees it.
#[async_trait]
pub trait JobSource: Send + Sync + Debug {
    /// Waits for a job and takes it up; none when the queue gives out no more.
    async fn claim(&self, worker: &Worker) -> Result<Option<Claim>>;

    /// Prolongs the lease of a job that still runs; says whether the user wants it to end.
    async fn extend(&self, lease: &Lease) -> Result<bool>;

    /// Ends a job: one commit with its rows.
    async fn finish(&self, claim: &Claim, ended: Ended) -> Result<()>;

    /// Puts a job back that this worker cannot bring to its end.
    async fn give_back(&self, claim: &Claim) -> Result<()>;

    /// Notes that a job was taken from its worker, which will not say how it ended.
    fn note_lost(&self, claim: &Claim);
}
