//! Options of `EVOLVE TASK … WITH (…)`.

use std::time::Duration;

use super::option::{OptionType, OptionValue, Range, option_table};
use crate::grading::FinalSelection;

/// How a run feeds its workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunMode {
    /// A barrier between generations.
    Generation,
    /// Steady state: a free worker draws at once.
    Async,
}

impl RunMode {
    /// Name as stored in `evo.runs`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Generation => "generation",
            Self::Async => "async",
        }
    }
}

impl OptionType for RunMode {
    const KIND: &'static str = "'generation' or 'async'";

    fn read(value: &OptionValue, _range: Range) -> Option<Self> {
        let OptionValue::Text(text) = value else { return None };
        [Self::Generation, Self::Async]
            .into_iter()
            .find(|mode| mode.as_str().eq_ignore_ascii_case(text))
    }

    fn write(&self) -> OptionValue {
        OptionValue::Text(self.as_str().to_owned())
    }
}

impl OptionType for FinalSelection {
    const KIND: &'static str = "'evaluator' or 'self_reported'";

    fn read(value: &OptionValue, _range: Range) -> Option<Self> {
        let OptionValue::Text(text) = value else { return None };
        Self::ALL
            .into_iter()
            .find(|selection| selection.as_str().eq_ignore_ascii_case(text))
    }

    fn write(&self) -> OptionValue {
        OptionValue::Text(self.as_str().to_owned())
    }
}

option_table! {
    /// Options of an EVOLVE; a field is `None` when the user did not give it and the default holds.
    ///
    /// Budgets and sampling steer the engine; the options from `migration_interval` on are settings that policies read through
    /// the view `run.settings`.
    pub struct EvolveOptions of "EVOLVE" {
        /// Budget: attempts that may be committed.
        steps: u64, Range::AtLeast(1.0);
        /// Pipelines that run at once.
        workers: u64, Range::Within(1.0, 1_024.0);
        /// Seed of every draw of the run. Default: search.seed of the configuration.
        seed: u64, Range::AtLeast(0.0);
        /// 'async' (steady state) or 'generation' (a barrier between generations).
        mode: RunMode, Range::Any;
        /// Programs in a generation; also what counts as one generation in async mode. Default 5.
        generation_size: u64, Range::Within(1.0, 100_000.0);
        /// Islands that evolve apart. Default 1.
        islands: u64, Range::Within(1.0, 1_000.0);
        /// Id of the run. Default: a new id.
        id: String, Range::Any;
        /// Budget: wall time of the run. What is in flight when it is used up is ended; the final run and the grade follow it.
        max_wall: Duration, Range::Above(0.0);
        /// Budget: seconds in the sandbox.
        max_sandbox: Duration, Range::Above(0.0);
        /// Budget: seconds in the model and in the sandbox.
        max_model_sandbox: Duration, Range::Above(0.0);
        /// Budget: prompt and completion tokens.
        max_tokens: u64, Range::AtLeast(1.0);
        /// Budget: US dollars.
        max_cost_usd: f64, Range::AtLeast(0.0);
        /// Budget: sandbox jobs.
        max_jobs: u64, Range::AtLeast(1.0);
        /// Longest run of one candidate program during the search.
        timeout: Duration, Range::Above(0.0);
        /// Longest run of the chosen program on the final data.
        final_timeout: Duration, Range::Above(0.0);
        /// Sampling temperature of the model.
        temperature: f64, Range::Within(0.0, 2.0);
        /// Nucleus sampling of the model.
        top_p: f64, Range::AboveUpTo(0.0, 1.0);
        /// Model that summarises the nodes a prompt shows; 'none' shows the facts alone. Default: search.memory_model of the configuration.
        memory_model: String, Range::Any;
        /// Answer equal requests from the response cache. Default true.
        cache: bool, Range::Any;
        /// Most tokens of one prompt: what helps least is left out of a longer one. Default: prompts.max_tokens.
        prompt_tokens: u64, Range::Within(1_000.0, 10_000_000.0);
        /// Start candidates from the warm pool. Default true.
        warm: bool, Range::Any;
        /// Look at programs before they run: syntax, installs of packages, modules that are not there. Default: what the task says.
        preflight: bool, Range::Any;
        /// Go on under a cost budget although the model's price is not known. Default false.
        allow_unknown_cost: bool, Range::Any;
        /// At the end, run the chosen program on the final data and grade it. Default true.
        grade: bool, Range::Any;
        /// What the chosen program is chosen by: 'evaluator' (the validation score) or 'self_reported' (the score that programs print about themselves). Default 'evaluator'.
        final_selection: FinalSelection, Range::Any;
        /// Times the chosen program is run on the final data, each with a seed of its own; the first is the run's grade. Default 1.
        submit_repeats: u64, Range::Within(1.0, 100.0);
        /// At the end, also run and grade every program that was the best so far, for bench.medal_curve. Default false.
        grade_incumbents: bool, Range::Any;
        /// Generations between two migrations among the islands; 0 is never. Default 0.
        migration_interval: u64, Range::Within(0.0, 100_000.0);
        /// Best nodes of each island that visit the next one from a migration to the next. Default 1.
        migration_size: u64, Range::Within(1.0, 100_000.0);
        /// Drafts that a run starts with. Default 5.
        drafts: u64, Range::Within(0.0, 100_000.0);
        /// Longest chain of debug steps on one fault. Default 10; aide_greedy 3.
        debug_depth: u64, Range::Within(0.0, 1_000.0);
        /// Time in model and sandbox after which a chain of debug steps ends. Default: no limit.
        debug_time: Duration, Range::Above(0.0);
        /// Chance that a failed leaf is debugged rather than a good node improved (aide_greedy). Default 0.5.
        debug_probability: f64, Range::Within(0.0, 1.0);
        /// Chance of a crossover once it is allowed. Default 0.5.
        crossover_probability: f64, Range::Within(0.0, 1.0);
        /// First generation, counted from 0, that may cross over. Default 2.
        crossover_after: u64, Range::Within(0.0, 100_000.0);
        /// Chance of a fresh draft in place of an improvement. Default 0.
        fresh_draft_probability: f64, Range::Within(0.0, 1.0);
        /// Weight of quality (the normalised score) in a parent's utility. Default 1.
        quality_weight: f64, Range::Within(0.0, 1_000.0);
        /// Weight of progress (the gain over the parent) in a parent's utility. Default 0.4.
        progress_weight: f64, Range::Within(0.0, 1_000.0);
        /// Weight of novelty (how rare the method family is) in a parent's utility. Default 0.25.
        novelty_weight: f64, Range::Within(0.0, 1_000.0);
        /// Temperature of the softmax over utilities; 0 is greedy. Default 1.
        selection_temperature: f64, Range::Within(0.0, 1_000.0);
        /// Exploration constant of mcts_uct. Default 1.4142135623730951, the square root of 2.
        exploration: f64, Range::Within(0.0, 1_000.0);
    }
}
