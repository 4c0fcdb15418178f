//! What can go wrong on the way.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, ApiError>;

/// Whose fault something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The request cannot be served as it was asked.
    Request,
    /// Its prompt does not fit.
    TooLong,
    /// The model cannot be used: files, options, architecture.
    Model,
    /// There is too little memory.
    Memory,
    /// Anything else: libtorch, the machine.
    Internal,
}

/// A fault as the library tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// Whose fault it is.
    pub kind: FaultKind,
    /// What happened, where, and what to do.
    pub message: String,
}

/// Why the library did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// There is no library.
    #[error("there is no {}: `make setup-torch` builds it", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It cannot be loaded.
    #[error("{} cannot be loaded: {source}", path.display())]
    Load {
        /// The library.
        path: PathBuf,
        /// What the system says.
        source: libloading::Error,
    },
    /// It is of another build.
    #[error("{} speaks version {found} and this program {expected}: `make setup-torch` builds it anew", path.display())]
    Version {
        /// The library.
        path: PathBuf,
        /// Its version.
        found: String,
        /// Ours.
        expected: String,
    },
    /// It said no.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A message cannot be read or written.
    #[error("a message of the model library makes no sense: {0}")]
    Message(#[from] serde_json::Error),
}
