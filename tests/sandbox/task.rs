//! A small task with a metric and hidden answers.

use std::path::PathBuf;
use std::time::Duration;

use clade::sandbox::{CandidateJob, EvaluationSpec, Limits, Scoring};

use super::support::{Bench, program, small_limits};

/// Says which part of the rows of `submissions.py` is right.
pub const METRIC: &str = r#"
import pandas as pd

class PairMetrics:
    higher_is_better = True

    def validate_submission(self, submission, ground_truth):
        if list(submission.columns) != ["id", "y"]:
            raise ValueError(f"wrong columns: {list(submission.columns)[:5]}")
        if sorted(submission["id"]) != sorted(ground_truth["id"]):
            raise ValueError("the ids do not match")
        if not pd.to_numeric(submission["y"], errors="coerce").abs().lt(1e9).all():
            raise ValueError("predictions must be finite numbers")

    def evaluate(self, y_true=None, y_pred=None):
        merged = y_true.merge(y_pred, on="id")
        return float((merged["y_x"] == merged["y_y"]).mean())
"#;

pub struct Task {
    pub bench: Bench,
    pub metric: PathBuf,
    pub answers: PathBuf,
}

impl Task {
    pub fn new(metric: &str) -> Self {
        let bench = Bench::new();
        let (metric_path, answers) = (
            bench.root.path().join("metric.py"),
            bench.root.path().join("ánswers.csv"),
        );
        std::fs::write(&metric_path, metric).unwrap();
        std::fs::write(&answers, "id,y\n0,0\n1,1\n2,0\n3,1\n").unwrap();
        Self {
            bench,
            metric: metric_path,
            answers,
        }
    }

    pub fn spec(&self, submission: &str, warm: bool) -> EvaluationSpec {
        let path = self.bench.out.join("sübmission.csv");
        std::fs::write(&path, submission).unwrap();
        EvaluationSpec {
            metric_py: self.metric.clone(),
            answers: vec![self.answers.clone()],
            submission: path,
            limits: Limits {
                wall: Duration::from_secs(20),
                memory_bytes: 2 << 30,
                ..Limits::for_evaluation()
            },
            warm,
        }
    }

    /// A candidate that leaves a submission of a kind of `submissions.py`.
    pub fn candidate(&self, kind: &str) -> CandidateJob {
        let secret = self.answers.display().to_string();
        let root = self.bench.root.path().display().to_string();
        CandidateJob {
            job_id: kind.to_owned(),
            code: program("submissions.py"),
            data_dir: self.bench.data.clone(),
            scoring: Scoring::Metric {
                metric_py: self.metric.clone(),
                answers: vec![self.answers.clone()],
            },
            env: [("KIND", kind.to_owned()), ("SECRET", secret), ("CLADE_TEST_MARK", root)]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            limits: small_limits(),
            evaluation_limits: Limits {
                memory_bytes: 2 << 30,
                ..Limits::for_evaluation()
            },
            output_name: "submission.csv".to_owned(),
            output_is_folder: false,
            output_dir: self.bench.out.clone(),
            warm: false,
            warm_evaluation: true,
            self_reported: |_| None,
            observer: None,
        }
    }
}
