//! Errors of the scheduler.

use clade_catalog::StoreError;

use super::budget::BudgetExhausted;
use super::queue::{LeaseLost, QueueError};
use crate::error::ErrorClass;
use crate::memory::MemoryPromptError;
use crate::model::ModelError;
use crate::operators::{PromptError, UnknownOperator};
use crate::sandbox::SandboxError;
use crate::scheduler::queue::lease::{RunLost, RunTaken};

/// Result of a scheduler operation.
pub type Result<T, E = SchedulerError> = std::result::Result<T, E>;

/// What went wrong in the scheduler.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulerError {
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// A budget is used up.
    #[error(transparent)]
    Budget(BudgetExhausted),
    /// An attempt was taken over by another process.
    #[error(transparent)]
    LeaseLost(LeaseLost),
    /// A run is conducted by another process.
    #[error(transparent)]
    RunTaken(RunTaken),
    /// A run of this process was taken over by another.
    #[error(transparent)]
    RunLost(RunLost),
    /// A query failed.
    #[error("{context}: {source}")]
    Query {
        /// What was being done.
        context: String,
        /// Cause.
        source: Box<datafusion::error::DataFusionError>,
    },
    /// The generator failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The sandbox failed.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The sandbox could not run a program, or could not say how it ended.
    #[error("the sandbox could not confirm how the program ended: {0}")]
    Unconfirmed(String),
    /// The prompt failed.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The prompt of the memory model failed.
    #[error(transparent)]
    MemoryPrompt(#[from] MemoryPromptError),
    /// The prompt is longer than when tokens were reserved for it; it is reserved for anew.
    #[error("the prompt may take {needed} tokens with its answer, but {reserved} were reserved for it")]
    PromptGrew {
        /// Tokens that were reserved.
        reserved: u64,
        /// Tokens that it may take.
        needed: u64,
    },
    /// The operator is not known.
    #[error(transparent)]
    Operator(#[from] UnknownOperator),
    /// The task cannot be used.
    #[error("task '{task_id}': {reason}")]
    Task {
        /// Task.
        task_id: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The policy broke its contract while the run went on.
    #[error("policy '{policy}': {reason}")]
    Policy {
        /// Policy.
        policy: String,
        /// What is wrong.
        reason: String,
    },
    /// A statement or run that cannot be done as asked.
    #[error("{0}")]
    Request(String),
    /// A price that is not known, under a cost budget.
    #[error(
        "the price of model '{model}' is not known, so a cost budget cannot hold: set a price for it, or allow_unknown_cost => true"
    )]
    UnknownCost {
        /// Model.
        model: String,
    },
    /// A file operation failed.
    #[error("{path}: {source}")]
    Io {
        /// File.
        path: std::path::PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The user cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A background task failed.
    #[error("a task of the scheduler failed: {0}")]
    Background(#[from] tokio::task::JoinError),
}

impl SchedulerError {
    /// Class that decides about retries and budgets.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Store(error) if !error.is_retryable() => ErrorClass::Config,
            Self::Store(_)
            | Self::Query { .. }
            | Self::Io { .. }
            | Self::Background(_)
            | Self::LeaseLost(_)
            | Self::PromptGrew { .. }
            | Self::Unconfirmed(_) => ErrorClass::Infra,
            Self::Model(error) => error.class(),
            Self::Sandbox(error) => error.class(),
            Self::Prompt(error) => error.class(),
            Self::Cancelled => ErrorClass::Cancelled,
            Self::Budget(_)
            | Self::RunTaken(_)
            | Self::RunLost(_)
            | Self::MemoryPrompt(_)
            | Self::Operator(_)
            | Self::Task { .. }
            | Self::Policy { .. }
            | Self::Request(_)
            | Self::UnknownCost { .. } => ErrorClass::Config,
        }
    }

    /// Error of a query with what was being done.
    pub(super) fn query(context: impl Into<String>) -> impl FnOnce(datafusion::error::DataFusionError) -> Self {
        move |source| Self::Query {
            context: context.into(),
            source: Box::new(source),
        }
    }
}

impl From<StoreError> for SchedulerError {
    /// Control closures carry typed errors of their own through the commit; they come out here as what they were.
    fn from(error: StoreError) -> Self {
        let StoreError::Control(cause) = error else {
            return Self::Store(error);
        };
        let cause = match cause.downcast::<QueueError>() {
            Ok(queue) => match *queue {
                QueueError::LeaseLost(lost) => return Self::LeaseLost(lost),
                other => return Self::Store(StoreError::Control(Box::new(other))),
            },
            Err(cause) => cause,
        };
        let cause = match cause.downcast::<super::budget::BudgetError>() {
            Ok(budget) => match *budget {
                super::budget::BudgetError::Exhausted(exhausted) => return Self::Budget(exhausted),
                other => return Self::Store(StoreError::Control(Box::new(other))),
            },
            Err(cause) => cause,
        };
        match cause.downcast::<crate::scheduler::queue::lease::RunLeaseError>() {
            Ok(lease) => match *lease {
                crate::scheduler::queue::lease::RunLeaseError::Taken(taken) => Self::RunTaken(taken),
                crate::scheduler::queue::lease::RunLeaseError::Lost(lost) => Self::RunLost(lost),
                other => Self::Store(StoreError::Control(Box::new(other))),
            },
            Err(cause) => match cause.downcast::<Self>() {
                Ok(own) => *own,
                Err(cause) => Self::Store(StoreError::Control(cause)),
            },
        }
    }
}
