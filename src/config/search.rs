//! `[search]`: defaults of a search run; every one can be set in `EVOLVE … WITH (…)`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Defaults of a search run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchConfig {
    /// Selection policy.
    pub policy: String,
    /// Model that writes the programs.
    pub model: String,
    /// Steady state, or a barrier after every generation.
    pub mode: SearchMode,
    /// Attempts that may be committed.
    pub steps: u64,
    /// Pipelines that run at once.
    pub workers: u32,
    /// Seed of every draw.
    pub seed: u64,
    /// Samples of each draw.
    pub samples: u32,
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
    /// Choose by the score that programs print about themselves where the task has no validation split.
    pub trust_self_reported: bool,
    /// How often each operator is drawn.
    pub operators: OperatorWeights,
    /// How a parent's utility is put together.
    pub utility: UtilityWeights,
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

/// Relative weights of the operators and when they may be drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorWeights {
    /// Weight of draft.
    pub draft: f64,
    /// Weight of improve.
    pub improve: f64,
    /// Weight of debug.
    pub debug: f64,
    /// Weight of crossover.
    pub crossover: f64,
    /// Drafts before anything else.
    pub first_drafts: u32,
    /// Longest chain of repairs.
    pub debug_depth: u32,
}

/// Weights of the three factors of a parent's utility, and the temperature of the draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UtilityWeights {
    /// Weight of the parent's own score.
    pub quality: f64,
    /// Weight of its gain over its parent.
    pub progress: f64,
    /// Weight of a rare method family.
    pub novelty: f64,
    /// Temperature of the softmax; 0 is greedy.
    pub temperature: f64,
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
