//! `metadata.json` of a task: its name, and for every instance the primary metric with what the paper reports of it.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::published::number_of;
use crate::gym::error::{GymError, io};
use crate::gym::rows::Instance;

/// What a task's metadata says.
#[derive(Debug, Clone, PartialEq)]
pub struct Metadata {
    /// Title.
    pub title: Option<String>,
    /// Instances that can be compared with the paper, in their order.
    pub instances: Vec<Instance>,
    /// Instances that cannot, with the reason.
    pub left_out: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    task_name: Option<String>,
    #[serde(default)]
    performance_entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(alias = "instance_name")]
    dataset_name: Option<String>,
    #[serde(default)]
    metrics: Vec<Metric>,
}

#[derive(Deserialize)]
struct Metric {
    name: Option<String>,
    #[serde(default)]
    is_primary: bool,
    metric_direction: Option<String>,
    #[serde(default)]
    sota_score: Value,
    #[serde(default)]
    baseline_score: Value,
}

impl Metadata {
    /// Reads the file.
    ///
    /// # Errors
    /// When it is no such file, or no instance has a published score to compare with.
    pub fn read(path: &Path) -> Result<Self, GymError> {
        let text = std::fs::read_to_string(path).map_err(io("read", path))?;
        Self::parse(&text).map_err(|message| GymError::package(path, message))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| format!("it cannot be read: {error}"))?;
        let mut metadata = Self {
            title: file.task_name,
            instances: Vec::new(),
            left_out: Vec::new(),
        };
        for (index, entry) in file.performance_entries.into_iter().enumerate() {
            let name = entry
                .dataset_name
                .ok_or_else(|| format!("entry {} of performance_entries has no dataset_name", index + 1))?;
            if metadata.instances.iter().any(|known| known.instance == name) {
                return Err(format!("the instance {name} has two entries"));
            }
            match instance(&name, entry.metrics) {
                Ok(instance) => metadata.instances.push(instance),
                Err(reason) => metadata.left_out.push(format!("{name} ({reason})")),
            }
        }
        if metadata.instances.is_empty() {
            return Err(match metadata.left_out.as_slice() {
                [] => "it has no performance_entries: there is no published score to compare with".to_owned(),
                left_out => format!(
                    "no instance can be compared with a published score: {}",
                    left_out.join(", ")
                ),
            });
        }
        Ok(metadata)
    }
}

/// The instance by its primary metric; else why it cannot be compared.
fn instance(name: &str, metrics: Vec<Metric>) -> Result<Instance, String> {
    let metric = metrics
        .into_iter()
        .find(|metric| metric.is_primary)
        .ok_or("it has no primary metric")?;
    let metric_name = metric.name.ok_or("its primary metric has no name")?;
    let higher_is_better = match metric.metric_direction.as_deref() {
        Some("higher_is_better") => true,
        Some("lower_is_better") => false,
        other => {
            return Err(format!(
                "metric_direction of {metric_name} is {}, not higher_is_better or lower_is_better",
                other.unwrap_or("missing")
            ));
        }
    };
    let sota = best(&metric.sota_score, higher_is_better)
        .ok_or_else(|| format!("the published score of {metric_name} holds no number"))?;
    if sota == 0.0 {
        return Err(format!(
            "the published score of {metric_name} is 0: nothing can be a share better or worse"
        ));
    }
    Ok(Instance {
        instance: name.to_owned(),
        metric: metric_name,
        higher_is_better,
        sota,
        baseline: best(&metric.baseline_score, higher_is_better),
    })
}

/// The best number among the variants of a published score.
fn best(value: &Value, higher_is_better: bool) -> Option<f64> {
    let number = |value: &Value| match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number_of(text, higher_is_better),
        _ => None,
    };
    let one = |value: &Value| match value {
        Value::Object(fields) => fields.get("value").and_then(number),
        other => number(other),
    };
    let better = |a: f64, b: f64| if higher_is_better { a.max(b) } else { a.min(b) };
    match value {
        Value::Array(variants) => variants.iter().filter_map(one).reduce(better),
        other => one(other),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn entry(name: &str, direction: &str, sota: &str) -> String {
        format!(
            r#"{{"dataset_name": "{name}", "metrics": [
                {{"name": "other", "is_primary": false, "metric_direction": "{direction}", "sota_score": [{{"value": "1"}}]}},
                {{"name": "error", "is_primary": true, "metric_direction": "{direction}", "sota_score": {sota},
                  "baseline_score": {{"value": "2.5", "method": "B"}}}}]}}"#
        )
    }

    fn parse(entries: &[String]) -> Result<Metadata, String> {
        Metadata::parse(&format!(
            r#"{{"task_name": "Spots", "performance_entries": [{}]}}"#,
            entries.join(", ")
        ))
    }

    #[test]
    fn the_best_variant_of_the_primary_metric_counts() {
        let variants = r#"[{"value": "1.5 ± 0.1", "method": "A"}, {"value": "1.2", "method": "B"}, {"value": null}]"#;
        let metadata = parse(&[
            entry("a", "lower_is_better", variants),
            entry("b", "higher_is_better", variants),
        ])
        .unwrap();
        assert_eq!(metadata.title.as_deref(), Some("Spots"));
        let sotas: Vec<_> = metadata
            .instances
            .iter()
            .map(|i| (i.instance.as_str(), i.sota, i.baseline))
            .collect();
        assert_eq!(sotas, [("a", 1.2, Some(2.5)), ("b", 1.5, Some(2.5))]);
        assert_eq!(metadata.instances[0].metric, "error");
    }

    #[test]
    fn instances_without_a_published_score_are_left_out_with_the_reason() {
        let metadata = parse(&[
            entry("a", "lower_is_better", "\"0.5\""),
            entry("zero", "lower_is_better", "[{\"value\": \"0.0\"}]"),
            entry("none", "lower_is_better", "null"),
            entry("way", "sideways", "\"1\""),
        ])
        .unwrap();
        assert_eq!(metadata.instances.len(), 1);
        assert_eq!(metadata.left_out.len(), 3);
        assert!(metadata.left_out[0].starts_with("zero (the published score of error is 0"));
        let nothing = parse(&[entry("none", "lower_is_better", "null")]).unwrap_err();
        assert!(
            nothing.contains("none (the published score of error holds no number)"),
            "{nothing}"
        );
        assert!(parse(&[]).unwrap_err().contains("no performance_entries"));
        let twice = parse(&[entry("a", "lower_is_better", "1"), entry("a", "lower_is_better", "1")]).unwrap_err();
        assert_eq!(twice, "the instance a has two entries");
    }
}
