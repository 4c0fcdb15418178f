//! What became of a job and of an evaluation.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::logs::CapturedLog;
use super::report::{IsolationReport, Layer};

/// Final state of a candidate, as stored in `sandbox.jobs.status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultState {
    /// The submission has a finite score.
    Success,
    /// There is no program text.
    CodeMissing,
    /// The program failed, was killed or went over a limit other than time.
    CodeExecutionError,
    /// The program ended well but left no acceptable submission.
    SubmissionMissing,
    /// The task lacks its metric or its answers.
    MetricOrAnswerMissing,
    /// The metric refused the submission or gave no finite number.
    ScoringFailed,
    /// The program went over its wall time.
    Timeout,
    /// A layer of the sandbox could not be put in force or the end of the job could not be confirmed.
    SandboxUnconfirmed,
}

impl ResultState {
    /// Name as stored in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::CodeMissing => "code_missing",
            Self::CodeExecutionError => "code_execution_error",
            Self::SubmissionMissing => "submission_missing",
            Self::MetricOrAnswerMissing => "metric_or_answer_missing",
            Self::ScoringFailed => "scoring_failed",
            Self::Timeout => "timeout",
            Self::SandboxUnconfirmed => "sandbox_unconfirmed",
        }
    }
}

impl fmt::Display for ResultState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a job's program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    /// It exited by itself.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// A signal that was not ours ended it.
    Signaled {
        /// The signal.
        signal: i32,
    },
    /// It was stopped at its wall time.
    WallLimit,
    /// It was stopped at its CPU time.
    CpuLimit,
    /// It was stopped at its memory.
    MemoryLimit,
    /// It was stopped because of its scratch directory; the text says which limit.
    DiskLimit(String),
    /// The caller cancelled.
    Cancelled,
    /// The program never ran, or its end is not known.
    Setup(String),
}

/// Cause as stored in `sandbox.jobs.cause`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The program's own exit.
    Exit,
    /// A signal.
    Signal,
    /// The memory limit.
    Oom,
    /// The wall limit.
    WallLimit,
    /// The CPU limit.
    CpuLimit,
    /// A limit of the scratch directory.
    DiskLimit,
    /// The sandbox itself.
    Setup,
    /// Killed by the caller.
    Killed,
}

impl Cause {
    /// Name as stored in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Signal => "signal",
            Self::Oom => "oom",
            Self::WallLimit => "wall_limit",
            Self::CpuLimit => "cpu_limit",
            Self::DiskLimit => "disk_limit",
            Self::Setup => "setup",
            Self::Killed => "killed",
        }
    }
}

impl JobEnd {
    /// State, reason and submission of a job that ended so, given what was taken out of it. No state yet: the submission is to be
    /// scored.
    pub(crate) fn settle(
        &self,
        taken: Option<Result<Collected, String>>,
    ) -> (Option<ResultState>, Option<String>, Option<Collected>) {
        let missing = |reason| (Some(ResultState::SubmissionMissing), Some(reason), None);
        match (self.verdict(), taken) {
            (Some((state, detail)), _) => (Some(state), Some(detail), None),
            (None, Some(Ok(collected))) => (None, None, Some(collected)),
            (None, Some(Err(reason))) => missing(reason),
            (None, None) => missing("no submission was asked for".to_owned()),
        }
    }

    /// Cause of the end.
    pub fn cause(&self) -> Cause {
        match self {
            Self::Exited { .. } => Cause::Exit,
            Self::Signaled { .. } => Cause::Signal,
            Self::WallLimit => Cause::WallLimit,
            Self::CpuLimit => Cause::CpuLimit,
            Self::MemoryLimit => Cause::Oom,
            Self::DiskLimit(_) => Cause::DiskLimit,
            Self::Cancelled => Cause::Killed,
            Self::Setup(_) => Cause::Setup,
        }
    }

    /// State that the end alone decides, with the reason in words. `None`: the program ended well.
    pub fn verdict(&self) -> Option<(ResultState, String)> {
        let failed = ResultState::CodeExecutionError;
        match self {
            Self::Exited { code: 0 } => None,
            Self::Exited { code } => Some((failed, format!("the program exited with code {code}"))),
            Self::Signaled { signal } => Some((failed, format!("signal {signal} ended the program"))),
            Self::WallLimit => Some((ResultState::Timeout, "the program went over its wall time".to_owned())),
            Self::CpuLimit => Some((failed, "the program went over its CPU time".to_owned())),
            Self::MemoryLimit => Some((failed, "the program went over its memory limit".to_owned())),
            Self::DiskLimit(which) => Some((failed, format!("the program went over its disk limit: {which}"))),
            Self::Cancelled => Some((failed, "the job was cancelled".to_owned())),
            Self::Setup(reason) => Some((ResultState::SandboxUnconfirmed, reason.clone())),
        }
    }
}

/// A submission that was taken from the scratch directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    /// Where the copy is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}

/// Everything that is known of a job that ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobOutcome {
    /// How the program ended.
    pub end: JobEnd,
    /// Final state; `None` when the submission was collected and must be evaluated.
    pub state: Option<ResultState>,
    /// Reason of the state in words.
    pub detail: Option<String>,
    /// Cause of the end.
    pub cause: Cause,
    /// Exit code of the program.
    pub exit_code: Option<i32>,
    /// Signal that ended the program.
    pub signal: Option<i32>,
    /// The memory limit was hit, by the program or one of its children.
    pub oom: bool,
    /// CPU seconds of all processes.
    pub cpu_seconds: Option<f64>,
    /// Wall seconds of the program.
    pub wall_seconds: Option<f64>,
    /// Largest memory of the process tree that was seen.
    pub peak_memory_bytes: Option<u64>,
    /// Standard output.
    pub stdout: CapturedLog,
    /// Standard error.
    pub stderr: CapturedLog,
    /// The collected submission.
    pub submission: Option<Collected>,
    /// Layers that were in force.
    pub isolation: IsolationReport,
    /// The program started from the warm pool.
    pub warm: bool,
    /// When the job was handed over.
    pub queued_at: DateTime<Utc>,
    /// When the program started.
    pub started_at: Option<DateTime<Utc>>,
    /// When the job ended.
    pub finished_at: DateTime<Utc>,
}

impl JobOutcome {
    /// Outcome of a job whose sandbox failed.
    pub(crate) fn not_confirmed(
        reason: String,
        backend: &str,
        queued_at: DateTime<Utc>,
        finished_at: DateTime<Utc>,
    ) -> Self {
        Self {
            end: JobEnd::Setup(reason.clone()),
            state: Some(ResultState::SandboxUnconfirmed),
            detail: Some(reason),
            cause: Cause::Setup,
            exit_code: None,
            signal: None,
            oom: false,
            cpu_seconds: None,
            wall_seconds: None,
            peak_memory_bytes: None,
            stdout: CapturedLog::default(),
            stderr: CapturedLog::default(),
            submission: None,
            isolation: IsolationReport::new(backend, &Layer::REQUIRED, std::collections::BTreeMap::new()),
            warm: false,
            queued_at,
            started_at: None,
            finished_at,
        }
    }
}

/// Result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The metric's value when it is a finite number.
    pub score: Option<f64>,
    /// The metric accepted the submission.
    pub valid: bool,
    /// Direction that the metric declares.
    pub higher_is_better: Option<bool>,
    /// Name of the metric's class.
    pub metric_class: Option<String>,
    /// Scores of the task's instances, where the metric tells them apart; none for an instance without a valid output.
    pub instances: BTreeMap<String, Option<f64>>,
    /// `Success`, `ScoringFailed`, `MetricOrAnswerMissing` or `SandboxUnconfirmed`.
    pub state: ResultState,
    /// Reason in words, bounded.
    pub detail: Option<String>,
    /// Wall seconds of the whole evaluation.
    pub wall_seconds: f64,
}
