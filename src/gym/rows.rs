//! Rows that an import adds to the tables of the schema `gym`.

use chrono::{DateTime, Utc};

/// What a program must write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Submission {
    /// One table.
    #[default]
    Table,
    /// A folder with files for every instance.
    Folder,
}

impl Submission {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Table, Self::Folder];

    /// Name of the file or folder, as stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "submission.csv",
            Self::Folder => "output",
        }
    }
}

/// One data set of a task with the published result that scores on it are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Name.
    pub instance: String,
    /// The metric that counts.
    pub metric: String,
    /// Its direction.
    pub higher_is_better: bool,
    /// The published result.
    pub sota: f64,
    /// What the publication compares itself with.
    pub baseline: Option<f64>,
}

/// A row of `gym.tasks`.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    /// Slug of the task.
    pub task_id: String,
    /// First heading or line of the description.
    pub title: String,
    /// Description that candidates read.
    pub description: String,
    /// tabular, text, image, audio, time_series, mixed or scientific.
    pub modality: String,
    /// binary, multiclass, regression, multi_target, ranking, forecasting or other.
    pub task_type: String,
    /// Name of the metric.
    pub metric: String,
    /// Direction of the metric.
    pub higher_is_better: bool,
    /// Least value the metric can take.
    pub theoretical_min: Option<f64>,
    /// Greatest value the metric can take.
    pub theoretical_max: Option<f64>,
    /// Hash of the package's files.
    pub package_hash: String,
    /// Folder of the imported copy, relative to the store.
    pub package_path: String,
    /// Path the package was imported from.
    pub source: String,
    /// split, custom or self_reported.
    pub validation: String,
    /// Why the split is what it is.
    pub validation_note: Option<String>,
    /// Identifier column of the submission.
    pub id_column: Option<String>,
    /// Answer columns.
    pub target_columns: Vec<String>,
    /// Rows of `train.csv`.
    pub train_rows: Option<i64>,
    /// Rows of `test.csv`.
    pub test_rows: Option<i64>,
    /// What leaks the answers, when it is known.
    pub known_leak: Option<String>,
    /// When the package was imported.
    pub imported_at: DateTime<Utc>,
    /// What a program must write.
    pub submission: Submission,
    /// Look at programs before they run, unless a run says otherwise.
    pub preflight: bool,
}

/// A row of `gym.task_files`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFileRow {
    /// Task of the file.
    pub task_id: String,
    /// Path inside the package.
    pub path: String,
    /// public, private, utils, raw or meta.
    pub role: String,
    /// Size in bytes.
    pub bytes: i64,
    /// SHA-256 of the bytes.
    pub sha256: String,
    /// Package the row belongs to.
    pub package_hash: String,
}

/// A row of `gym.leaderboards`.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaderboardRow {
    /// Task of the leaderboard.
    pub task_id: String,
    /// Place, from 1 for the best.
    pub rank: i64,
    /// Name of the team.
    pub team: Option<String>,
    /// Score of the team.
    pub score: f64,
    /// Package the row belongs to.
    pub package_hash: String,
}

/// A row of `gym.quality_checks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualityCheckRow {
    /// Task that was checked.
    pub task_id: String,
    /// Package that was checked.
    pub package_hash: String,
    /// Name of the check.
    pub check_id: String,
    /// passed, warning or failed.
    pub status: String,
    /// What was found.
    pub detail: String,
}

/// A row of `gym.build_events`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildEventRow {
    /// Task.
    pub task_id: String,
    /// Package.
    pub package_hash: String,
    /// imported, split_derived or rebuilt.
    pub event: String,
    /// Details as text.
    pub detail: String,
    /// When it happened.
    pub at: DateTime<Utc>,
}

/// An imported package: its rows, to be committed together.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedTask {
    /// Row of `gym.tasks`.
    pub task: TaskRow,
    /// Rows of `gym.task_files`.
    pub files: Vec<TaskFileRow>,
    /// Rows of `gym.leaderboards`.
    pub leaderboard: Vec<LeaderboardRow>,
    /// Rows of `gym.instances`.
    pub instances: Vec<Instance>,
    /// Rows of `gym.quality_checks`.
    pub checks: Vec<QualityCheckRow>,
    /// Rows of `gym.build_events`.
    pub events: Vec<BuildEventRow>,
}
