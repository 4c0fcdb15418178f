//! Errors of suites.

use clade_catalog::StoreError;

use crate::engine::EngineError;
use crate::scheduler::SchedulerError;

/// Result of a suite operation.
pub type Result<T, E = SuiteError> = std::result::Result<T, E>;

/// What went wrong with a suite as a whole; a search that fails is a row.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// There is no such definition.
    #[error("there is no suite '{name}': the suites are {}; an own one is a file such as my.toml", .known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The shipped definitions.
        known: Vec<&'static str>,
    },
    /// A definition is wrong.
    #[error("the suite {origin} is wrong: {message}")]
    Definition {
        /// The definition.
        origin: String,
        /// What is wrong, with its line.
        message: String,
    },
    /// A definition cannot be read.
    #[error("the suite {origin} cannot be read: {reason}")]
    Unreadable {
        /// The definition.
        origin: String,
        /// Why, and what to do.
        reason: String,
    },
    /// What was asked for is wrong in itself, whatever the store holds.
    #[error("{0}")]
    Usage(String),
    /// It cannot be done as asked.
    #[error("{0}")]
    Request(String),
    /// What decides how its searches go is not what it was.
    #[error(
        "suite {suite_id} is not resumed, because what is done and what is left would not be comparable:{}\n\
         give the profile and the settings that it began with (--profile, --set, the configuration), or begin another suite under another name",
        lines(.differences)
    )]
    Differs {
        /// The suite.
        suite_id: String,
        /// What differs.
        differences: Vec<String>,
    },
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<SchedulerError> for SuiteError {
    fn from(error: SchedulerError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<StoreError> for SuiteError {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<datafusion::error::DataFusionError> for SuiteError {
    fn from(error: datafusion::error::DataFusionError) -> Self {
        Self::Engine(error.into())
    }
}

fn lines(texts: &[String]) -> String {
    texts.iter().map(|text| format!("\n  {text}")).collect()
}
