//! Errors of the command line and their exit codes.

use std::io;
use std::path::PathBuf;

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;

use crate::config::ConfigError;
use crate::engine::EngineError;
use crate::plot::PlotError;
use crate::report::ReportError;
use crate::router::RouterError;
use crate::service::ServiceError;
use crate::worker::WorkerError;

/// Why a command ended early.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command was used wrongly.
    #[error("{0}")]
    Usage(String),
    /// The command could not do what was asked.
    #[error("{0}")]
    Failed(String),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A statement failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A result could not be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// A report could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The job service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The router failed.
    #[error(transparent)]
    Router(#[from] RouterError),
    /// The worker failed.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// Rows could not be written.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// Rows could not be written as CSV.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// Standard output failed.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
    /// A file failed.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl From<DataFusionError> for CliError {
    fn from(error: DataFusionError) -> Self {
        Self::Engine(error.into())
    }
}

impl CliError {
    /// An error of a file.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }

    /// 1 for a failure, 2 for wrong usage, 130 as shells have it for an interrupt.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Config(_) | Self::Service(ServiceError::Insecure { .. }) => 2,
            Self::Router(RouterError::Config { .. } | RouterError::Service(ServiceError::Insecure { .. })) => 2,
            Self::Interrupted => 130,
            _ => 1,
        }
    }

    /// Whether the reader of our output went away, which is no failure.
    pub fn is_broken_pipe(&self) -> bool {
        let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        match self {
            Self::Output(error) | Self::Arrow(ArrowError::IoError(_, error)) => broken(error),
            Self::Csv(error) => matches!(error.kind(), csv::ErrorKind::Io(error) if broken(error)),
            _ => false,
        }
    }
}
