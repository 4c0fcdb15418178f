//! What a statement does not say: the configured defaults, and the effective options of a run.

use std::time::Duration;

use serde_json::{Map, Value as Json};

use crate::config::{Config, SearchConfig};
use crate::dialect::{EvolveOptions, RunMode};
use crate::model::SamplingDefaults;
use crate::scheduler::{AttemptSettings, RunOptions};

/// Defaults of acting statements.
#[derive(Debug, Clone)]
pub struct Defaults {
    /// Generator.
    pub model: String,
    /// Executor.
    pub sandbox: String,
    /// Policy.
    pub policy: String,
    /// Attempts in flight at once.
    pub workers: usize,
    /// Settings of an attempt.
    pub attempt: AttemptSettings,
    search: SearchConfig,
    final_seconds: f64,
}

/// The memory model that a statement asks for, else the configured one; 'none' is none.
pub(super) fn memory_model(given: Option<String>, configured: Option<String>) -> Option<String> {
    given.or(configured).filter(|model| !is_no_model(model))
}

/// Whether a name stands for no model.
pub(super) fn is_no_model(name: &str) -> bool {
    name.eq_ignore_ascii_case("none")
}

impl Defaults {
    /// Defaults of a configuration.
    pub fn of(config: &Config) -> Self {
        let search = config.search.clone();
        Self {
            model: search.model.clone(),
            sandbox: config.sandbox.executor.clone(),
            policy: search.policy.clone(),
            workers: usize::try_from(search.workers).unwrap_or(usize::MAX),
            attempt: AttemptSettings {
                temperature: search.temperature,
                top_p: search.top_p,
                max_completion_tokens: search.max_output_tokens,
                timeout_seconds: config.sandbox.wall().as_secs_f64(),
                warm: config.sandbox.warm,
                cache: search.cache,
                preflight: search.preflight,
                max_tries: i64::from(search.max_tries),
                memory_model: search.memory_model.clone(),
                prompt_tokens: config.prompts.max_tokens,
            },
            final_seconds: search
                .final_seconds
                .map_or(config.sandbox.wall().as_secs_f64(), |seconds| seconds as f64),
            search,
        }
    }

    /// Settings of an attempt with a model: what the model's own options say over the defaults.
    pub fn attempt_with(&self, sampling: SamplingDefaults) -> AttemptSettings {
        let default = &self.attempt;
        AttemptSettings {
            temperature: sampling.temperature.unwrap_or(default.temperature),
            top_p: sampling.top_p.unwrap_or(default.top_p),
            max_completion_tokens: sampling.max_output_tokens.unwrap_or(default.max_completion_tokens),
            ..default.clone()
        }
    }

    /// Effective options of a run: what the user gave, over the model's own options, over the defaults.
    pub fn run_options(&self, given: &EvolveOptions, sampling: SamplingDefaults) -> RunOptions {
        let attempt = self.attempt_with(sampling);
        let search = &self.search;
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let seconds = |given: Option<Duration>, default: Option<u64>| {
            given
                .map(|duration| duration.as_secs_f64())
                .or(default.map(|seconds| seconds as f64))
        };
        RunOptions {
            steps: signed(given.steps.unwrap_or(search.steps)),
            workers: given
                .workers
                .map_or(self.workers, |workers| usize::try_from(workers).unwrap_or(usize::MAX)),
            seed: signed(given.seed.unwrap_or(search.seed)),
            mode: given.mode.map_or(search.mode.as_str(), RunMode::as_str).to_owned(),
            generation_size: signed(given.generation_size.unwrap_or(u64::from(search.individuals))),
            islands: signed(given.islands.unwrap_or(u64::from(search.islands))),
            max_wall: seconds(given.max_wall, search.max_wall_seconds),
            max_sandbox: seconds(given.max_sandbox, search.max_sandbox_seconds),
            max_model_sandbox: seconds(given.max_model_sandbox, search.max_model_sandbox_seconds),
            max_tokens: given.max_tokens.or(search.max_tokens).map(signed),
            max_cost_usd: given.max_cost_usd.or(search.max_cost_usd),
            max_jobs: given.max_jobs.or(search.max_jobs).map(signed),
            final_timeout: given
                .final_timeout
                .map_or(self.final_seconds, |timeout| timeout.as_secs_f64()),
            grade: given.grade.unwrap_or(search.grade),
            final_selection: given.final_selection.unwrap_or(search.final_selection),
            submit_repeats: signed(given.submit_repeats.unwrap_or(u64::from(search.submit_repeats))),
            grade_incumbents: given.grade_incumbents.unwrap_or(search.grade_incumbents),
            allow_unknown_cost: given.allow_unknown_cost.unwrap_or(search.allow_unknown_cost),
            attempt: AttemptSettings {
                temperature: given.temperature.unwrap_or(attempt.temperature),
                top_p: given.top_p.unwrap_or(attempt.top_p),
                timeout_seconds: given
                    .timeout
                    .map_or(attempt.timeout_seconds, |timeout| timeout.as_secs_f64()),
                warm: given.warm.unwrap_or(attempt.warm),
                cache: given.cache.unwrap_or(attempt.cache),
                memory_model: memory_model(given.memory_model.clone(), attempt.memory_model.clone()),
                prompt_tokens: given.prompt_tokens.unwrap_or(attempt.prompt_tokens),
                preflight: given.preflight.or(attempt.preflight),
                ..attempt
            },
            policy: self.policy_settings(given),
        }
    }

    /// Settings that only policies read. What nobody set is left out, so that each policy's own default holds.
    fn policy_settings(&self, given: &EvolveOptions) -> Map<String, Json> {
        let configured = &self.search.settings;
        let whole = |value: Option<u64>, default: Option<u64>| value.or(default).map(Json::from);
        let number = |value: Option<f64>, default: Option<f64>| value.or(default).map(Json::from);
        [
            (
                "migration_interval",
                whole(given.migration_interval, configured.migration_interval),
            ),
            ("migration_size", whole(given.migration_size, configured.migration_size)),
            ("drafts", whole(given.drafts, configured.drafts)),
            ("debug_depth", whole(given.debug_depth, configured.debug_depth)),
            (
                "debug_seconds",
                number(
                    given.debug_time.map(|time| time.as_secs_f64()),
                    configured.debug_seconds.map(|seconds| seconds as f64),
                ),
            ),
            (
                "debug_probability",
                number(given.debug_probability, configured.debug_probability),
            ),
            (
                "crossover_probability",
                number(given.crossover_probability, configured.crossover_probability),
            ),
            (
                "crossover_after",
                whole(given.crossover_after, configured.crossover_after),
            ),
            (
                "fresh_draft_probability",
                number(given.fresh_draft_probability, configured.fresh_draft_probability),
            ),
            (
                "quality_weight",
                number(given.quality_weight, configured.quality_weight),
            ),
            (
                "progress_weight",
                number(given.progress_weight, configured.progress_weight),
            ),
            (
                "novelty_weight",
                number(given.novelty_weight, configured.novelty_weight),
            ),
            (
                "selection_temperature",
                number(given.selection_temperature, configured.selection_temperature),
            ),
            ("exploration", number(given.exploration, configured.exploration)),
        ]
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| (name.to_owned(), value)))
        .collect()
    }
}
