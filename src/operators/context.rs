//! Context of an operator: which nodes it is shown, in which role. The choice is SQL under `sql/context/`.

use datafusion::common::ScalarValue;
use serde::Serialize;

use super::Operator;

/// The query that chooses the nodes an operator is shown: columns role, node_id and place, which orders them in the prompt;
/// parameters `$run_id`, `$parent_id`, `$parent2_id`, and those of [`ContextSizes`].
pub fn context_sql(operator: Operator) -> &'static str {
    match operator {
        Operator::Draft => include_str!("../../sql/context/draft.sql"),
        Operator::Improve => include_str!("../../sql/context/improve.sql"),
        Operator::Debug => include_str!("../../sql/context/debug.sql"),
        Operator::Crossover => include_str!("../../sql/context/crossover.sql"),
    }
}

/// The most related nodes of each kind that an operator is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextSizes {
    /// Nearest ancestors of a parent, up to three generations back.
    pub ancestors: u64,
    /// Siblings of a parent.
    pub siblings: u64,
    /// Children of a parent: what was made of it before.
    pub children: u64,
    /// Other failures.
    pub failures: u64,
}

impl ContextSizes {
    /// What an operator is shown.
    pub fn of(operator: Operator) -> Self {
        match operator {
            Operator::Draft => Self::default(),
            Operator::Improve => Self {
                ancestors: 3,
                siblings: 3,
                children: 3,
                ..Self::default()
            },
            Operator::Debug => Self {
                failures: 8,
                ..Self::default()
            },
            Operator::Crossover => Self {
                ancestors: 2,
                siblings: 2,
                ..Self::default()
            },
        }
    }

    /// The parameters of a context query.
    pub fn parameters(self) -> [(&'static str, ScalarValue); 4] {
        [
            ("ancestors", self.ancestors.into()),
            ("siblings", self.siblings.into()),
            ("children", self.children.into()),
            ("failures", self.failures.into()),
        ]
    }
}

/// A node as an operator is shown it.
#[derive(Debug, Clone, Serialize)]
pub struct ContextNode {
    /// Node id.
    pub node_id: String,
    /// parent, parent2, ancestor, sibling, child, same_error or recent_error.
    pub role: String,
    /// Operator that made it.
    pub operator: String,
    /// Program.
    pub code: Option<String>,
    /// Words before the program.
    pub plan: Option<String>,
    /// Result state.
    pub status: String,
    /// Not a success, or without a finite score.
    pub is_buggy: bool,
    /// Validation score.
    pub score: Option<f64>,
    /// Score with its sign turned so that higher is better.
    pub signed_score: Option<f64>,
    /// Class of the failure.
    pub error_class: Option<String>,
    /// Signature of the failure.
    pub error_signature: Option<String>,
    /// Last lines of the failure.
    pub error: Option<String>,
    /// Method family.
    pub method_family: String,
    /// Seconds in the sandbox.
    pub sandbox_seconds: Option<f64>,
}
