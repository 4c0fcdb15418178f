//! Metrics of every kind, and tasks that lack something.

use std::time::Duration;

use clade::sandbox::{CandidateJob, CandidateResult, Evaluation, Evaluator, NativeExecutor, ResultState, Scoring};

use super::support::{Bench, token};
use super::task::{METRIC, Task};

async fn run(native: &NativeExecutor, job: CandidateJob) -> CandidateResult {
    clade::sandbox::run_candidate(native, native, job, &token())
        .await
        .unwrap()
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
