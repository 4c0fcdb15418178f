//! Errors of policies: a broken contract, a row that cannot be drawn.

use datafusion::common::DataFusionError;

use crate::error::ErrorClass;

/// Why a policy is refused.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A column of the contract is not there.
    #[error("policy {policy} has no column {column}: it must yield operator and parent_id, found {found}")]
    MissingColumn {
        /// Policy.
        policy: String,
        /// Column.
        column: &'static str,
        /// Columns it yields.
        found: String,
    },
    /// A column that the contract does not have.
    #[error("policy {policy} yields the column {column}, which has no meaning: a policy yields {known}")]
    UnknownColumn {
        /// Policy.
        policy: String,
        /// Column.
        column: String,
        /// Columns of the contract.
        known: String,
    },
    /// A column has the wrong type.
    #[error("column {column} of policy {policy} must be {expected}, found {found}")]
    WrongType {
        /// Policy.
        policy: String,
        /// Column.
        column: &'static str,
        /// Type it must have, in words.
        expected: &'static str,
        /// Type it has.
        found: String,
    },
    /// It reads what a policy may not see.
    #[error("policy {policy} reads {table}: {reason}")]
    Forbidden {
        /// Policy.
        policy: String,
        /// Table or table function.
        table: String,
        /// Why that is refused.
        reason: &'static str,
    },
    /// It uses a function whose value changes by itself.
    #[error(
        "policy {policy} calls {function}(): a policy must give the same rows on the same snapshot; chance comes from weights"
    )]
    NotDeterministic {
        /// Policy.
        policy: String,
        /// Function.
        function: String,
    },
    /// It holds an EXPAND.
    #[error("policy {policy} holds an EXPAND: a policy only chooses rows")]
    Expands {
        /// Policy.
        policy: String,
    },
    /// A constant that makes every row of it wrong.
    #[error("policy {policy}: {reason}")]
    Constant {
        /// Policy.
        policy: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A row that cannot take part in a draw.
    #[error("row ({operator}, {parent}) of the policy is rejected: {reason}")]
    Row {
        /// Operator of the row, as it is.
        operator: String,
        /// Parent of the row, as it is.
        parent: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The rows of an operator disagree on its weight.
    #[error(
        "the rows of operator {operator} give different values for operator_weight; it is one value for an operator, or NULL in all its rows"
    )]
    OperatorWeight {
        /// Operator.
        operator: String,
    },
    /// A policy cannot be replayed: it, or the run, is not known, or the call is wrong.
    #[error("{0}")]
    Trace(String),
    /// Planning or running the policy failed.
    #[error(transparent)]
    Query(#[from] DataFusionError),
}

impl PolicyError {
    /// A broken contract is a fault of the configuration; whether a failed query can be tried again is not known here.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Query(_) => ErrorClass::Infra,
            _ => ErrorClass::Config,
        }
    }
}

impl From<PolicyError> for DataFusionError {
    fn from(error: PolicyError) -> Self {
        match error {
            PolicyError::Query(error) => error,
            other => Self::External(Box::new(other)),
        }
    }
}
