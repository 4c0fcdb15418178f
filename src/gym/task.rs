//! An imported task: where its files lie in the store.

use std::path::{Path, PathBuf};

use crate::gym::checks::{METRIC, answer_path};
use crate::gym::error::{GymError, io};
use crate::gym::rows::{Submission, TaskRow};

/// One part of a task that submissions are scored on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSplit {
    /// What the candidate sees.
    pub public_dir: PathBuf,
    /// Hidden answers; the ground truth is the first.
    pub answers: Vec<PathBuf>,
    /// The metric.
    pub metric_py: PathBuf,
    /// What a program must write.
    pub submission: Submission,
}

/// A task that can be worked on.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Facts, as in `gym.tasks`.
    pub row: TaskRow,
    /// The validation split, which a search is scored on; `None` when scores are self-reported.
    pub validation: Option<TaskSplit>,
    /// The real test, used at grading only.
    pub final_: TaskSplit,
}

impl Task {
    /// The data that candidates of a search see.
    pub fn search_data(&self) -> &Path {
        self.validation
            .as_ref()
            .map_or(&self.final_.public_dir, |v| &v.public_dir)
    }
}

/// Finds the files of an imported task in the store.
pub fn load_task(store_dir: &Path, row: TaskRow) -> Result<Task, GymError> {
    let root = store_dir.join(&row.package_path);
    let metric_py = root.join(METRIC);
    if !metric_py.is_file() {
        return Err(GymError::package(
            &root,
            format!(
                "the imported copy of task '{}' is gone; import the package again",
                row.task_id
            ),
        ));
    }
    let private = root.join("data/private");
    let final_ = TaskSplit {
        public_dir: root.join("data/public"),
        answers: match row.submission {
            Submission::Table => answer_files(&private, &answer_path(&root))?,
            // The evaluator finds what it needs in its own folder.
            Submission::Folder => vec![private],
        },
        metric_py: metric_py.clone(),
        submission: row.submission,
    };
    let validation = root.join("validation");
    let validation = (row.validation != "self_reported").then(|| TaskSplit {
        public_dir: validation.join("public"),
        answers: vec![validation.join("private/test_answer.csv")],
        metric_py,
        submission: row.submission,
    });
    Ok(Task {
        row,
        validation,
        final_,
    })
}

/// The files of a private folder, the ground truth first.
pub(crate) fn answer_files(private: &Path, truth: &Path) -> Result<Vec<PathBuf>, GymError> {
    let mut others = Vec::new();
    for entry in std::fs::read_dir(private).map_err(io("read", private))? {
        let path = entry.map_err(io("read", private))?.path();
        if path.is_file() && path != truth {
            others.push(path);
        }
    }
    others.sort();
    others.insert(0, truth.to_owned());
    Ok(others)
}
