//! What every evaluator does the same way: the runner's program, its inputs, and the reading of its result.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::job::EvaluationSpec;
use super::outcome::{Evaluation, JobEnd, ResultState};

/// The Python program that applies a metric.
pub(crate) const RUNNER: &str = include_str!("python/evaluate.py");

/// Most characters of a reason.
const DETAIL_CHARACTERS: usize = 600;

/// Paths that the runner gets, as its one argument.
#[derive(Debug, Serialize)]
pub(crate) struct RunnerInputs {
    pub(crate) metric: String,
    pub(crate) answers: Vec<String>,
    pub(crate) submission: String,
}

impl RunnerInputs {
    /// The argument's text.
    pub(crate) fn to_argument(&self) -> String {
        serde_json::json!(self).to_string()
    }
}

/// File name with the suffix of `path`, which tells the loader the format; a folder has none.
pub(crate) fn named_like(stem: &str, path: &Path) -> String {
    let is_any = |suffixes: &[&str]| {
        path.extension()
            .is_some_and(|suffix| suffixes.iter().any(|known| suffix.eq_ignore_ascii_case(known)))
    };
    match path {
        path if path.is_dir() => stem.to_owned(),
        _ if is_any(&["jsonl", "ndjson"]) => format!("{stem}.jsonl"),
        _ if is_any(&["tar"]) => format!("{stem}.tar"),
        _ => format!("{stem}.csv"),
    }
}

#[derive(Debug, Deserialize)]
struct RunnerResult {
    score: Option<f64>,
    valid: bool,
    higher_is_better: Option<bool>,
    metric_class: Option<String>,
    #[serde(default)]
    instances: BTreeMap<String, Option<f64>>,
    stage: String,
    error: Option<String>,
}

/// The evaluation that could not start because an input is not there.
pub(crate) fn missing_input(spec: &EvaluationSpec) -> Option<Evaluation> {
    spec.missing_input()
        .map(|reason| unscored(ResultState::MetricOrAnswerMissing, reason, 0.0))
}

/// An evaluation without a score.
pub(crate) fn unscored(state: ResultState, detail: String, wall_seconds: f64) -> Evaluation {
    Evaluation {
        score: None,
        valid: false,
        higher_is_better: None,
        metric_class: None,
        instances: BTreeMap::new(),
        state,
        detail: Some(bounded(&detail)),
        wall_seconds,
    }
}

/// Reads what the runner wrote on its private channel, given how it ended.
pub(crate) fn interpret(end: &JobEnd, channel: &[u8], wall_seconds: f64) -> Evaluation {
    let failed = |reason: String| unscored(ResultState::ScoringFailed, reason, wall_seconds);
    match end {
        JobEnd::Exited { code: 0 } => {}
        JobEnd::WallLimit => return failed("the evaluation went over its wall time".to_owned()),
        JobEnd::MemoryLimit => return failed("the evaluation went over its memory limit".to_owned()),
        JobEnd::Setup(reason) => return unscored(ResultState::SandboxUnconfirmed, reason.clone(), wall_seconds),
        JobEnd::Exited { code } => return failed(format!("the metric ended the evaluation with exit code {code}")),
        JobEnd::Signaled { signal } => return failed(format!("signal {signal} ended the evaluation")),
        JobEnd::CpuLimit | JobEnd::DiskLimit(_) | JobEnd::Cancelled => {
            return failed(format!("the evaluation was stopped: {}", end.cause().as_str()));
        }
    }
    let result: RunnerResult = match serde_json::from_slice(channel) {
        Ok(result) => result,
        Err(_) => return failed("the evaluation ended without a result".to_owned()),
    };
    let RunnerResult {
        score,
        valid,
        higher_is_better,
        metric_class,
        instances,
        stage,
        error,
    } = result;
    let score = score.filter(|score| score.is_finite());
    let reason = match error {
        Some(error) => Some(format!("{}: {error}", stage_in_words(&stage))),
        None if score.is_none() => Some("the metric gave no finite number".to_owned()),
        None => None,
    };
    let state = if reason.is_none() {
        ResultState::Success
    } else {
        ResultState::ScoringFailed
    };
    Evaluation {
        score: score.filter(|_| reason.is_none()),
        valid,
        higher_is_better,
        metric_class,
        instances,
        state,
        detail: reason.as_deref().map(bounded),
        wall_seconds,
    }
}

fn stage_in_words(stage: &str) -> &'static str {
    match stage {
        "load_metric" => "the metric cannot be loaded",
        "load_answers" => "the answers cannot be read",
        "load_submission" => "the submission cannot be read",
        "validate" => "the submission is not valid",
        _ => "the metric failed",
    }
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(DETAIL_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const GOOD: &[u8] =
        br#"{"score": 0.0, "valid": true, "higher_is_better": false, "metric_class": "M", "stage": "done"}"#;

    #[test]
    fn a_score_of_zero_is_a_score() {
        let evaluation = interpret(&JobEnd::Exited { code: 0 }, GOOD, 1.0);
        assert_eq!((evaluation.state, evaluation.score), (ResultState::Success, Some(0.0)));
        assert_eq!(evaluation.higher_is_better, Some(false));
    }

    #[test]
    fn a_result_counts_only_with_a_good_end() {
        for end in [
            JobEnd::WallLimit,
            JobEnd::MemoryLimit,
            JobEnd::Exited { code: 3 },
            JobEnd::Signaled { signal: 9 },
        ] {
            let evaluation = interpret(&end, GOOD, 1.0);
            assert_eq!(
                (evaluation.state, evaluation.score),
                (ResultState::ScoringFailed, None),
                "{end:?}"
            );
        }
        let evaluation = interpret(&JobEnd::Setup("x".to_owned()), GOOD, 1.0);
        assert_eq!(evaluation.state, ResultState::SandboxUnconfirmed);
    }

    #[test]
    fn nonsense_is_a_failure_with_a_bounded_reason() {
        let evaluation = interpret(&JobEnd::Exited { code: 0 }, b"nonsense", 1.0);
        assert_eq!(evaluation.state, ResultState::ScoringFailed);
        let long = "é".repeat(5000);
        let text = format!(
            r#"{{"score":null,"valid":false,"higher_is_better":null,"metric_class":null,"stage":"validate","error":"{long}"}}"#
        );
        let evaluation = interpret(&JobEnd::Exited { code: 0 }, text.as_bytes(), 1.0);
        assert!(evaluation.detail.unwrap().chars().count() <= DETAIL_CHARACTERS + 3);
    }

    #[test]
    fn the_loader_is_chosen_by_the_suffix() {
        assert_eq!(named_like("answers", Path::new("a/b.JSONL")), "answers.jsonl");
        assert_eq!(named_like("answers", Path::new("a/b.csv")), "answers.csv");
        assert_eq!(named_like("answers", Path::new("a/b")), "answers.csv");
        assert_eq!(named_like("submission", Path::new("a/output.tar")), "submission.tar");
        assert_eq!(named_like("answers", &std::env::temp_dir()), "answers");
    }
}
