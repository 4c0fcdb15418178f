//! What can go wrong in a back end, as opposed to in a candidate.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::error::ErrorClass;

/// A fault of a back end. A candidate that fails is no error: it is a [`JobOutcome`](super::JobOutcome).
#[derive(Debug, Error)]
pub enum SandboxError {
    /// An option, a path or a limit is wrong.
    #[error("sandbox configuration: {0}")]
    Config(String),
    /// This machine cannot give a layer that the profile wants.
    #[error(
        "the native sandbox cannot run here: {reason}. {advice}; `clade doctor` lists every layer. To run without \
         isolation, ask for the back end `process` by name"
    )]
    Unavailable {
        /// The missing layer and what the kernel said.
        reason: String,
        /// What the user can do.
        advice: String,
    },
    /// The container engine cannot be used.
    #[error("the container engine cannot be used: {reason}. {advice}")]
    Engine {
        /// What it lacks, or what it said.
        reason: String,
        /// What the user can do.
        advice: String,
    },
    /// The image of programs could not be made.
    #[error("cannot {what}: {reason}\n{advice}")]
    Image {
        /// Step that failed.
        what: String,
        /// What went wrong.
        reason: String,
        /// What the user can do.
        advice: String,
    },
    /// The Python interpreter could not be asked where its files are.
    #[error("cannot use the Python interpreter {}: {reason}", path.display())]
    Interpreter {
        /// Interpreter that was asked for.
        path: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// The job service did not do what was asked of it; trying again later may help.
    #[error("the job service at {url} {reason}. {advice}")]
    Service {
        /// Its address.
        url: String,
        /// What it did or said.
        reason: String,
        /// What the user can do.
        advice: String,
    },
    /// A file or directory of the back end itself.
    #[error("sandbox: cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The helper process that supervises jobs died or answered nonsense.
    #[error("the sandbox helper failed: {0}; the job can be tried again")]
    Helper(String),
    /// The caller cancelled; the job's processes are gone.
    #[error("the sandbox job was cancelled")]
    Cancelled,
}

impl SandboxError {
    /// Class that decides about retries.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Config(_)
            | Self::Unavailable { .. }
            | Self::Engine { .. }
            | Self::Image { .. }
            | Self::Interpreter { .. } => ErrorClass::Config,
            Self::Io { .. } | Self::Helper(_) | Self::Service { .. } => ErrorClass::Infra,
            Self::Cancelled => ErrorClass::Cancelled,
        }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
