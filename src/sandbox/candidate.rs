//! A candidate from its source to its score: run, collect, evaluate.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::SandboxError;
use super::executor::{Evaluator, Executor};
use super::job::{EvaluationSpec, JobSpec, Limits, MAX_CODE_BYTES};
use super::observe::LogObserver;
use super::outcome::{Evaluation, JobEnd, JobOutcome, ResultState};

/// How the submission is scored.
#[derive(Debug, Clone)]
pub enum Scoring {
    /// By the task's metric against hidden answers.
    Metric {
        /// The task's `metric.py`.
        metric_py: PathBuf,
        /// Hidden answers; the first file is the ground truth.
        answers: Vec<PathBuf>,
    },
    /// Not at all: the program's own printed score is all there is.
    SelfReported,
    /// Not at all, and none is expected: a program that ends well is a success, with or without a submission.
    Unscored,
}

/// A candidate and everything that is needed to score it.
#[derive(Debug, Clone)]
pub struct CandidateJob {
    /// Names the job.
    pub job_id: String,
    /// Python source.
    pub code: String,
    /// Public data that the program sees.
    pub data_dir: PathBuf,
    /// How the submission is scored.
    pub scoring: Scoring,
    /// More environment variables of the program.
    pub env: BTreeMap<String, String>,
    /// Limits of the program.
    pub limits: Limits,
    /// Limits of the evaluation.
    pub evaluation_limits: Limits,
    /// What the program must write.
    pub output_name: String,
    /// It is a folder of files.
    pub output_is_folder: bool,
    /// Existing directory that gets the collected submission.
    pub output_dir: PathBuf,
    /// Run the program in the warm pool.
    pub warm: bool,
    /// Evaluate in the warm pool.
    pub warm_evaluation: bool,
    /// Finds the score that a program prints about itself in its standard output.
    pub self_reported: fn(&str) -> Option<f64>,
    /// Gets the output while the program runs.
    pub observer: Option<LogObserver>,
}

/// The end of a candidate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CandidateResult {
    /// Final state.
    pub state: ResultState,
    /// Reason of the state in words; `None` for success.
    pub detail: Option<String>,
    /// The evaluator's score.
    pub score: Option<f64>,
    /// The score that the program printed about itself; never trusted.
    pub self_reported: Option<f64>,
    /// The program's run; `None` when it never started because the source, the metric or the answers are missing.
    pub job: Option<JobOutcome>,
    /// The evaluation; `None` when there was nothing to evaluate.
    pub evaluation: Option<Evaluation>,
}

impl CandidateResult {
    fn before_start(state: ResultState, detail: String) -> Self {
        Self {
            state,
            detail: Some(detail),
            score: None,
            self_reported: None,
            job: None,
            evaluation: None,
        }
    }
}

/// How the end of a program becomes a result.
#[derive(Debug, Clone)]
pub struct Judging {
    /// How the submission is scored.
    pub scoring: Scoring,
    /// Limits of the evaluation.
    pub limits: Limits,
    /// Evaluate in the warm pool.
    pub warm: bool,
    /// Finds the score that a program prints about itself in its standard output.
    pub self_reported: fn(&str) -> Option<f64>,
}

impl Judging {
    /// The result of a candidate that need not run: it has no program, or could not be scored.
    pub fn before_start(&self, code: &str) -> Option<CandidateResult> {
        if let Some(reason) = missing_code(code) {
            return Some(CandidateResult::before_start(ResultState::CodeMissing, reason));
        }
        let reason = self.evaluation(PathBuf::new())?.missing_input()?;
        Some(CandidateResult::before_start(
            ResultState::MetricOrAnswerMissing,
            reason,
        ))
    }

    /// The evaluation of a submission; none where there is no metric.
    fn evaluation(&self, submission: PathBuf) -> Option<EvaluationSpec> {
        match &self.scoring {
            Scoring::SelfReported | Scoring::Unscored => None,
            Scoring::Metric { metric_py, answers } => Some(EvaluationSpec {
                metric_py: metric_py.clone(),
                answers: answers.clone(),
                submission,
                limits: self.limits.clone(),
                warm: self.warm,
            }),
        }
    }
}

/// Runs and scores a candidate. Only faults of the back end and cancellation are errors.
pub async fn run_candidate(
    executor: &dyn Executor,
    evaluator: &dyn Evaluator,
    candidate: CandidateJob,
    cancel: &CancellationToken,
) -> Result<CandidateResult, SandboxError> {
    let judging = Judging {
        scoring: candidate.scoring,
        limits: candidate.evaluation_limits,
        warm: candidate.warm_evaluation,
        self_reported: candidate.self_reported,
    };
    if let Some(result) = judging.before_start(&candidate.code) {
        return Ok(result);
    }
    let job = JobSpec {
        job_id: candidate.job_id,
        code: candidate.code,
        data_dir: candidate.data_dir,
        env: candidate.env,
        limits: candidate.limits,
        output_name: candidate.output_name,
        output_is_folder: candidate.output_is_folder,
        output_dir: candidate.output_dir,
        warm: candidate.warm,
        observer: candidate.observer,
    };
    let outcome = executor.run(job, cancel).await?;
    judge(evaluator, outcome, &judging, cancel).await
}

/// Scores a program that ran, here or on another machine.
///
/// # Errors
/// Faults of the back end and cancellation.
pub async fn judge(
    evaluator: &dyn Evaluator,
    outcome: JobOutcome,
    judging: &Judging,
    cancel: &CancellationToken,
) -> Result<CandidateResult, SandboxError> {
    let self_reported = (judging.self_reported)(&outcome.stdout.text()).filter(|score| score.is_finite());
    let mut result = CandidateResult {
        state: outcome.state.unwrap_or(ResultState::SubmissionMissing),
        detail: outcome.detail.clone(),
        score: None,
        self_reported,
        job: None,
        evaluation: None,
    };
    if matches!(judging.scoring, Scoring::Unscored) && outcome.end == (JobEnd::Exited { code: 0 }) {
        (result.state, result.detail) = (ResultState::Success, None);
    } else if outcome.state.is_none()
        && let Some(submission) = &outcome.submission
    {
        match judging.evaluation(submission.path.clone()) {
            Some(spec) => {
                let evaluation = evaluator.evaluate(spec, cancel).await?;
                result.state = evaluation.state;
                result.detail.clone_from(&evaluation.detail);
                result.score = evaluation.score;
                result.evaluation = Some(evaluation);
            }
            None if self_reported.is_some() => result.state = ResultState::Success,
            None => {
                result.state = ResultState::ScoringFailed;
                result.detail = Some("the program printed no score of its own, and the task has no other".to_owned());
            }
        }
    }
    result.job = Some(outcome);
    Ok(result)
}

fn missing_code(code: &str) -> Option<String> {
    if code.trim().is_empty() {
        Some("there is no program text".to_owned())
    } else if code.contains('\0') {
        Some("the program text holds a NUL character, so it is no Python source".to_owned())
    } else if code.len() > MAX_CODE_BYTES {
        Some(format!(
            "the program text has {} bytes, the limit is {MAX_CODE_BYTES}",
            code.len()
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_no_program_is_missing_code() {
        assert!(missing_code(" \n\t").is_some());
        assert!(missing_code("print(1)\0").is_some());
        assert!(missing_code("print(1)").is_none());
    }
}
