//! Ranges that the types do not hold.

use super::error::ConfigError;
use super::{Config, Loaded, Provider};

/// What a number must be.
const AT_LEAST_ONE: &str = "must be at least 1";
const WEIGHT: &str = "must be finite and not negative";
const SHARE: &str = "must be above 0 and at most 1";

/// Checks every range; the error names the key and where its value came from.
pub(super) fn check(loaded: &Loaded) -> Result<(), ConfigError> {
    let problem = |key: &str, message: &str| {
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        let origin = loaded.origin(&path).unwrap_or_else(|| "the configuration".to_owned());
        ConfigError::Invalid {
            key: key.to_owned(),
            origin,
            message: message.to_owned(),
        }
    };
    for (key, valid, message) in ranges(&loaded.config) {
        if !valid {
            return Err(problem(key, message));
        }
    }
    for (name, model) in &loaded.config.models {
        let key = |field: &str| format!("models.{name}.{field}");
        if model.provider == Provider::Openai {
            for (field, value) in [("endpoint", &model.endpoint), ("model", &model.model)] {
                if value.as_deref().is_none_or(str::is_empty) {
                    return Err(problem(&key(field), "is needed by the openai provider"));
                }
            }
        }
    }
    Ok(())
}

/// Each range: the key, whether it holds, and what it says.
fn ranges(config: &Config) -> Vec<(&'static str, bool, &'static str)> {
    let weight = |value: f64| value.is_finite() && value >= 0.0;
    let (store, sandbox, search) = (&config.store, &config.sandbox, &config.search);
    let (operators, utility) = (&search.operators, &search.utility);
    vec![
        ("store.path", !store.path.as_os_str().is_empty(), "must not be empty"),
        ("store.flush_rows", store.flush_rows > 0, AT_LEAST_ONE),
        ("store.flush_size", store.flush_size.bytes() > 0, AT_LEAST_ONE),
        ("sandbox.executor", !sandbox.executor.is_empty(), "must not be empty"),
        ("sandbox.concurrency", sandbox.concurrency != Some(0), AT_LEAST_ONE),
        ("sandbox.wall_seconds", sandbox.wall_seconds > 0, AT_LEAST_ONE),
        ("sandbox.cpu_seconds", sandbox.cpu_seconds != Some(0), AT_LEAST_ONE),
        ("sandbox.cpus", sandbox.cpus > 0, AT_LEAST_ONE),
        (
            "sandbox.memory",
            sandbox.memory.bytes() >= 16 << 20,
            "must be at least 16MiB",
        ),
        ("sandbox.processes", sandbox.processes > 0, AT_LEAST_ONE),
        ("sandbox.scratch_files", sandbox.scratch_files > 0, AT_LEAST_ONE),
        (
            "sandbox.evaluation_seconds",
            sandbox.evaluation_seconds > 0,
            AT_LEAST_ONE,
        ),
        ("search.steps", search.steps > 0, AT_LEAST_ONE),
        ("search.workers", search.workers > 0, AT_LEAST_ONE),
        ("search.samples", search.samples > 0, AT_LEAST_ONE),
        ("search.islands", search.islands > 0, AT_LEAST_ONE),
        ("search.individuals", search.individuals > 0, AT_LEAST_ONE),
        ("search.temperature", weight(search.temperature), WEIGHT),
        ("search.top_p", search.top_p > 0.0 && search.top_p <= 1.0, SHARE),
        ("search.max_output_tokens", search.max_output_tokens > 0, AT_LEAST_ONE),
        ("search.max_cost_usd", search.max_cost_usd.is_none_or(weight), WEIGHT),
        ("search.operators.draft", weight(operators.draft), WEIGHT),
        ("search.operators.improve", weight(operators.improve), WEIGHT),
        ("search.operators.debug", weight(operators.debug), WEIGHT),
        ("search.operators.crossover", weight(operators.crossover), WEIGHT),
        ("search.utility.quality", weight(utility.quality), WEIGHT),
        ("search.utility.progress", weight(utility.progress), WEIGHT),
        ("search.utility.novelty", weight(utility.novelty), WEIGHT),
        ("search.utility.temperature", weight(utility.temperature), WEIGHT),
    ]
}
