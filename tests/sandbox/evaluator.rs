//! Submissions of every kind, and metrics of every kind.

use std::path::PathBuf;
use std::time::Duration;

use clade::sandbox::{
    CandidateJob, CandidateResult, Evaluation, EvaluationSpec, Evaluator, Limits, NativeExecutor, ResultState, Scoring,
};

use super::support::{Bench, program, small_limits, token};

const METRIC: &str = r#"
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

struct Task {
    bench: Bench,
    metric: PathBuf,
    answers: PathBuf,
}

impl Task {
    fn new(metric: &str) -> Self {
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

    fn spec(&self, submission: &str, warm: bool) -> EvaluationSpec {
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

    fn candidate(&self, kind: &str) -> CandidateJob {
        let secret = self.answers.display().to_string();
        CandidateJob {
            job_id: kind.to_owned(),
            code: program("submissions.py"),
            data_dir: self.bench.data.clone(),
            scoring: Scoring::Metric {
                metric_py: self.metric.clone(),
                answers: vec![self.answers.clone()],
            },
            env: [("KIND".to_owned(), kind.to_owned()), ("SECRET".to_owned(), secret)].into(),
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

/// kind, state, a word of the detail, score
const SUBMISSIONS: &[(&str, ResultState, &str, Option<f64>)] = &[
    ("good", ResultState::Success, "", Some(1.0)),
    ("nothing", ResultState::SubmissionMissing, "wrote no", None),
    ("symlink", ResultState::SubmissionMissing, "symbolic link", None),
    ("symlink_inside", ResultState::SubmissionMissing, "symbolic link", None),
    ("hard_link", ResultState::SubmissionMissing, "hard link", None),
    ("fifo", ResultState::SubmissionMissing, "pipe", None),
    ("directory", ResultState::SubmissionMissing, "directory", None),
    ("socket", ResultState::SubmissionMissing, "socket", None),
    ("huge", ResultState::SubmissionMissing, "limit", None),
    ("sparse", ResultState::SubmissionMissing, "limit", None),
    ("other_case", ResultState::SubmissionMissing, "wrote no", None),
    ("unreadable", ResultState::Success, "", Some(1.0)),
    ("bom", ResultState::Success, "", Some(1.0)),
    ("crlf", ResultState::Success, "", Some(1.0)),
    ("empty", ResultState::ScoringFailed, "EmptyDataError", None),
    ("header_only", ResultState::ScoringFailed, "ids", None),
    ("nul", ResultState::ScoringFailed, "", None),
    ("text", ResultState::ScoringFailed, "columns", None),
    ("nan", ResultState::ScoringFailed, "finite", None),
    ("infinite", ResultState::ScoringFailed, "finite", None),
    ("duplicate", ResultState::ScoringFailed, "ids", None),
    ("few_rows", ResultState::ScoringFailed, "ids", None),
    ("wide", ResultState::ScoringFailed, "columns", None),
    ("pickle", ResultState::ScoringFailed, "", None),
    ("quotes", ResultState::ScoringFailed, "", None),
    ("formula", ResultState::ScoringFailed, "", None),
    ("traps", ResultState::Success, "", Some(1.0)),
];

async fn run(native: &NativeExecutor, job: CandidateJob) -> CandidateResult {
    clade::sandbox::run_candidate(native, native, job, &token())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_submission_ends_in_its_state() {
    let task = Task::new(METRIC);
    let native = NativeExecutor::new(task.bench.options().with_warm_pool()).unwrap();
    for (kind, state, word, score) in SUBMISSIONS {
        let result = run(&native, task.candidate(kind)).await;
        let detail = result.detail.clone().unwrap_or_default();
        let stderr = result.job.as_ref().map(|job| job.stderr.text()).unwrap_or_default();
        assert_eq!(result.state, *state, "{kind}: {detail} {stderr}");
        assert_eq!(result.score, *score, "{kind}");
        assert!(detail.contains(word), "{kind}: {detail}");
        assert!(detail.len() < 700, "{kind}: {detail}");
    }
    // It changes between a link and a file until its last process is dead: either is right, the secret is not.
    for _ in 0..5 {
        let result = run(&native, task.candidate("changing")).await;
        assert!(
            matches!(result.state, ResultState::Success | ResultState::SubmissionMissing),
            "{:?}",
            result.detail
        );
    }
    task.bench.finish(native);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_found_before_the_start() {
    let task = Task::new(METRIC);
    let native = task.bench.native();
    let mut job = task.candidate("good");
    job.code = "  \n".to_owned();
    let result = run(&native, job).await;
    assert_eq!((result.state, result.job.is_none()), (ResultState::CodeMissing, true));
    for broken in [
        Scoring::Metric {
            metric_py: "/nowhere/metric.py".into(),
            answers: vec![task.answers.clone()],
        },
        Scoring::Metric {
            metric_py: task.metric.clone(),
            answers: vec!["/nowhere/answers.csv".into()],
        },
        Scoring::Metric {
            metric_py: task.metric.clone(),
            answers: vec![],
        },
    ] {
        let mut job = task.candidate("good");
        job.scoring = broken;
        let result = run(&native, job).await;
        assert_eq!(
            (result.state, result.job.is_none()),
            (ResultState::MetricOrAnswerMissing, true)
        );
    }
    let mut job = task.candidate("good");
    job.scoring = Scoring::SelfReported;
    job.code.push_str("\nprint('score 0.25')\n");
    job.self_reported = |log| log.trim().strip_prefix("score ")?.parse().ok();
    let result = run(&native, job).await;
    assert_eq!(
        (result.state, result.score, result.self_reported),
        (ResultState::Success, None, Some(0.25))
    );
}

async fn evaluate<T: Evaluator>(backend: &T, task: &Task, submission: &str, warm: bool) -> Evaluation {
    backend.evaluate(task.spec(submission, warm), &token()).await.unwrap()
}

const GOOD: &str = "id,y\n0,0\n1,1\n2,0\n3,1\n";

fn metric_returning(value: &str) -> String {
    format!(
        "import numpy as np, pandas as pd\nclass AMetrics:\n    higher_is_better = np.bool_(False)\n    def evaluate(self, y_true, y_pred):\n        return {value}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_metric_returns_is_a_finite_number_or_nothing() {
    let bench = Bench::new();
    let native = NativeExecutor::new(bench.options().with_warm_pool()).unwrap();
    for (value, score) in [
        ("0.5", Some(0.5)),
        ("0", Some(0.0)),
        ("-3", Some(-3.0)),
        ("np.float32(0.25)", Some(0.25)),
        ("np.int64(7)", Some(7.0)),
        ("np.array(0.5)", Some(0.5)),
        ("np.array([0.5])", Some(0.5)),
        ("pd.Series([0.5])", Some(0.5)),
        ("np.array([0.5, 0.6])", None),
        ("True", None),
        ("np.bool_(True)", None),
        ("np.array([True])", None),
        ("float('nan')", None),
        ("np.inf", None),
        ("None", None),
        ("'0.5'", None),
        ("{'score': 0.5}", None),
        ("1j", None),
    ] {
        let task = Task::new(&metric_returning(value));
        let evaluation = evaluate(&native, &task, GOOD, true).await;
        assert_eq!(evaluation.score, score, "{value}: {:?}", evaluation.detail);
        let state = if score.is_some() {
            ResultState::Success
        } else {
            ResultState::ScoringFailed
        };
        assert_eq!(evaluation.state, state, "{value}");
        assert_eq!(evaluation.higher_is_better, Some(false));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metric_may_do_anything_and_only_fail() {
    let bench = Bench::new();
    let native = NativeExecutor::new(bench.options().with_warm_pool()).unwrap();
    let process = bench.process();
    let body = |text: &str| {
        format!("import os, sys, time\nclass AMetrics:\n    def evaluate(self, y_true, y_pred):\n        {text}\n")
    };
    for (code, word) in [
        (body("print('{\"score\": 1.0, \"valid\": true, \"stage\": \"done\"}'); sys.stdout.flush(); os._exit(0)"), "without a result"),
        (body("os.write(1, b'{\"score\": 1.0}'); raise ValueError('bad')"), "ValueError: bad"),
        (body("sys.exit(0)"), "SystemExit"),
        (body("os.kill(os.getpid(), 11)"), "signal 11"),
        (body("raise KeyError('x' * 100_000)"), "KeyError"),
        (body("raise ValueError('line\\nbreak\\x00 and \\udcff')"), "ValueError: line break"),
        ("raise RuntimeError('at import')".to_owned(), "RuntimeError"),
        ("class Score:\n    pass".to_owned(), "LookupError"),
        ("class AMetrics:\n    def __init__(self, x):\n        pass".to_owned(), "TypeError"),
        ("class AMetrics:\n    pass".to_owned(), "AttributeError"),
        ("class AMetrics:\n    def validate_submission(self, a, b):\n        return False\n    def evaluate(self, y_true, y_pred):\n        return 1.0".to_owned(), "returned False"),
    ] {
        let task = Task::new(&code);
        for evaluation in [
            evaluate(&native, &task, GOOD, true).await,
            evaluate(&native, &task, GOOD, false).await,
            evaluate(&process, &task, GOOD, false).await,
        ] {
            assert_eq!((evaluation.state, evaluation.score), (ResultState::ScoringFailed, None), "{code}");
            let detail = evaluation.detail.unwrap();
            assert!(detail.contains(word) && detail.len() < 700, "{code}: {detail}");
        }
    }
    let task = Task::new(&body("time.sleep(100)"));
    let mut spec = task.spec(GOOD, true);
    spec.limits.wall = Duration::from_secs(1);
    let evaluation = native.evaluate(spec, &token()).await.unwrap();
    assert!(
        evaluation.state == ResultState::ScoringFailed && evaluation.wall_seconds < 8.0,
        "{evaluation:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_may_be_lines_of_json() {
    let task = Task::new(METRIC);
    let native = task.bench.native();
    let answers = task.bench.root.path().join("answers.jsonl");
    std::fs::write(
        &answers,
        "{\"id\":0,\"y\":0}\n{\"id\":1,\"y\":1}\n{\"id\":2,\"y\":0}\n{\"id\":3,\"y\":0}\n",
    )
    .unwrap();
    let submission = task.bench.out.join("submission.jsonl");
    std::fs::copy(&answers, &submission).unwrap();
    let mut spec = task.spec(GOOD, false);
    spec.answers = vec![answers];
    let evaluation = native.evaluate(spec.clone(), &token()).await.unwrap();
    assert_eq!(evaluation.score, Some(0.75), "{:?}", evaluation.detail);
    spec.submission = submission;
    let evaluation = native.evaluate(spec, &token()).await.unwrap();
    assert_eq!(evaluation.score, Some(1.0), "{:?}", evaluation.detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_json_keep_their_types() {
    let metric = "class KindMetrics:\n    higher_is_better = True\n\n    def evaluate(self, y_true=None, y_pred=None):\n        \
                  return float(all(map(isinstance, y_true.iloc[0], [str, str, float])))\n";
    let task = Task::new(metric);
    let native = task.bench.native();
    let answers = task.bench.root.path().join("answers.jsonl");
    std::fs::write(&answers, "{\"id\":\"007\",\"date\":\"2024-01-01\",\"y\":1.5}\n").unwrap();
    let mut spec = task.spec(GOOD, false);
    spec.answers = vec![answers];
    let evaluation = native.evaluate(spec, &token()).await.unwrap();
    assert_eq!(evaluation.score, Some(1.0), "{:?}", evaluation.detail);
}

#[derive(serde::Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    input: Input,
    expected: Expected,
}

#[derive(serde::Deserialize)]
struct Input {
    metric_py: String,
}

#[derive(serde::Deserialize)]
struct Expected {
    class: Option<String>,
    score: Option<f64>,
    error: Option<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_found_as_recorded() {
    let Some(shared) = crate::shared::folder() else { return };
    let text = std::fs::read_to_string(shared.join("vectors/gym_metric_loading.json")).unwrap();
    let vectors: Vectors = serde_json::from_str(&text).unwrap();
    let bench = Bench::new();
    let native = NativeExecutor::new(bench.options().with_warm_pool()).unwrap();
    for case in vectors.cases {
        let task = Task::new(&case.input.metric_py);
        std::fs::write(&task.answers, "id,target\n1,1\n2,0\n").unwrap();
        let evaluation = evaluate(&native, &task, "id,target\n1,0\n2,1\n", true).await;
        assert_eq!(
            evaluation.score, case.expected.score,
            "{}: {:?}",
            case.name, evaluation.detail
        );
        if let Some(error) = case.expected.error {
            assert!(evaluation.detail.unwrap().contains(&error), "{}", case.name);
        } else {
            assert_eq!(evaluation.metric_class, case.expected.class, "{}", case.name);
        }
    }
}
