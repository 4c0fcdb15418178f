//! Context of an operator: which nodes it is shown, in which role. The choice is SQL under `sql/context/`.

use serde::Serialize;

use super::Operator;

/// The query that chooses the nodes an operator is shown: columns role, node_id and place, which orders them in the prompt;
/// parameters `$run_id`, `$parent_id`, `$parent2_id`.
pub fn context_sql(operator: Operator) -> &'static str {
    match operator {
        Operator::Draft => include_str!("../../sql/context/draft.sql"),
        Operator::Improve => include_str!("../../sql/context/improve.sql"),
        Operator::Debug => include_str!("../../sql/context/debug.sql"),
        Operator::Crossover => include_str!("../../sql/context/crossover.sql"),
    }
}

/// A node as an operator is shown it.
#[derive(Debug, Clone, Serialize)]
pub struct ContextNode {
    /// Node id.
    pub node_id: String,
    /// parent, parent2, ancestor, sibling, same_error or recent_error.
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
