//! Why a worker on another machine is refused something.

use axum::http::StatusCode;

use crate::scheduler::ENGINE_VERSION;
use crate::service::api::ApiError;
use crate::service::error::ServiceError;

/// Code of an answer: the worker must join again.
pub const UNKNOWN_WORKER: &str = "unknown_worker";

/// Why a worker is refused something.
#[derive(Debug)]
pub enum Refusal {
    /// Its version does not suit this server's.
    Version(String),
    /// Its id is another's.
    Taken(String),
    /// It is not known: it left, or the server began anew.
    Unknown(String),
    /// The job is not, or no longer, its own.
    NotHeld(String),
    /// It has all the jobs that it may have.
    NoSlot,
    /// Its submission is not what it says.
    Submission(String),
    /// What it sent cannot be read.
    Malformed(String),
    /// The server is about to end.
    Stopping,
    /// A fault of ours.
    Fault(ServiceError),
}

impl From<ServiceError> for Refusal {
    fn from(fault: ServiceError) -> Self {
        match fault {
            ServiceError::LeaseLost { job_id, .. } => Self::NotHeld(job_id),
            fault => Self::Fault(fault),
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let (status, code, message, advice) = match refusal {
            Refusal::Version(version) => (
                StatusCode::CONFLICT,
                "version_mismatch",
                format!("the worker is of version {version} and this server of {ENGINE_VERSION}"),
                "install the version of the server on the worker's machine: the first two numbers must be the same",
            ),
            Refusal::Taken(worker_id) => (
                StatusCode::CONFLICT,
                "worker_taken",
                format!("a worker '{worker_id}' of another key is known"),
                "start the worker anew: it chooses another id",
            ),
            Refusal::Unknown(worker_id) => (
                StatusCode::NOT_FOUND,
                UNKNOWN_WORKER,
                format!("there is no worker '{worker_id}' of this key"),
                "join first: POST /api/v1/workers/join",
            ),
            Refusal::NotHeld(job_id) => (
                StatusCode::CONFLICT,
                "lease_lost",
                format!("job '{job_id}' is not, or no longer, the worker's own"),
                "drop it: another worker has it, or it has ended",
            ),
            Refusal::NoSlot => (
                StatusCode::CONFLICT,
                "no_free_slot",
                "the worker has all the jobs that it may have".to_owned(),
                "ask when one has ended",
            ),
            Refusal::Submission(problem) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "submission_mismatch",
                format!("the submission is not taken: {problem}"),
                "send it again from its begin, then its size and hash with the end of the job",
            ),
            Refusal::Malformed(problem) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid_field",
                problem,
                "worker and server must be of the same version",
            ),
            Refusal::Stopping => return Self::stopping(),
            Refusal::Fault(fault) => return fault.into(),
        };
        Self::new(status, code, message, advice)
    }
}
