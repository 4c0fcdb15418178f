//! Errors of the engine.

use std::path::{Path, PathBuf};

use clade_catalog::StoreError;
use datafusion::error::DataFusionError;
use rusqlite::ErrorCode;

use crate::dialect::DialectError;
use crate::gym::GymError;
use crate::model::ModelError;
use crate::plan::PlanError;
use crate::policy::PolicyError;
use crate::sandbox::SandboxError;
use crate::scheduler::SchedulerError;

/// Result of an engine operation.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// What went wrong in a statement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The text does not parse.
    #[error(transparent)]
    Dialect(#[from] DialectError),
    /// The plan is refused.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A policy is refused.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Planning or execution failed.
    #[error("{}", plain_message(.0))]
    Query(#[from] Box<DataFusionError>),
    /// A statement does not plan, and the place of the fault is known.
    #[error("{place}")]
    Statement {
        /// The place and what is wrong there.
        place: DialectError,
        /// DataFusion's error.
        source: Box<DataFusionError>,
    },
    /// The store failed.
    #[error("{}", store_message(.0))]
    Store(#[from] StoreError),
    /// The database of the store cannot be read.
    #[error(
        "the store's database {} is damaged: {reason}. Restore the file (and its -wal) from a backup", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        reason: String,
    },
    /// A run or statement could not be conducted.
    #[error(transparent)]
    Scheduler(#[from] SchedulerError),
    /// A task package could not be imported.
    #[error(transparent)]
    Gym(#[from] GymError),
    /// A generator is not known or not set up.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The sandbox could not be set up.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The configuration is wrong.
    #[error("{0}")]
    Config(String),
    /// The statement cannot be done as asked.
    #[error("{0}")]
    Request(String),
    /// A file operation failed.
    #[error("{path}: {source}")]
    Io {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
}

impl From<DataFusionError> for EngineError {
    fn from(error: DataFusionError) -> Self {
        Self::Query(Box::new(error))
    }
}

impl EngineError {
    /// Names the file where the database of the store in `dir` turns out to be damaged.
    pub(super) fn with_database(self, dir: &Path) -> Self {
        match self.store_error().and_then(damage) {
            Some(reason) => Self::Damaged {
                path: dir.join(DATABASE),
                reason,
            },
            None => self,
        }
    }

    /// Whether there is no space left, so that nothing more can be written for now.
    pub(super) fn is_disk_full(&self) -> bool {
        self.store_error()
            .is_some_and(|error| matches!(cause(error), StoreError::DiskFull { .. }))
    }

    fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::Query(error) => match error.find_root() {
                DataFusionError::External(own) => own.downcast_ref(),
                _ => None,
            },
            _ => None,
        }
    }

    /// `clade.snapshot` is no number.
    pub(super) fn snapshot_number(value: &str) -> Self {
        Self::Request(format!(
            "clade.snapshot is '{value}': it takes the number of a snapshot, or '' for the newest"
        ))
    }
}

/// Name of the database in the folder of a store.
const DATABASE: &str = "clade.sqlite";

/// What DataFusion writes before a message; it says in which of its parts the error arose.
const PREFIXES: [&str; 10] = [
    "Error during planning: ",
    "Execution error: ",
    "This feature is not implemented: ",
    "Invalid or Unsupported Configuration: ",
    "Schema error: ",
    "Resources exhausted: ",
    "Object Store error: ",
    "Parquet error: ",
    "Arrow error: ",
    "IO error: ",
];

/// The message without DataFusion's wrapping, also of errors that are our own.
fn plain_message(error: &DataFusionError) -> String {
    let root = error.find_root();
    if let DataFusionError::External(own) = root {
        return own.to_string();
    }
    let message = root.strip_backtrace();
    let plain = PREFIXES.iter().find_map(|prefix| message.strip_prefix(prefix));
    let plain = plain.unwrap_or(&message);
    match plain.strip_prefix("Unsupported SQL statement: ") {
        Some(statement) => format!("Clade has no such statement: {statement}"),
        None => plain.to_owned(),
    }
}

/// The error of a commit behind that of the group that it was written with.
fn cause(error: &StoreError) -> &StoreError {
    match error {
        StoreError::Group(inner) => cause(inner),
        error => error,
    }
}

/// What SQLite says of a database that is damaged.
fn damage(error: &StoreError) -> Option<String> {
    let (context, source) = match cause(error) {
        StoreError::Sqlite { context, source } => (*context, source),
        StoreError::Control(source) => ("read the database", source.downcast_ref::<rusqlite::Error>()?),
        _ => return None,
    };
    let is_damage = matches!(
        source.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
    );
    is_damage.then(|| format!("{context}: {source}"))
}

/// A full disk says itself that nothing was written.
fn store_message(error: &StoreError) -> String {
    match cause(error) {
        full @ StoreError::DiskFull { .. } => full.to_string(),
        _ => error.to_string(),
    }
}
