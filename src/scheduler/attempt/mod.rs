//! An attempt as it is planned: what to make, from which parents, with which seed. It is stored as the payload of the
//! queue, so that any process can take it up.

pub mod candidate;
pub mod facts;
pub mod park;
pub mod pipeline;
pub mod preflight;
pub mod retry;
pub mod settle;
pub mod work_dir;

use serde::{Deserialize, Serialize};

use super::ids;
use crate::operators::{Operator, PromptBudget};

/// What an attempt is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// `hash(statement_id, ordinal, sample)`.
    pub attempt_id: String,
    /// Statement that planned it.
    pub statement_id: String,
    /// Run, for attempts of a search.
    pub run_id: Option<String>,
    /// Scope of the budgets it draws on: its run for a search, its statement for an EXPAND.
    pub scope: String,
    /// Task of the program.
    pub task_id: String,
    /// Position of the input row, or step of the run less one.
    pub ordinal: i64,
    /// Sample number for that row.
    pub sample: i64,
    /// Step of the run, or commit order within the statement, from 1.
    pub step: i64,
    /// Generation of the run.
    pub generation: Option<i64>,
    /// Island.
    pub island: i64,
    /// Operator name.
    pub operator: String,
    /// First parent.
    pub parent_id: Option<String>,
    /// Second parent.
    pub parent2_id: Option<String>,
    /// Seed of the generation.
    pub seed: i64,
    /// Snapshot on which the parents were chosen.
    pub snapshot_id: i64,
    /// Policy that drew it.
    pub policy: Option<String>,
    /// The draw as JSON.
    pub draw: Option<String>,
    /// Generator name.
    pub model: String,
    /// Executor name.
    pub sandbox: String,
    /// Sampling and limits.
    pub settings: AttemptSettings,
    /// What the prompt says of the budgets: fixed when the attempt is planned, so that it asks the same after a restart, and the
    /// same as in a run of the same seed.
    #[serde(default)]
    pub prompt_budget: PromptBudget,
    /// When it was planned, microseconds UTC.
    pub queued_at: i64,
}

/// Settings of an attempt that come from the statement's options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptSettings {
    /// Sampling temperature.
    pub temperature: f64,
    /// Nucleus sampling mass.
    pub top_p: f64,
    /// Most completion tokens of one reply.
    pub max_completion_tokens: u32,
    /// Wall seconds a program may run.
    pub timeout_seconds: f64,
    /// Start programs from the warm pool.
    pub warm: bool,
    /// Use the response cache.
    pub cache: bool,
    /// Look at programs before they run; none for what the task says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preflight: Option<bool>,
    /// Most times the attempt is taken up before it counts as failed.
    pub max_tries: i64,
    /// Model that summarises the nodes a prompt shows; none shows the facts alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_model: Option<String>,
    /// Most tokens of the prompt.
    #[serde(default = "unbounded")]
    pub prompt_tokens: u64,
}

/// Attempts that were planned before prompts had a budget have none.
fn unbounded() -> u64 {
    u64::MAX
}

impl Attempt {
    /// Node id the attempt becomes.
    pub fn node_id(&self) -> String {
        ids::node_id(&self.attempt_id)
    }

    /// The operator.
    ///
    /// # Errors
    /// When the stored name is no operator (a store of a newer engine).
    pub fn operator(&self) -> Result<Operator, crate::operators::UnknownOperator> {
        self.operator.parse()
    }

    /// Parents, first and second.
    pub fn parents(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let first = self.parent_id.as_deref().map(|id| ("parent", id));
        let second = self.parent2_id.as_deref().map(|id| ("parent2", id));
        first.into_iter().chain(second)
    }
}
