//! Errors of the engine.

use clade_catalog::StoreError;
use datafusion::error::DataFusionError;

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
    #[error(transparent)]
    Store(#[from] StoreError),
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
        path: std::path::PathBuf,
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
    /// `clade.snapshot` is no number.
    pub(super) fn snapshot_number(value: &str) -> Self {
        Self::Request(format!(
            "clade.snapshot is '{value}': it takes the number of a snapshot, or '' for the newest"
        ))
    }
}

/// The message without DataFusion's wrapping of errors that are our own.
fn plain_message(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::External(own) => own.to_string(),
        _ => error.strip_backtrace(),
    }
}
