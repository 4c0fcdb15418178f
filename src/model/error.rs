//! Faults of generators.

use std::path::PathBuf;
use std::time::Duration;

use super::fault::ReplyFault;
use super::gate::Pause;
use super::request::Sample;
use crate::error::ErrorClass;

/// Why a generator gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// No generator has this name.
    #[error("unknown model '{name}': the known models are {known}")]
    UnknownModel {
        /// Name that was asked for.
        name: String,
        /// Known names, separated by commas.
        known: String,
    },
    /// The model needs a setting it does not have.
    #[error("model '{model}' is not set up: {reason}")]
    Configuration {
        /// Model name.
        model: String,
        /// What is missing or wrong and how to set it.
        reason: String,
    },
    /// A replay was asked for something that was never recorded.
    #[error(
        "model '{model}' has no recorded answer for attempt '{attempt_key}' (request {request_hash}): replay only a run whose \
         task, policy, seed and prompts are unchanged, or use another model"
    )]
    NotRecorded {
        /// Model name.
        model: String,
        /// Key of the attempt.
        attempt_key: String,
        /// Hash of the request.
        request_hash: String,
    },
    /// The recording could not be read.
    #[error("model '{model}' could not read its recorded answers: {source}")]
    Recording {
        /// Model name.
        model: String,
        /// Cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A public file of the task could not be read.
    #[error("cannot read '{path}' of task '{task}': {reason}; check the task with `clade task show {task}`")]
    TaskFile {
        /// Task id.
        task: String,
        /// The file.
        path: PathBuf,
        /// Cause.
        reason: String,
    },
    /// The generator cannot write programs for this task.
    #[error("model '{model}' cannot write programs for task '{task}': {reason}")]
    UnsupportedTask {
        /// Model name.
        model: String,
        /// Task id.
        task: String,
        /// What it could not make out.
        reason: String,
    },
    /// The request lacks what its operator needs.
    #[error("operator '{operator}' needs {needs}, but the request has none")]
    IncompleteRequest {
        /// Operator name.
        operator: &'static str,
        /// What is missing.
        needs: &'static str,
    },
    /// The provider asked to wait.
    #[error("model '{model}' is rate limited: {message}")]
    RateLimited {
        /// Model name.
        model: String,
        /// What the provider said.
        message: String,
        /// How long to wait, when the provider said so.
        retry_after: Option<Duration>,
    },
    /// The provider failed or its answer made no sense.
    #[error("model '{model}' failed: {message}")]
    Provider {
        /// Model name.
        model: String,
        /// What happened.
        message: String,
    },
    /// The provider could not be reached.
    #[error("model '{model}' cannot be reached: {message}")]
    Unreachable {
        /// Model name.
        model: String,
        /// What happened.
        message: String,
    },
    /// The provider answered, but with nothing that a program can be taken from.
    #[error("model '{model}': {fault}")]
    Reply {
        /// Model name.
        model: String,
        /// What is wrong with the answer.
        fault: ReplyFault,
        /// What came of it: text, reasoning and usage, for as far as they are known. It may have cost money.
        sample: Box<Sample>,
    },
    /// The model is paused. Waiting uses no try, no step and no budget.
    #[error("model '{model}' is paused: {pause}")]
    Paused {
        /// Model name.
        model: String,
        /// Until when, and why.
        pause: Pause,
        /// The answer to this very request that led to the pause; none when nothing was sent.
        cause: Option<Box<ModelError>>,
    },
    /// The definition of a stored model cannot be used.
    #[error("model '{model}' cannot be used: {reason}; CREATE OR REPLACE MODEL {model} defines it anew")]
    Definition {
        /// Model name.
        model: String,
        /// What is wrong.
        reason: String,
    },
    /// The definitions of models could not be read.
    #[error("the models of the store could not be read: {source}")]
    Definitions {
        /// Cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The user cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl ModelError {
    /// Class that decides about retries and budgets.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::UnknownModel { .. }
            | Self::Configuration { .. }
            | Self::NotRecorded { .. }
            | Self::TaskFile { .. }
            | Self::UnsupportedTask { .. }
            | Self::Definition { .. }
            | Self::IncompleteRequest { .. } => ErrorClass::Config,
            Self::Reply { fault, .. } => fault.class(),
            Self::Paused { pause, .. } => pause.class,
            Self::RateLimited { .. } => ErrorClass::RateLimit,
            Self::Provider { .. } => ErrorClass::Provider,
            Self::Recording { .. } | Self::Definitions { .. } | Self::Unreachable { .. } => ErrorClass::Infra,
            Self::Cancelled => ErrorClass::Cancelled,
        }
    }

    /// The provider's answer that holds no program, and what came with it.
    pub fn reply(&self) -> Option<(&ReplyFault, &Sample)> {
        match self {
            Self::Reply { fault, sample, .. } => Some((fault, sample)),
            Self::Paused { cause, .. } => cause.as_ref()?.reply(),
            _ => None,
        }
    }

    /// How long the provider asked to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The pause that the model is in, when that is why nothing was sent.
    pub fn pause(&self) -> Option<&Pause> {
        match self {
            Self::Paused { pause, .. } => Some(pause),
            _ => None,
        }
    }
}
