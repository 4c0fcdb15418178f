//! Error classes shared by all modules: what kind of fault it was, and whether trying again can help. And errors in words.

use std::error::Error;
use std::fmt;

/// Class of a fault. It decides about retries and budgets, and is stored in `evo.attempts.error_class`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The machine or a back end failed; the attempt is tried again and uses no step.
    Infra,
    /// The provider asked to wait; the attempt is tried again later and uses no step.
    RateLimit,
    /// The provider failed or its answer was malformed.
    Provider,
    /// The configuration or the statement is wrong; trying again cannot help.
    Config,
    /// The candidate program failed; that is a result, not a fault.
    Candidate,
    /// The user cancelled.
    Cancelled,
}

impl ErrorClass {
    /// Name as stored in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Infra => "infra",
            Self::RateLimit => "rate_limit",
            Self::Provider => "provider",
            Self::Config => "config",
            Self::Candidate => "candidate",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the same attempt may be tried again without using a step.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Infra | Self::RateLimit | Self::Provider)
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error with its causes, without repetitions.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
