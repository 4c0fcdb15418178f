//! The gym: task packages are checked, given a validation split, hashed and copied into the store.
//!
//! A package is a folder:
//!
//! ```text
//! data/public/{description.txt,train.csv,test.csv,sample_submission.csv,…}   what candidates see
//! data/private/test_answer.csv                                              hidden answers, or test_answer.jsonl
//! utils/metric.py      a class ending in `Metrics`: higher_is_better, validate_submission, evaluate
//! utils/split.py       optional: makes the validation split where it cannot be derived
//! leaderboard.csv, task.toml, raw/                                          optional
//! ```
//!
//! [`import_package`] returns the rows of `gym.*`; committing them is the caller's part. Until then nothing refers to the copy.

mod checks;
mod columns;
mod error;
mod import;
mod infer;
mod instances;
mod json_lines;
mod leaderboard;
mod manifest;
mod mle_bench;
mod nature_bench;
mod overview;
mod package;
mod progress;
mod rows;
mod slug;
mod source;
mod split;
mod stage;
mod table;
mod task;
#[cfg(test)]
mod tests;

pub use checks::{Check, CheckStatus, RawUsage};
pub use error::GymError;
pub use import::{Import, import_package};
pub use manifest::{Manifest, Modality, TaskType, Unit, ValidationSettings};
pub use overview::{ColumnOverview, DataOverview, FileOverview};
pub use package::FileRole;
pub use progress::Progress;
pub use rows::{
    BuildEventRow, ImportedTask, Instance, LeaderboardRow, QualityCheckRow, Submission, TaskFileRow, TaskRow,
};
pub use slug::{InvalidTaskName, normalize_slug, normalize_slugs, validate_task_name};
pub use source::{Layout, MleBenchOptions};
pub use task::{Task, TaskSplit, load_task};
