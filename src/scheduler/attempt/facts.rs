//! Facts of a node that are computed once, when its outcome is known: what its program is, what became of it.

use clade_udfs::{programs, text};

use super::candidate::ProgramResult;
use crate::gym::Task;
use crate::sandbox::ResultState;
use crate::scheduler::generation::generate::FaultyReply;
use crate::scheduler::ids;
use crate::scheduler::run::index::NodeOutcome;

/// Longest failure text that a node carries; the whole log is in `sandbox.jobs`.
const ERROR_CHARS: usize = 4_000;

/// The program of a reply and what its text says.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Program text.
    pub code: Option<String>,
    /// SHA-256 of the text.
    pub code_hash: Option<String>,
    /// Hash without comments and layout.
    pub code_fingerprint: Option<String>,
    /// Words before the program.
    pub plan: Option<String>,
    /// Imported packages.
    pub imports: Option<Vec<String>>,
    /// Method family.
    pub method_family: String,
    /// The program's block was never closed: the reply was cut off.
    pub unclosed: bool,
}

impl Program {
    /// Reads a reply.
    pub fn of_reply(reply: &str) -> Self {
        let extracted = text::extract_code(reply);
        // Tables that policies and prompts read hold no official score, whoever claims one.
        let plan = text::sanitize_output(&text::plan_text(reply));
        let code = extracted.code;
        Self {
            code_hash: code.as_deref().map(|code| ids::sha256_hex(code.as_bytes())),
            code_fingerprint: code.as_deref().map(programs::code_fingerprint),
            imports: code.as_deref().map(programs::python_imports),
            method_family: code
                .as_deref()
                .map_or_else(|| "unknown".to_owned(), programs::method_family),
            plan: (!plan.is_empty()).then_some(plan),
            unclosed: extracted.unclosed,
            code,
        }
    }
}

/// Outcome of a reply without a program.
pub fn code_missing(program: &Program) -> NodeOutcome {
    let status = ResultState::CodeMissing.as_str();
    let error = if program.unclosed {
        "the reply holds no complete program: its code block was cut off"
    } else {
        "the reply holds no Python program"
    };
    NodeOutcome {
        status: status.to_owned(),
        score: None,
        score_source: "none".to_owned(),
        self_reported_score: None,
        error_class: Some("candidate".to_owned()),
        error_signature: programs::error_signature(status, ""),
        error: Some(error.to_owned()),
    }
}

/// Outcome of a reply that holds no text a program could be taken from, and that asking again would not mend.
pub fn unusable_reply(fault: &FaultyReply) -> NodeOutcome {
    NodeOutcome {
        status: ResultState::CodeMissing.as_str().to_owned(),
        score: None,
        score_source: "none".to_owned(),
        self_reported_score: None,
        error_class: Some(fault.class.as_str().to_owned()),
        error_signature: fault.name.clone(),
        error: Some(fault.message.clone()),
    }
}

/// Outcome of a program that was run.
pub fn outcome(task: &Task, run: &ProgramResult) -> NodeOutcome {
    let result = &run.candidate;
    let score = run.score(task.validation.is_none());
    let failed = result.state != ResultState::Success;
    let stderr = result.job.as_ref().map(|job| job.stderr.text()).unwrap_or_default();
    let detail = result.detail.clone().unwrap_or_default();
    // The status that decides the signature: what the executor says of its own ends comes before any text.
    let cause = match result.job.as_ref() {
        Some(job) if job.oom && result.state == ResultState::CodeExecutionError => "oom",
        _ => result.state.as_str(),
    };
    let log = match result.state {
        ResultState::ScoringFailed => detail.clone(),
        _ => stderr.clone(),
    };
    let error = failed.then(|| {
        let shown = if result.state == ResultState::ScoringFailed || stderr.trim().is_empty() {
            detail.clone()
        } else if detail.is_empty() {
            stderr.trim_end().to_owned()
        } else {
            format!("{}\n[{detail}]", stderr.trim_end())
        };
        let shown = text::sanitize_output(&shown);
        text::truncate_middle(&shown, ERROR_CHARS, ERROR_CHARS / 4).into_owned()
    });
    NodeOutcome {
        status: result.state.as_str().to_owned(),
        score,
        score_source: match (score, &task.validation) {
            (None, _) => "none",
            (Some(_), Some(_)) => "evaluator",
            (Some(_), None) => "self_reported",
        }
        .to_owned(),
        self_reported_score: result.self_reported,
        error_class: failed.then(|| {
            if result.state == ResultState::SandboxUnconfirmed {
                "infra"
            } else {
                "candidate"
            }
            .to_owned()
        }),
        error_signature: if failed {
            programs::error_signature(cause, &log)
        } else {
            None
        },
        error,
    }
}

/// Score with its sign turned so that higher is better; `None` unless the outcome is a success with a finite score.
pub fn signed_score(outcome: &NodeOutcome, higher_is_better: bool) -> Option<f64> {
    let score = outcome
        .score
        .filter(|_| outcome.status == ResultState::Success.as_str())?;
    clade_udfs::direction::signed_score(score, higher_is_better).filter(|score| score.is_finite())
}
