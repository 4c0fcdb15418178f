//! Errors of the service itself; what a client is told is an [`ApiError`](super::api::ApiError).

use std::io;
use std::path::PathBuf;

use clade_catalog::StoreError;
use datafusion::error::DataFusionError;

use crate::sandbox::SandboxError;
use crate::scheduler::SchedulerError;

/// Result of an operation of the service.
pub type Result<T, E = ServiceError> = std::result::Result<T, E>;

/// What went wrong in the service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The address is not one that may be served without TLS.
    #[error(
        "{address} can be reached from other machines, and keys would be sent in the clear: give --tls-cert and --tls-key, \
         or say --insecure where something before this server encrypts"
    )]
    Insecure {
        /// The address.
        address: String,
    },
    /// The address is none, or cannot be listened on.
    #[error("cannot listen on {address}: {source}. Name another with --address, such as 127.0.0.1:8765")]
    Address {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Certificate and key cannot be used.
    #[error("the TLS certificate {} and key {} cannot be used: {source}", certificate.display(), key.display())]
    Tls {
        /// Certificate file.
        certificate: PathBuf,
        /// Key file.
        key: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The configuration cannot be served.
    #[error("{0}")]
    Config(String),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// A query failed.
    #[error("{context}: {source}")]
    Query {
        /// What was being done.
        context: &'static str,
        /// Cause.
        source: Box<DataFusionError>,
    },
    /// A task could not be read, or rows not be made.
    #[error(transparent)]
    Scheduler(#[from] SchedulerError),
    /// The sandbox cannot be used.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// What is stored of a job cannot be read.
    #[error("what the store holds of job {job_id} cannot be read: {source}")]
    Stored {
        /// Job.
        job_id: String,
        /// Cause.
        source: serde_json::Error,
    },
    /// A job is leased to somebody else by now: it was taken for lost and began anew.
    #[error("job {job_id} is no longer leased to {owner}: its result came too late")]
    LeaseLost {
        /// Job.
        job_id: String,
        /// Who thought to have it.
        owner: String,
    },
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
    /// The server failed.
    #[error("the server failed: {0}")]
    Server(io::Error),
    /// A background task failed.
    #[error("a task of the service failed: {0}")]
    Background(#[from] tokio::task::JoinError),
    /// A text is no key.
    #[error(
        "that is no API key: a key is clade_, 12 and 64 letters of 0-9 and a-f with _ between, as `clade key create` prints it"
    )]
    NoKey,
    /// There is a key of this id already.
    #[error(
        "there is a key '{key_id}' already, of {name}: a key is taken once; `clade key list` shows it, and one that was revoked \
         cannot be used again"
    )]
    KeyTaken {
        /// Key.
        key_id: String,
        /// Its user.
        name: String,
    },
    /// There is no such key.
    #[error("there is no key '{key_id}': `clade key list` shows them")]
    UnknownKey {
        /// Key.
        key_id: String,
    },
}

impl ServiceError {
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    /// Whether it is for want of room.
    pub(super) fn is_full_disk(&self) -> bool {
        match self {
            Self::Store(error) => is_full_store(error),
            Self::Io { source, .. } => is_full(source),
            _ => false,
        }
    }

    pub(super) fn query(context: &'static str) -> impl FnOnce(DataFusionError) -> Self {
        move |source| Self::Query {
            context,
            source: Box::new(source),
        }
    }
}

fn is_full_store(error: &StoreError) -> bool {
    match error {
        StoreError::DiskFull { .. } => true,
        StoreError::Group(cause) => is_full_store(cause),
        StoreError::Io { source, .. } => is_full(source),
        _ => false,
    }
}

/// Whether a file operation failed for want of room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl From<StoreError> for ServiceError {
    /// Control closures carry errors of ours through the commit; they come out here as what they were.
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Control(cause) => match cause.downcast::<Self>() {
                Ok(own) => *own,
                Err(cause) => Self::Store(StoreError::Control(cause)),
            },
            error => Self::Store(error),
        }
    }
}

impl From<rusqlite::Error> for ServiceError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(StoreError::Control(Box::new(error)))
    }
}
