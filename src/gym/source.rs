//! What an import reads: a package of ours, or data of another layout presented as one.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::gym::error::GymError;
use crate::gym::manifest::Manifest;
use crate::gym::mle_bench;
use crate::gym::nature_bench;
use crate::gym::package::{MANIFEST, Package};
use crate::gym::rows::Instance;

/// How a task's folder is laid out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Layout {
    /// A package of ours.
    #[default]
    Package,
    /// A competition as MLE-Bench prepares it.
    MleBench(MleBenchOptions),
    /// A task of NatureBench.
    NatureBench,
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

/// What a task is made of.
#[derive(Debug)]
pub enum Contents {
    /// Tables as packages of ours have them.
    Tables,
    /// Tables of a layout with rules of its own: those that only packages of ours must keep are warnings.
    ForeignTables,
    /// Files of any kind, for one or several instances that have published results.
    Instances {
        /// The instances.
        instances: Vec<Instance>,
        /// Those that cannot be compared with a published result, with the reason.
        left_out: Vec<String>,
    },
}

/// Files of a task with their places in a package of ours.
#[derive(Debug)]
pub struct Source {
    /// The files.
    pub package: Package,
    /// What is said about them.
    pub manifest: Manifest,
    /// What the task is made of.
    pub contents: Contents,
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
                    contents: Contents::Tables,
                    made: None,
                })
            }
            Self::MleBench(options) => mle_bench::open(path, options),
            Self::NatureBench => nature_bench::open(path),
        }
    }
}
