//! What a prompt may state: everything that templates can read.

use serde::{Deserialize, Serialize};

use super::context::ContextNode;
use super::packages::Packages;
use super::skills::SkillTexts;
use crate::gym::{DataOverview, Submission, TaskRow};
use crate::sandbox::Limits;
use crate::templates::size;

/// Parts of a time budget in which a prompt states what is left: finer figures would differ between runs of one seed, whose
/// prompts are otherwise the same and whose replies could be taken from the cache.
const TIME_PARTS: f64 = 20.0;

/// Everything that templates can read.
#[derive(Debug, Clone, Serialize)]
pub struct PromptFacts {
    /// The task.
    pub task: TaskFacts,
    /// What a program may use.
    pub limits: LimitFacts,
    /// What is left of the budgets.
    pub budget: PromptBudget,
    /// What a program can import.
    pub packages: Packages,
    /// The public files.
    pub data: DataOverview,
    /// Where the search stands; empty for operators that are not shown it.
    pub board: BoardFacts,
    /// Notes of the user.
    pub skills: SkillTexts,
    /// State the guidance for this kind of task.
    pub guidance: bool,
    /// Nodes, parents first.
    pub nodes: Vec<ContextNode>,
}

/// The task, as a prompt states it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TaskFacts {
    /// Task id.
    pub task_id: String,
    /// Title.
    pub title: String,
    /// Description.
    pub description: String,
    /// tabular, text, image, audio, time_series, mixed or scientific.
    pub modality: String,
    /// binary, multiclass, regression, multi_target, ranking, forecasting or other.
    pub task_type: String,
    /// Name of the metric.
    pub metric: String,
    /// Direction of the metric.
    pub higher_is_better: bool,
    /// Least value of the metric.
    pub theoretical_min: Option<f64>,
    /// Greatest value of the metric.
    pub theoretical_max: Option<f64>,
    /// Column that names a row.
    pub id_column: Option<String>,
    /// Columns to predict.
    pub target_columns: Vec<String>,
    /// split, custom or self_reported.
    pub validation: String,
    /// How the validation split was made.
    pub validation_note: Option<String>,
}

impl TaskFacts {
    /// The part of a task's row that a prompt may state.
    pub fn of(row: &TaskRow) -> Self {
        Self {
            task_id: row.task_id.clone(),
            title: row.title.clone(),
            description: row.description.trim().to_owned(),
            modality: row.modality.clone(),
            task_type: row.task_type.clone(),
            metric: row.metric.clone(),
            higher_is_better: row.higher_is_better,
            theoretical_min: row.theoretical_min,
            theoretical_max: row.theoretical_max,
            id_column: row.id_column.clone(),
            target_columns: row.target_columns.clone(),
            validation: row.validation.clone(),
            validation_note: row.validation_note.clone(),
        }
    }
}

/// What a program may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LimitFacts {
    /// Wall seconds.
    pub seconds: u64,
    /// Cores; `None` for all of the machine.
    pub cpus: Option<u32>,
    /// Memory, with its unit.
    pub memory: String,
    /// Disk in the working folder, with its unit.
    pub scratch: String,
    /// Whether there is a GPU; `None` when it is not known.
    pub has_gpu: Option<bool>,
    /// File to write, or folder.
    pub submission: String,
    /// It is a folder.
    pub submits_folder: bool,
}

impl LimitFacts {
    /// Limits of a sandbox, with the wall seconds of an attempt and what the task wants. The native sandbox shows programs no device.
    pub fn of(limits: &Limits, seconds: f64, sandbox: &str, submission: Submission) -> Self {
        Self {
            seconds: seconds.round() as u64,
            cpus: (limits.cpus > 0).then_some(limits.cpus),
            memory: size(limits.memory_bytes),
            scratch: size(limits.scratch_bytes),
            has_gpu: (sandbox == "native").then_some(false),
            submission: submission.name().to_owned(),
            submits_folder: submission == Submission::Folder,
        }
    }
}

/// Where a search stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BoardFacts {
    /// Method families, the best first.
    pub families: Vec<FamilyFacts>,
    /// Families that were hardly tried and are not hopeless.
    pub underexplored: Vec<String>,
    /// Best validation score.
    pub best_score: Option<f64>,
    /// Family of the best program.
    pub best_family: Option<String>,
    /// Step of the best program.
    pub best_step: Option<i64>,
    /// Steps so far.
    pub steps: i64,
}

/// A method family of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyFacts {
    /// Its name.
    pub method_family: String,
    /// Programs.
    pub nodes: i64,
    /// Programs with a valid score.
    pub good: i64,
    /// Best validation score.
    pub best_score: Option<f64>,
}

/// What is left of the budgets, as a prompt states it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptBudget {
    /// Steps left, this one included.
    pub steps_left: Option<i64>,
    /// Seconds left, to a twentieth of the limit.
    pub seconds_left: Option<i64>,
}

impl PromptBudget {
    /// Seconds left of a limit as a prompt states them: the nearest twentieth of the limit, at least one while there is any.
    pub fn stated_seconds(limit: f64, left: f64) -> i64 {
        if left <= 0.0 || limit <= 0.0 {
            return 0;
        }
        let parts = (left / limit * TIME_PARTS).round().clamp(1.0, TIME_PARTS);
        (limit * parts / TIME_PARTS).round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_stated_in_twentieths_of_the_limit() {
        let stated = |left| PromptBudget::stated_seconds(3600.0, left);
        assert_eq!([stated(3600.0), stated(3599.7), stated(3520.0)], [3600, 3600, 3600]);
        assert_eq!([stated(3420.0), stated(3380.0), stated(1810.4)], [3420, 3420, 1800]);
        assert_eq!([stated(12.0), stated(0.0), stated(-3.0)], [180, 0, 0]);
    }
}
