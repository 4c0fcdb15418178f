//! What can go wrong while a task package is read, checked, split or stored.

use std::path::{Path, PathBuf};

use crate::error::ErrorClass;
use crate::gym::checks::Check;
use crate::sandbox::SandboxError;

/// An error of the gym.
#[derive(Debug, thiserror::Error)]
pub enum GymError {
    /// The package's folder is not what it must be.
    #[error("task package {}: {message}", path.display())]
    Package {
        /// The package or the entry in it.
        path: PathBuf,
        /// What is wrong and what to do.
        message: String,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// `task.toml` is wrong.
    #[error("{}: {message}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A table cannot be read.
    #[error("{}: {message}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The package fails its checks.
    #[error("task '{task_id}' is not imported, its package fails {}: {}; correct the package, or import it anyway with --force",
        count(failed.len()), list(failed))]
    Refused {
        /// The task.
        task_id: String,
        /// The failed checks.
        failed: Vec<Check>,
    },
    /// The direction of the metric is not known.
    #[error("task '{task_id}' is not imported: its metric does not say whether a higher score is better{}; set `higher_is_better` to True or False in the class of utils/metric.py",
        detail.as_deref().map(|d| format!(" ({d})")).unwrap_or_default())]
    NoDirection {
        /// The task.
        task_id: String,
        /// What the metric said instead.
        detail: Option<String>,
    },
    /// The sandbox failed while the metric ran.
    #[error("the metric of task '{task_id}' could not be run: {source}")]
    Sandbox {
        /// The task.
        task_id: String,
        /// The cause.
        source: SandboxError,
    },
    /// A worker thread ended before its work was done.
    #[error("the import of the package was interrupted: {0}")]
    Interrupted(String),
}

impl GymError {
    /// Class of the error, which decides about retries.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Io { .. } | Self::Sandbox { .. } => ErrorClass::Infra,
            Self::Interrupted(_) => ErrorClass::Cancelled,
            _ => ErrorClass::Config,
        }
    }

    pub(crate) fn package(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::Package {
            path: path.into(),
            message: message.into(),
        }
    }

    pub(crate) fn table(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::Table {
            path: path.into(),
            message: message.into(),
        }
    }
}

/// Adds the action and the path to an I/O error.
pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> GymError {
    move |source| GymError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

fn count(n: usize) -> String {
    if n == 1 {
        "1 check".to_owned()
    } else {
        format!("{n} checks")
    }
}

fn list(failed: &[Check]) -> String {
    failed
        .iter()
        .map(|c| format!("{} ({})", c.id, c.detail))
        .collect::<Vec<_>>()
        .join("; ")
}
