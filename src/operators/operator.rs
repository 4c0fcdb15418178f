//! The four operators and their arity.

use std::fmt;
use std::str::FromStr;

/// An operator: how a new program is made from its parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// A program from nothing but the task.
    Draft,
    /// A better program from one parent.
    Improve,
    /// A working program from one failed parent.
    Debug,
    /// One program from two parents.
    Crossover,
}

/// An operator name that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown operator '{0}': the operators are draft, improve, debug and crossover")]
pub struct UnknownOperator(pub String);

impl Operator {
    /// All operators.
    pub const ALL: [Self; 4] = [Self::Draft, Self::Improve, Self::Debug, Self::Crossover];

    /// Name as stored in tables and written in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Improve => "improve",
            Self::Debug => "debug",
            Self::Crossover => "crossover",
        }
    }

    /// Number of parents the operator takes.
    pub fn arity(self) -> usize {
        match self {
            Self::Draft => 0,
            Self::Improve | Self::Debug => 1,
            Self::Crossover => 2,
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Operator {
    type Err = UnknownOperator;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|operator| operator.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownOperator(text.to_owned()))
    }
}
