//! What decides how a search goes, as one flat list, so that two times can be compared.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::error::{Result, SuiteError};
use super::plan::{Search, Suite};
use crate::config::SandboxConfig;
use crate::scheduler::Run;

/// Keys of the sandbox that are said elsewhere, or that change nothing but how long it takes.
const SAID_ELSEWHERE: [&str; 4] = ["executor", "warm", "wall_seconds", "concurrency"];

/// Effective options of a run but its seed, and the limits of the sandbox.
///
/// # Errors
/// When they cannot be written as JSON.
pub fn settings(run: &Run, sandbox: &SandboxConfig) -> Result<Map<String, Json>> {
    let mut settings = object(&run.options)?;
    settings.remove("seed");
    for (key, value) in object(sandbox)? {
        if !SAID_ELSEWHERE.contains(&key.as_str()) {
            settings.insert(format!("sandbox.{key}"), value);
        }
    }
    Ok(settings)
}

fn object(value: &impl serde::Serialize) -> Result<Map<String, Json>> {
    match serde_json::to_value(value) {
        Ok(Json::Object(object)) => Ok(object),
        Ok(other) => Err(SuiteError::Request(format!(
            "settings must be an object, found {other}"
        ))),
        Err(error) => Err(SuiteError::Request(format!("the settings cannot be stored: {error}"))),
    }
}

/// What is not as it was when the suite began. A task that was missing and is imported now is no difference.
pub fn differences(
    suite: &Suite,
    searches: &[Search],
    run: &Run,
    settings: &Map<String, Json>,
    packages: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut found = Vec::new();
    let shown = |value: Option<&Json>| value.map_or_else(|| "not set".to_owned(), Json::to_string);
    let keys: std::collections::BTreeSet<&String> = suite.settings.keys().chain(settings.keys()).collect();
    for key in keys {
        let (then, now) = (suite.settings.get(key), settings.get(key));
        if then != now {
            found.push(format!("{key} was {} and is {} now", shown(then), shown(now)));
        }
    }
    if suite.policy_sql != run.policy_sql {
        found.push(format!("policy {} has another text now", suite.policy));
    }
    for task in &suite.tasks {
        let then = searches
            .iter()
            .find(|search| &search.task_id == task)
            .and_then(|search| search.package_hash.as_ref());
        match (then, packages.get(task)) {
            (Some(_), None) => found.push(format!("task {task} is not there any more")),
            (Some(then), Some(now)) if then != now => found.push(format!(
                "task {task} has another package now ({} instead of {})",
                short(now),
                short(then)
            )),
            _ => {}
        }
    }
    found
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
