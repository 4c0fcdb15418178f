//! What the final selection of a run goes by.

use serde::{Deserialize, Serialize};

/// What the final selection of a run goes by. Test scores are no choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalSelection {
    /// The validation score that the search goes by.
    #[default]
    Evaluator,
    /// The score that programs print about themselves.
    SelfReported,
}

impl FinalSelection {
    /// All protocols.
    pub const ALL: [Self; 2] = [Self::Evaluator, Self::SelfReported];

    /// Name as stored in tables and written in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Evaluator => "evaluator",
            Self::SelfReported => "self_reported",
        }
    }
}
