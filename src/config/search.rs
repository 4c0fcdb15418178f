//! `[search]`: defaults of a search run; every one can be set in `EVOLVE … WITH (…)`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::grading::FinalSelection;

/// Defaults of a search run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchConfig {
    /// Profile that was chosen; its values lie below the rest of the layer that names it.
    pub profile: Option<String>,
    /// Selection policy.
    pub policy: String,
    /// Model that writes the programs.
    pub model: String,
    /// Model that summarises the nodes a prompt shows.
    pub memory_model: Option<String>,
    /// Steady state, or a barrier after every generation.
    pub mode: SearchMode,
    /// Attempts that may be committed.
    pub steps: u64,
    /// Pipelines that run at once.
    pub workers: u32,
    /// Seed of every draw.
    pub seed: u64,
    /// Islands of the population.
    pub islands: u32,
    /// Individuals of one generation (mode `generation`).
    pub individuals: u32,
    /// Sampling temperature of the model.
    pub temperature: f64,
    /// Nucleus share of the model's sampling.
    pub top_p: f64,
    /// Most tokens of one reply.
    pub max_output_tokens: u32,
    /// Answer repeated requests from the response cache.
    pub cache: bool,
    /// Token budget of a run.
    pub max_tokens: Option<u64>,
    /// Cost budget of a run, in US dollars.
    pub max_cost_usd: Option<f64>,
    /// Job budget of a run.
    pub max_jobs: Option<u64>,
    /// Wall time of a run, in seconds.
    pub max_wall_seconds: Option<u64>,
    /// Seconds of a run in the sandbox.
    pub max_sandbox_seconds: Option<u64>,
    /// Seconds of a run in the model and the sandbox together.
    pub max_model_sandbox_seconds: Option<u64>,
    /// Let a cost budget run with a model whose price is not known.
    pub allow_unknown_cost: bool,
    /// Longest run of the chosen program on the final data, in seconds; none for the limit of the sandbox.
    pub final_seconds: Option<u64>,
    /// At the end, run the chosen program on the final data and grade it.
    pub grade: bool,
    /// What the final selection goes by.
    pub final_selection: FinalSelection,
    /// Times the chosen program is run on the final data.
    pub submit_repeats: u32,
    /// Grade every node that was the best so far, too.
    pub grade_incumbents: bool,
    /// Look at programs before they run; none for what the task says.
    pub preflight: Option<bool>,
    /// Times an attempt is taken up before it counts as failed.
    pub max_tries: u32,
    /// Settings that policies read; what is not set is each policy's own default.
    pub settings: PolicySettings,
}

/// How a run orders its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchMode {
    /// Steady state: a new step starts when a worker is free.
    Async,
    /// A barrier after every generation.
    Generation,
}

/// Settings that policies read through the view `run.settings`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// Generations between two migrations among the islands.
    pub migration_interval: Option<u64>,
    /// Nodes of each island that visit the next one after a migration.
    pub migration_size: Option<u64>,
    /// Drafts that a run starts with.
    pub drafts: Option<u64>,
    /// Longest chain of debug steps on one fault.
    pub debug_depth: Option<u64>,
    /// Seconds in model and sandbox after which a chain of debug steps ends.
    pub debug_seconds: Option<u64>,
    /// Chance that a failed leaf is debugged rather than a good node improved.
    pub debug_probability: Option<f64>,
    /// Chance of a crossover once it is allowed.
    pub crossover_probability: Option<f64>,
    /// First generation, counted from 0, that may cross over.
    pub crossover_after: Option<u64>,
    /// Chance of a fresh draft in place of an improvement.
    pub fresh_draft_probability: Option<f64>,
    /// Weight of quality in a parent's utility.
    pub quality_weight: Option<f64>,
    /// Weight of progress in a parent's utility.
    pub progress_weight: Option<f64>,
    /// Weight of novelty in a parent's utility.
    pub novelty_weight: Option<f64>,
    /// Temperature of the softmax over utilities.
    pub selection_temperature: Option<f64>,
    /// Exploration constant of mcts_uct.
    pub exploration: Option<f64>,
}

impl SearchMode {
    /// Name as stored in tables and written in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Async => "async",
            Self::Generation => "generation",
        }
    }
}

impl fmt::Display for SearchMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
