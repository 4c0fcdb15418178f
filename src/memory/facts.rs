//! What the memory model is told of a node; chosen by SQL under `sql/memory/`.

use serde::Serialize;

/// The facts of a node; parameter `$node_id`.
pub const FACTS_SQL: &str = include_str!("../../sql/memory/facts.sql");
/// The summaries that nodes have; parameter `$node_ids`.
pub const STORED_SQL: &str = include_str!("../../sql/memory/stored.sql");
/// An earlier answer to the same request; parameter `$request_hash`.
pub const SAME_REQUEST_SQL: &str = include_str!("../../sql/memory/same_request.sql");

/// A node with its parents.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NodeFacts {
    /// Operator that made it.
    pub operator: String,
    /// Program.
    pub code: String,
    /// Words before the program.
    pub plan: Option<String>,
    /// Result state.
    pub status: String,
    /// Validation score of a good node.
    pub score: Option<f64>,
    /// Gain over the best scored parent.
    pub delta_vs_parent: Option<f64>,
    /// Signature of the failure.
    pub error_signature: Option<String>,
    /// Last lines of the failure.
    pub error: Option<String>,
    /// Method family.
    pub method_family: String,
    /// Description of its task.
    #[serde(skip)]
    pub description: String,
    /// Metric of its task.
    #[serde(skip)]
    pub metric: String,
    /// Direction of the metric.
    #[serde(skip)]
    pub higher_is_better: bool,
    /// Its parents.
    #[serde(skip)]
    pub parents: Vec<ParentFacts>,
}

/// A parent, and what was changed from it to the node.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ParentFacts {
    /// Result state.
    pub status: String,
    /// Validation score of a good node.
    pub score: Option<f64>,
    /// Signature of the failure.
    pub error_signature: Option<String>,
    /// Method family.
    pub method_family: String,
    /// Unified diff from the parent's program to the node's; empty when the parent has no program.
    pub changes: Option<String>,
}
