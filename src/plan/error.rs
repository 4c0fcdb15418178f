//! Errors of planning an EXPAND and of the guard.

use datafusion::common::DataFusionError;

use crate::dialect::OptionError;
use crate::error::ErrorClass;

/// Why a plan is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A column that the operator needs is not there.
    #[error(
        "EXPAND WITH {operator} needs a column {column}, found {found}; name it in the query, as in node_id AS {column}"
    )]
    MissingColumn {
        /// Operator.
        operator: String,
        /// Column that is missing.
        column: &'static str,
        /// Columns of the query.
        found: String,
    },
    /// A column has the wrong type.
    #[error("column {column} of an EXPAND must be {expected}, found {found}")]
    WrongType {
        /// Column.
        column: &'static str,
        /// Type it must have, in words.
        expected: &'static str,
        /// Type it has.
        found: String,
    },
    /// A column that EXPAND gives no meaning to.
    #[error("EXPAND does not know the column {column}: it takes {known}; leave other columns out of the query")]
    UnknownColumn {
        /// Column.
        column: String,
        /// Columns with a meaning.
        known: String,
    },
    /// Two columns of one name.
    #[error("the query of an EXPAND yields the column {column} twice; name it once")]
    DuplicateColumn {
        /// Column.
        column: String,
    },
    /// A row that cannot be expanded.
    #[error("row {row} of the EXPAND cannot be expanded: {reason}")]
    Row {
        /// Position of the row, from 1.
        row: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// More input rows than one statement may have.
    #[error("the query of an EXPAND yields more than {limit} rows; add a LIMIT")]
    TooManyRows {
        /// Largest number of rows.
        limit: usize,
    },
    /// EXPAND stands where it may not.
    #[error("EXPAND is refused {place}: {reason}")]
    Refused {
        /// Where it stands.
        place: &'static str,
        /// Why that is refused and what to do.
        reason: &'static str,
    },
    /// More than one EXPAND.
    #[error("a statement may hold one EXPAND, found {found}; a CTE or view counts once for every reference to it")]
    MoreThanOne {
        /// Number of EXPAND nodes.
        found: usize,
    },
    /// A writing statement in a read-only session.
    #[error("{statement} is refused: this session is read-only")]
    ReadOnly {
        /// Kind of the statement.
        statement: String,
    },
    /// The arguments of `expand(…)` are not what they must be.
    #[error("expand((query), 'operator', option => value, …): {0}")]
    Arguments(String),
    /// An option of `expand(…)` is not taken.
    #[error("expand((query), 'operator', option => value, …): {0}")]
    Option(#[from] OptionError),
    /// The session has no scheduler behind it.
    #[error("this session cannot run an EXPAND: no scheduler is attached to it")]
    NoHandler,
    /// A plan that has acted is executed again.
    #[error("this EXPAND has already run; submit the statement again, under its id to resume it")]
    AlreadyRun,
}

impl PlanError {
    /// Every such error is a fault of the statement.
    pub fn class(&self) -> ErrorClass {
        ErrorClass::Config
    }
}

impl From<PlanError> for DataFusionError {
    fn from(error: PlanError) -> Self {
        Self::External(Box::new(error))
    }
}
