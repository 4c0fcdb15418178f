//! Errors of the router itself; what a client is told is a [`Refused`](super::api::Refused).

use std::io;
use std::path::PathBuf;

use crate::service::ServiceError;

/// What went wrong in the router.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RouterError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}. Name the router's file with --config", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something in the file is wrong.
    #[error("{}: {problem}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Changes of the file cannot be noticed.
    #[error("changes of {} cannot be noticed: {source}", path.display())]
    Watch {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: notify::Error,
    },
    /// Signals cannot be received.
    #[error("cannot listen for SIGHUP: {0}")]
    Signal(io::Error),
    /// The address or the certificate cannot be used.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The server failed.
    #[error("the router failed: {0}")]
    Server(io::Error),
    /// A background task failed.
    #[error("a task of the router failed: {0}")]
    Background(#[from] tokio::task::JoinError),
}
