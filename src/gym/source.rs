//! What an import reads: a package of ours, or data of another layout presented as one.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::gym::error::GymError;
use crate::gym::manifest::Manifest;
use crate::gym::mle_bench;
use crate::gym::package::{MANIFEST, Package};

/// How a task's folder is laid out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Layout {
    /// A package of ours.
    #[default]
    Package,
    /// A competition as MLE-Bench prepares it.
    MleBench(MleBenchOptions),
}

/// What the folder of a prepared competition does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MleBenchOptions {
    /// Folder of competitions with their graders and leaderboards, `mlebench/competitions` of MLE-Bench; without it, they
    /// lie in the folder of the data.
    pub competitions: Option<PathBuf>,
    /// Direction of the metric, where the leaderboard does not tell.
    pub higher_is_better: Option<bool>,
}

/// Files of a task with their places in a package of ours.
#[derive(Debug)]
pub struct Source {
    /// The files.
    pub package: Package,
    /// What is said about them.
    pub manifest: Manifest,
    /// The layout has rules of its own: those that only packages of ours must keep are warnings.
    pub is_foreign: bool,
    /// Files that were made for this import.
    pub made: Option<TempDir>,
}

impl Layout {
    /// Finds the files of a task.
    ///
    /// # Errors
    /// When the folder is not laid out like this.
    pub fn open(&self, path: &Path) -> Result<Source, GymError> {
        match self {
            Self::Package => {
                let package = Package::scan(path)?;
                Ok(Source {
                    manifest: Manifest::read(&package.root.join(MANIFEST))?,
                    package,
                    is_foreign: false,
                    made: None,
                })
            }
            Self::MleBench(options) => mle_bench::open(path, options),
        }
    }
}
