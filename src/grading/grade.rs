//! Grading one submission.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};
use clade_catalog::{Rows, StoreError};
use tokio_util::sync::CancellationToken;

use super::standing::Standing;
use crate::gym::Task;
use crate::sandbox::{EvaluationSpec, Evaluator, Limits, ResultState, SandboxError};

/// What grading found.
#[derive(Debug, Clone, PartialEq)]
pub struct Grade {
    /// Result state.
    pub status: ResultState,
    /// The metric accepted the submission and its score is finite.
    pub valid: bool,
    /// Test score.
    pub score: Option<f64>,
    /// Place on the leaderboard.
    pub standing: Standing,
    /// Why the submission is not valid.
    pub detail: Option<String>,
    /// Scores of the task's instances, where it has some; none for an instance without a valid output.
    pub instances: BTreeMap<String, Option<f64>>,
}

/// A row of `bench.grades`.
#[derive(Debug, Clone, PartialEq)]
pub struct GradeRow {
    /// Submission that was graded.
    pub submission_id: String,
    /// Run of the submission.
    pub run_id: Option<String>,
    /// Node of the submission.
    pub node_id: Option<String>,
    /// Task.
    pub task_id: String,
    /// The grade.
    pub grade: Grade,
    /// When it was graded.
    pub graded_at: DateTime<Utc>,
    /// Part it plays in its run.
    pub role: Option<GradeRole>,
    /// Number of the node's run on the final data, from 1.
    pub repeat: Option<i64>,
    /// How the node was chosen.
    pub selection: Option<String>,
}

/// Part that a grade plays in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GradeRole {
    /// Of the node that the run ended with.
    Final,
    /// Of a node that was the best so far at some step.
    Incumbent,
}

impl GradeRole {
    /// Name as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Incumbent => "incumbent",
        }
    }
}

impl Grade {
    /// Grade of an evaluation against the hidden answers, placed among the scores of `leaderboard`.
    pub fn of(
        state: ResultState,
        score: Option<f64>,
        detail: Option<String>,
        leaderboard: &[f64],
        higher_is_better: bool,
    ) -> Self {
        let score = score.filter(|score| score.is_finite() && state == ResultState::Success);
        Self {
            status: if state == ResultState::Success && score.is_none() {
                ResultState::ScoringFailed
            } else {
                state
            },
            valid: score.is_some(),
            score,
            standing: Standing::of(score, leaderboard, higher_is_better),
            detail,
            instances: BTreeMap::new(),
        }
    }

    /// The same with the scores of instances.
    pub fn with_instances(self, instances: BTreeMap<String, Option<f64>>) -> Self {
        Self { instances, ..self }
    }
}

impl GradeRow {
    /// The row for `bench.grades`.
    ///
    /// # Errors
    /// When a value does not fit its column.
    pub fn rows(&self) -> Result<Rows, StoreError> {
        let Grade {
            status,
            valid,
            score,
            standing,
            detail,
            instances: _,
        } = &self.grade;
        let mut rows = Rows::new("bench.grades")?;
        rows.push([
            ("submission_id", self.submission_id.clone().into()),
            ("run_id", self.run_id.clone().into()),
            ("node_id", self.node_id.clone().into()),
            ("task_id", self.task_id.clone().into()),
            ("status", status.as_str().into()),
            ("valid", (*valid).into()),
            ("score", (*score).into()),
            ("medal", standing.medal.into()),
            ("rank", standing.rank.into()),
            ("human_rank", standing.human_rank.into()),
            ("teams", standing.teams.into()),
            ("leaderboard_median", standing.leaderboard_median.into()),
            ("detail", detail.clone().into()),
            ("graded_at", self.graded_at.into()),
            ("role", self.role.map(GradeRole::as_str).into()),
            ("repeat", self.repeat.into()),
            ("selection", self.selection.clone().into()),
        ])?;
        Ok(rows)
    }

    /// The rows for `bench.instance_scores`; none for a task without instances.
    ///
    /// # Errors
    /// When a value does not fit its column.
    pub fn instance_rows(&self) -> Result<Rows, StoreError> {
        let mut rows = Rows::new("bench.instance_scores")?;
        for (instance, score) in &self.grade.instances {
            rows.push([
                ("submission_id", self.submission_id.clone().into()),
                ("run_id", self.run_id.clone().into()),
                ("task_id", self.task_id.clone().into()),
                ("instance", instance.clone().into()),
                ("score", (*score).into()),
            ])?;
        }
        Ok(rows)
    }
}

/// Scores a collected submission on the task's hidden answers and places it among the scores of `leaderboard`.
/// A submission that is refused is a grade without a score, not an error.
pub async fn grade_submission(
    task: &Task,
    submission: &Path,
    leaderboard: &[f64],
    evaluator: &dyn Evaluator,
    limits: Limits,
    cancel: &CancellationToken,
) -> Result<Grade, SandboxError> {
    let spec = EvaluationSpec {
        metric_py: task.final_.metric_py.clone(),
        answers: task.final_.answers.clone(),
        submission: submission.to_owned(),
        limits,
        // Final scores do not share an interpreter's past with other jobs.
        warm: false,
    };
    let evaluation = evaluator.evaluate(spec, cancel).await?;
    let score = evaluation.score.filter(|_| evaluation.valid);
    let higher_is_better = task.row.higher_is_better;
    Ok(Grade::of(
        evaluation.state,
        score,
        evaluation.detail,
        leaderboard,
        higher_is_better,
    )
    .with_instances(evaluation.instances))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::gym::{TaskRow, TaskSplit};
    use crate::sandbox::Evaluation;
    use async_trait::async_trait;
    use std::path::PathBuf;

    #[derive(Debug)]
    struct Gives(Evaluation);

    #[async_trait]
    impl Evaluator for Gives {
        async fn evaluate(&self, spec: EvaluationSpec, _: &CancellationToken) -> Result<Evaluation, SandboxError> {
            assert!(spec.answers[0].ends_with("data/private/test_answer.csv") && !spec.warm);
            Ok(self.0.clone())
        }
    }

    fn task() -> Task {
        let row = TaskRow {
            task_id: "t".into(),
            title: String::new(),
            description: String::new(),
            modality: "tabular".into(),
            task_type: "regression".into(),
            metric: "rmse".into(),
            higher_is_better: false,
            theoretical_min: None,
            theoretical_max: None,
            package_hash: String::new(),
            package_path: String::new(),
            source: String::new(),
            validation: "split".into(),
            validation_note: None,
            id_column: None,
            target_columns: vec![],
            train_rows: None,
            test_rows: None,
            known_leak: None,
            imported_at: Utc::now(),
            submission: crate::gym::Submission::Table,
            preflight: false,
        };
        let split = |name: &str| TaskSplit {
            public_dir: PathBuf::from(name).join("public"),
            answers: vec![PathBuf::from(name).join("private/test_answer.csv")],
            metric_py: PathBuf::from("utils/metric.py"),
            submission: crate::gym::Submission::Table,
        };
        Task {
            row,
            validation: Some(split("validation")),
            final_: split("data"),
        }
    }

    async fn graded(score: Option<f64>, valid: bool, state: ResultState) -> Grade {
        let evaluation = Evaluation {
            score,
            valid,
            higher_is_better: Some(true),
            metric_class: None,
            instances: BTreeMap::new(),
            state,
            detail: None,
            wall_seconds: 0.0,
        };
        let board = [1.0, 2.0, 3.0];
        grade_submission(
            &task(),
            Path::new("s.csv"),
            &board,
            &Gives(evaluation),
            Limits::for_evaluation(),
            &CancellationToken::new(),
        )
        .await
        .unwrap()
    }

    #[tokio::test]
    async fn the_tasks_direction_counts() {
        let grade = graded(Some(0.5), true, ResultState::Success).await;
        assert_eq!(
            (grade.valid, grade.standing.rank, grade.standing.medal),
            (true, Some(1), Some("gold"))
        );
    }

    #[tokio::test]
    async fn what_is_not_scored_is_not_placed() {
        for (score, valid, state) in [
            (None, false, ResultState::ScoringFailed),
            (Some(f64::NAN), true, ResultState::Success),
            (Some(0.5), false, ResultState::Success),
        ] {
            let grade = graded(score, valid, state).await;
            assert_eq!(
                (grade.valid, grade.score, grade.status, grade.standing.rank),
                (false, None, ResultState::ScoringFailed, None)
            );
            assert_eq!(grade.standing.teams, Some(3));
        }
    }
}
