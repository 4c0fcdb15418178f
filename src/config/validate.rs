//! Ranges that the types do not hold.

use super::error::ConfigError;
use super::{Config, Loaded};

/// What a value must be.
const AT_LEAST_ONE: &str = "must be at least 1";
const WEIGHT: &str = "must be finite and not negative";
const PROBABILITY: &str = "must be from 0 to 1";
const NOT_EMPTY: &str = "must not be empty";

/// Checks every range; the error names the key and where its value came from.
pub(super) fn check(loaded: &Loaded) -> Result<(), ConfigError> {
    let problem = |key: &str, message: &str| {
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        let origin = loaded.place(&path).unwrap_or_else(|| "the configuration".to_owned());
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
        model
            .check()
            .map_err(|wrong| problem(&format!("models.{name}.{}", wrong.option), &wrong.problem))?;
    }
    Ok(())
}

/// Each range: the key, whether it holds, and what it says.
fn ranges(config: &Config) -> Vec<(&'static str, bool, &'static str)> {
    let weight = |value: f64| value.is_finite() && value >= 0.0;
    let optional_weight = |value: Option<f64>| value.is_none_or(weight);
    let probability = |value: Option<f64>| value.is_none_or(|value| (0.0..=1.0).contains(&value));
    let (store, sandbox, search, service) = (&config.store, &config.sandbox, &config.search, &config.service);
    let settings = &search.settings;
    vec![
        ("store.path", !store.path.as_os_str().is_empty(), NOT_EMPTY),
        ("store.flush_rows", store.flush_rows > 0, AT_LEAST_ONE),
        ("store.flush_size", store.flush_size.bytes() > 0, AT_LEAST_ONE),
        ("sandbox.executor", !sandbox.executor.is_empty(), NOT_EMPTY),
        ("sandbox.concurrency", sandbox.concurrency != Some(0), AT_LEAST_ONE),
        ("sandbox.wall_seconds", sandbox.wall_seconds > 0, AT_LEAST_ONE),
        ("sandbox.cpu_seconds", sandbox.cpu_seconds != Some(0), AT_LEAST_ONE),
        ("sandbox.cpus", sandbox.cpus > 0, AT_LEAST_ONE),
        (
            "sandbox.memory",
            sandbox.memory.bytes() >= 16 << 20,
            "must be at least 16MiB",
        ),
        ("sandbox.docker.image", !sandbox.docker.image.is_empty(), NOT_EMPTY),
        ("sandbox.docker.python", !sandbox.docker.python.is_empty(), NOT_EMPTY),
        ("sandbox.docker.starts", sandbox.docker.starts > 0, AT_LEAST_ONE),
        ("sandbox.remote.key_env", !sandbox.remote.key_env.is_empty(), NOT_EMPTY),
        (
            "sandbox.remote.priority",
            (1..=9).contains(&sandbox.remote.priority),
            "must be from 1 to 9",
        ),
        (
            "sandbox.remote.connect_seconds",
            sandbox.remote.connect_seconds > 0,
            AT_LEAST_ONE,
        ),
        (
            "sandbox.remote.answer_seconds",
            sandbox.remote.answer_seconds > 0,
            AT_LEAST_ONE,
        ),
        (
            "sandbox.remote.transfer_seconds",
            sandbox.remote.transfer_seconds > 0,
            AT_LEAST_ONE,
        ),
        (
            "sandbox.remote.give_up_seconds",
            sandbox.remote.give_up_seconds > 0,
            AT_LEAST_ONE,
        ),
        ("sandbox.processes", sandbox.processes > 0, AT_LEAST_ONE),
        ("sandbox.scratch_files", sandbox.scratch_files > 0, AT_LEAST_ONE),
        (
            "sandbox.evaluation_seconds",
            sandbox.evaluation_seconds > 0,
            AT_LEAST_ONE,
        ),
        (
            "prompts.max_tokens",
            (1_000..=10_000_000).contains(&config.prompts.max_tokens),
            "must be from 1000 to 10000000",
        ),
        ("service.queue_limit", service.queue_limit > 0, AT_LEAST_ONE),
        ("service.max_attempts", service.max_attempts > 0, AT_LEAST_ONE),
        ("service.lease_seconds", service.lease_seconds > 1, "must be at least 2"),
        ("service.quarantine_after", service.quarantine_after > 0, AT_LEAST_ONE),
        ("service.probe_seconds", service.probe_seconds > 0, AT_LEAST_ONE),
        ("service.max_job_seconds", service.max_job_seconds > 0, AT_LEAST_ONE),
        ("service.keep_days", service.keep_days > 0, AT_LEAST_ONE),
        ("service.queued_per_user", service.queued_per_user > 0, AT_LEAST_ONE),
        (
            "service.running_per_user",
            service.running_per_user != Some(0),
            AT_LEAST_ONE,
        ),
        (
            "service.requests_per_minute",
            service.requests_per_minute > 0,
            AT_LEAST_ONE,
        ),
        (
            "service.body_size",
            service.body_size.bytes() >= 64 << 10,
            "must be at least 64KiB",
        ),
        ("service.head_seconds", service.head_seconds > 0, AT_LEAST_ONE),
        ("service.body_seconds", service.body_seconds > 0, AT_LEAST_ONE),
        ("service.upload_seconds", service.upload_seconds > 0, AT_LEAST_ONE),
        ("service.upload_size", service.upload_size.bytes() > 0, AT_LEAST_ONE),
        ("service.upload_files", service.upload_files > 0, AT_LEAST_ONE),
        ("service.upload_depth", service.upload_depth > 0, AT_LEAST_ONE),
        ("service.uploads_at_once", service.uploads_at_once > 0, AT_LEAST_ONE),
        ("service.uploads_per_user", service.uploads_per_user > 0, AT_LEAST_ONE),
        (
            "service.submissions_bytes",
            service.submissions_bytes.bytes() > 0 || service.keep_submission_hours == 0,
            "must be above 0, unless service.keep_submission_hours is 0",
        ),
        ("search.policy", !search.policy.is_empty(), NOT_EMPTY),
        ("search.model", !search.model.is_empty(), NOT_EMPTY),
        ("search.steps", search.steps > 0, AT_LEAST_ONE),
        (
            "search.workers",
            (1..=1024).contains(&search.workers),
            "must be from 1 to 1024",
        ),
        ("search.individuals", search.individuals > 0, AT_LEAST_ONE),
        ("search.islands", search.islands > 0, AT_LEAST_ONE),
        (
            "search.temperature",
            (0.0..=2.0).contains(&search.temperature),
            "must be from 0 to 2",
        ),
        (
            "search.top_p",
            search.top_p > 0.0 && search.top_p <= 1.0,
            "must be above 0 and at most 1",
        ),
        ("search.max_output_tokens", search.max_output_tokens > 0, AT_LEAST_ONE),
        ("search.final_seconds", search.final_seconds != Some(0), AT_LEAST_ONE),
        (
            "search.submit_repeats",
            (1..=100).contains(&search.submit_repeats),
            "must be from 1 to 100",
        ),
        ("search.max_tries", search.max_tries > 0, AT_LEAST_ONE),
        ("search.max_tokens", search.max_tokens != Some(0), AT_LEAST_ONE),
        ("search.max_jobs", search.max_jobs != Some(0), AT_LEAST_ONE),
        ("search.max_cost_usd", optional_weight(search.max_cost_usd), WEIGHT),
        (
            "search.max_wall_seconds",
            search.max_wall_seconds != Some(0),
            AT_LEAST_ONE,
        ),
        (
            "search.max_sandbox_seconds",
            search.max_sandbox_seconds != Some(0),
            AT_LEAST_ONE,
        ),
        (
            "search.max_model_sandbox_seconds",
            search.max_model_sandbox_seconds != Some(0),
            AT_LEAST_ONE,
        ),
        (
            "search.settings.migration_size",
            settings.migration_size != Some(0),
            AT_LEAST_ONE,
        ),
        (
            "search.settings.debug_seconds",
            settings.debug_seconds != Some(0),
            AT_LEAST_ONE,
        ),
        (
            "search.settings.debug_probability",
            probability(settings.debug_probability),
            PROBABILITY,
        ),
        (
            "search.settings.crossover_probability",
            probability(settings.crossover_probability),
            PROBABILITY,
        ),
        (
            "search.settings.fresh_draft_probability",
            probability(settings.fresh_draft_probability),
            PROBABILITY,
        ),
        (
            "search.settings.quality_weight",
            optional_weight(settings.quality_weight),
            WEIGHT,
        ),
        (
            "search.settings.progress_weight",
            optional_weight(settings.progress_weight),
            WEIGHT,
        ),
        (
            "search.settings.novelty_weight",
            optional_weight(settings.novelty_weight),
            WEIGHT,
        ),
        (
            "search.settings.selection_temperature",
            optional_weight(settings.selection_temperature),
            WEIGHT,
        ),
        (
            "search.settings.exploration",
            optional_weight(settings.exploration),
            WEIGHT,
        ),
    ]
}
