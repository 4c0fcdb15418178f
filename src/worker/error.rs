//! Errors of a worker.

use std::io;
use std::path::PathBuf;

use crate::sandbox::SandboxError;
use crate::service::ServiceError;

/// Why a worker cannot work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The address of the server is none, or one that keys must not be sent to in the clear.
    #[error("--server {url}: {problem}")]
    Address {
        /// The address.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made: {0}")]
    Client(reqwest::Error),
    /// The server does not take this worker.
    #[error("the server does not take this worker: {0}")]
    Refused(Fault),
    /// The sandbox cannot be used.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The sandbox cannot run here, or data cannot be unpacked.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A background task failed.
    #[error("a task of the worker failed: {0}")]
    Background(#[from] tokio::task::JoinError),
}

/// Why a request to the server did not go well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// There was no answer.
    #[error("no answer: {0}")]
    Unreachable(String),
    /// The server said no.
    #[error("{message} ({status} {code}). {advice}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Short name.
        code: String,
        /// What is wrong.
        message: String,
        /// What to do about it.
        advice: String,
    },
    /// The answer cannot be read.
    #[error("the answer cannot be read: {0}")]
    Nonsense(String),
    /// Something on this machine failed.
    #[error("{0}")]
    Local(String),
}

impl Fault {
    /// Trying again later may help.
    pub fn passes(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 500..=599) || self.is(UNKNOWN),
            Self::Nonsense(_) | Self::Local(_) => false,
        }
    }

    /// The server does not know this worker: it must join again.
    pub fn is_unknown_worker(&self) -> bool {
        self.is(UNKNOWN)
    }

    /// The job is another worker's by now, or has ended.
    pub fn is_lost_job(&self) -> bool {
        self.is("lease_lost")
    }

    fn is(&self, name: &str) -> bool {
        matches!(self, Self::Refused { code, .. } if code == name)
    }
}

const UNKNOWN: &str = crate::service::fleet::UNKNOWN_WORKER;
