//! The metric of a competition: its own grader, wrapped so that it runs alone, without MLE-Bench.

use std::collections::BTreeMap;
use std::path::Path;

use super::config::Config;
use crate::gym::error::{GymError, io};

/// The wrapper; texts and facts are put into its places.
const ADAPTER: &str = include_str!("adapter.py");

/// Package of the competitions' modules.
const COMPETITIONS: &str = "mlebench.competitions";

/// Modules of a competition that only make its data.
const LEFT_OUT: [&str; 2] = ["prepare", "__init__"];

/// How a grader is wrapped.
#[derive(Debug, Clone, Copy)]
pub struct Grader {
    /// Higher is better.
    pub direction: bool,
    /// The grader takes its answers as a list of records, not as a data frame.
    pub answers_are_records: bool,
}

impl Grader {
    /// The text of `metric.py` for the competition of a folder.
    pub fn metric_py(self, competition: &Path, config: &Config, id: &str, path: &Path) -> Result<String, GymError> {
        let own = competition.join("metric.py");
        if own.is_file() {
            return std::fs::read_to_string(&own).map_err(io("read", &own));
        }
        let default = format!("{COMPETITIONS}.{id}.grade:grade");
        let (module, function) = config
            .grade_fn
            .as_deref()
            .unwrap_or(&default)
            .split_once(':')
            .ok_or_else(|| GymError::package(competition, "grade_fn of config.yaml is no MODULE:FUNCTION"))?;
        let modules = modules(competition, id)?;
        if !modules.contains_key(module) {
            return Err(GymError::package(
                path,
                format!(
                    "there is no grader: MLE-Bench keeps it as grade.py in mlebench/competitions/{id}; name the folder of \
                     competitions with --competitions, or put grade.py or a metric.py of ours into {}",
                    competition.display()
                ),
            ));
        }
        let python = |value: bool| if value { "True" } else { "False" };
        Ok(ADAPTER
            .replace("__HIGHER_IS_BETTER__", python(self.direction))
            .replace("__ANSWERS_ARE_RECORDS__", python(self.answers_are_records))
            .replace("__MODULE__", &serde_json::json!(module).to_string())
            .replace("__FUNCTION__", &serde_json::json!(function).to_string())
            .replace("__SOURCES__", &serde_json::json!(modules).to_string()))
    }
}

/// Texts of the modules that a grader may import: its competition's, and those that competitions share.
fn modules(competition: &Path, id: &str) -> Result<BTreeMap<String, String>, GymError> {
    let mut modules = BTreeMap::new();
    let mut add = |name: String, path: &Path| -> Result<(), GymError> {
        if path.is_file() {
            modules.insert(name, std::fs::read_to_string(path).map_err(io("read", path))?);
        }
        Ok(())
    };
    for entry in std::fs::read_dir(competition).map_err(io("read", competition))? {
        let path = entry.map_err(io("read", competition))?.path();
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        if let Some(stem) = stem
            && path.extension().is_some_and(|end| end == "py")
            && !LEFT_OUT.contains(&stem.as_str())
        {
            add(format!("{COMPETITIONS}.{id}.{stem}"), &path)?;
        }
    }
    let shared = [
        ("mlebench.competitions.utils", competition.join("../utils.py")),
        ("mlebench.competitions.utils", competition.join("utils.py")),
        ("mlebench.metrics", competition.join("../../metrics.py")),
        ("mlebench.metrics", competition.join("metrics.py")),
    ];
    for (name, path) in shared {
        add(name.to_owned(), &path)?;
    }
    Ok(modules)
}
