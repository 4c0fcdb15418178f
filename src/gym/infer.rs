//! Facts about a task that its package does not state: title, metric, modality, task type.

use std::borrow::Cow;
use std::collections::HashSet;

use regex::Regex;

use crate::gym::checks::Tables;
use crate::gym::columns::Columns;
use crate::gym::manifest::{Modality, TaskType};
use crate::gym::split::is_categorical;

/// A metric as far as it is known without running it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MetricFacts {
    /// Name.
    pub name: Option<String>,
    /// Least value.
    pub min: Option<f64>,
    /// Greatest value.
    pub max: Option<f64>,
}

/// Words of a description and the metric that they name; longer phrases come before their parts.
const PHRASES: [(&str, &str); 40] = [
    ("mean columnwise root mean squared error", "mean_columnwise_rmse"),
    ("mean column-wise root mean squared error", "mean_columnwise_rmse"),
    ("mean columnwise auc", "mean_columnwise_auc"),
    ("mean column-wise roc auc", "mean_columnwise_auc"),
    ("root mean squared logarithmic error", "rmsle"),
    ("root mean square logarithmic error", "rmsle"),
    ("root mean squared log error", "rmsle"),
    ("rmsle", "rmsle"),
    ("root mean squared error", "rmse"),
    ("root mean square error", "rmse"),
    ("rmse", "rmse"),
    ("symmetric mean absolute percentage error", "smape"),
    ("smape", "smape"),
    ("mean absolute percentage error", "mape"),
    ("weighted absolute percentage error", "wape"),
    ("mean absolute error", "mae"),
    ("mean squared error", "mse"),
    ("quadratic weighted kappa", "qwk"),
    ("matthews correlation", "mcc"),
    ("area under the precision", "average_precision"),
    ("mean average precision at", "map_at_k"),
    ("average precision", "average_precision"),
    ("area under the roc", "auc"),
    ("area under the receiver", "auc"),
    ("roc auc", "auc"),
    ("auc", "auc"),
    ("multi-class logarithmic loss", "log_loss"),
    ("multiclass log loss", "log_loss"),
    ("logarithmic loss", "log_loss"),
    ("log loss", "log_loss"),
    ("logloss", "log_loss"),
    ("cross-entropy", "log_loss"),
    ("macro f1", "macro_f1"),
    ("macro-averaged f1", "macro_f1"),
    ("f1 score", "f1"),
    ("f1-score", "f1"),
    ("coefficient of determination", "r2"),
    ("concordance index", "concordance_index"),
    ("balanced accuracy", "balanced_accuracy"),
    ("accuracy", "accuracy"),
];

/// Metrics of numbers; the other known ones are of classes.
const REGRESSION: [&str; 11] = [
    "rmse",
    "mae",
    "rmsle",
    "r2",
    "smape",
    "wape",
    "mape",
    "mse",
    "msle",
    "median_absolute_error",
    "mean_columnwise_rmse",
];
const CLASSES: [&str; 11] = [
    "accuracy",
    "balanced_accuracy",
    "auc",
    "average_precision",
    "macro_f1",
    "f1",
    "mcc",
    "qwk",
    "log_loss",
    "binary_log_loss",
    "mean_columnwise_auc",
];

/// Bounds of the known metrics.
fn known_bounds(name: &str) -> (Option<f64>, Option<f64>) {
    match name {
        "accuracy"
        | "balanced_accuracy"
        | "auc"
        | "average_precision"
        | "macro_f1"
        | "f1"
        | "map_at_k"
        | "mean_columnwise_auc"
        | "concordance_index" => (Some(0.0), Some(1.0)),
        "mcc" | "qwk" => (Some(-1.0), Some(1.0)),
        "smape" => (Some(0.0), Some(200.0)),
        "r2" => (None, Some(1.0)),
        "log_loss"
        | "binary_log_loss"
        | "rmse"
        | "mae"
        | "rmsle"
        | "wape"
        | "mape"
        | "mse"
        | "msle"
        | "mean_columnwise_rmse" => (Some(0.0), None),
        _ => (None, None),
    }
}

/// Finds the metric's name and bounds: in the literal `META` of `metric.py`, else in the description, else in the class's name.
pub fn metric_facts(metric_py: &str, description: &str) -> MetricFacts {
    let mut facts = declared_metric(metric_py).unwrap_or_default();
    if facts.name.is_none() {
        facts.name = described_metric(description).or_else(|| class_metric(metric_py));
    }
    let bounds = facts.name.as_deref().map(known_bounds).unwrap_or_default();
    facts.min = facts.min.or(bounds.0);
    facts.max = facts.max.or(bounds.1);
    facts
}

/// The metric that a literal `META = {… 'metric': {'name': …, 'lower_bound': …, 'upper_bound': …}}` declares.
fn declared_metric(metric_py: &str) -> Option<MetricFacts> {
    let start = metric_py
        .lines()
        .scan(0, |at, line| {
            let here = *at;
            *at += line.len() + 1;
            Some((here, line))
        })
        .find(|(_, line)| line.starts_with("META") && line.contains('='))?
        .0;
    let block = metric_py.get(start..)?;
    let metric = &block[block.find("'metric'").or_else(|| block.find("\"metric\""))?..];
    let quoted = |key: &str| capture(metric, &format!(r#"['"]{key}['"]\s*:\s*['"]([\w@.-]+)['"]"#));
    let number =
        |key: &str| capture(metric, &format!(r#"['"]{key}['"]\s*:\s*(-?[0-9.eE+-]+)"#)).and_then(|v| v.parse().ok());
    Some(MetricFacts {
        name: quoted("name"),
        min: number("lower_bound"),
        max: number("upper_bound"),
    })
}

fn capture(text: &str, pattern: &str) -> Option<String> {
    Regex::new(pattern)
        .ok()?
        .captures(text)?
        .get(1)
        .map(|m| m.as_str().to_owned())
}

/// The metric that the evaluation part of a description names, else the whole of it.
fn described_metric(description: &str) -> Option<String> {
    let lower = description.to_lowercase();
    let part = lower.find("evaluation").map(|at| &lower[at..]);
    part.into_iter()
        .map(|p| p.lines().take(12).collect::<Vec<_>>().join(" "))
        .chain([lower.clone()])
        .find_map(|text| {
            PHRASES
                .iter()
                .filter_map(|(phrase, name)| Some((find_word(&text, phrase)?, std::cmp::Reverse(phrase.len()), name)))
                .min()
        })
        .map(|(_, _, name)| (*name).to_owned())
}

/// Place of a phrase that no letter touches.
fn find_word(text: &str, phrase: &str) -> Option<usize> {
    text.match_indices(phrase).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

/// The metric that the class's name ends in: `RMSEMetrics`, `LogLossMetrics`.
fn class_metric(metric_py: &str) -> Option<String> {
    let class = capture(metric_py, r"(?m)^class\s+(\w+)Metrics\b")?.to_lowercase();
    let flat = |name: &str| name.replace('_', "");
    REGRESSION
        .iter()
        .chain(&CLASSES)
        .filter(|n| class.ends_with(&flat(n)))
        .max_by_key(|n| n.len())
        .map(|n| (*n).to_owned())
}

/// The first heading of a description, else its first line, else the task's id in words.
pub fn title(description: &str, task_id: &str) -> String {
    description
        .trim_start_matches('\u{feff}')
        .lines()
        .map(|l| l.trim().trim_start_matches('#').trim().trim_matches('*').trim())
        .find(|l| l.chars().any(char::is_alphanumeric))
        .map_or_else(|| task_id.replace(['-', '_'], " "), |l| l.chars().take(200).collect())
}

/// What the task asks for.
pub fn task_type(metric: Option<&str>, tables: &Tables, columns: &Columns, by_time: bool, ranked: bool) -> TaskType {
    let metric = metric.unwrap_or_default();
    if ranked || metric.starts_with("map_at") || metric.starts_with("ndcg") {
        return TaskType::Ranking;
    }
    let Some(train) = &tables.train else {
        return TaskType::Other;
    };
    let in_train: Vec<usize> = columns.targets.iter().filter_map(|t| train.position(t)).collect();
    if in_train.len() > 1 {
        return TaskType::MultiTarget;
    }
    let values = in_train.first().map(|c| train.column(*c));
    let classes = || {
        let present = values
            .iter()
            .flatten()
            .filter(|v| !v.trim().is_empty())
            .map(|v| v.as_ref())
            .collect::<HashSet<_>>();
        present.len().max(columns.targets.len())
    };
    let by_class = CLASSES.contains(&metric)
        || !REGRESSION.contains(&metric) && values.as_ref().is_some_and(|v| is_categorical(v))
        || columns.targets.len() > 1;
    if by_class {
        return if classes() == 2 {
            TaskType::Binary
        } else {
            TaskType::Multiclass
        };
    }
    match (values.is_some(), by_time) {
        (true, true) => TaskType::Forecasting,
        (true, false) => TaskType::Regression,
        (false, _) => TaskType::Other,
    }
}

/// The kind of data, from the names of the public files and the columns of the test table.
pub fn modality(public: &[String], tables: &Tables, columns: &Columns, task_type: TaskType) -> Modality {
    let count = |ends: &[&str]| {
        public
            .iter()
            .filter(|p| {
                p.rsplit_once('.')
                    .is_some_and(|(_, e)| ends.contains(&e.to_ascii_lowercase().as_str()))
            })
            .count()
    };
    let (train, test) = (tables.train.as_ref(), tables.test.as_ref());
    let features: Vec<Vec<Cow<'_, str>>> = match (train, test) {
        (Some(train), Some(test)) => test
            .columns()
            .iter()
            .filter(|c| columns.id.as_ref() != Some(c) && !columns.targets.contains(c))
            .filter_map(|c| train.position(c))
            .map(|c| train.column(c))
            .collect(),
        _ => Vec::new(),
    };
    let text = features.iter().filter(|c| is_text(c)).count();
    let table = features.len() - text;
    let image = count(&["png", "jpg", "jpeg", "tif", "tiff", "bmp", "gif", "webp", "dcm"]) > 1;
    let audio = count(&["wav", "mp3", "flac", "ogg", "aif", "aiff"]) > 1;
    if image || audio {
        // A few columns beside the files (paths, sizes) do not make a mixed task.
        return match (image && audio || text > 0 || table > 5, image) {
            (true, _) => Modality::Mixed,
            (false, true) => Modality::Image,
            (false, false) => Modality::Audio,
        };
    }
    if task_type == TaskType::Forecasting || (features.is_empty() && has_series(public)) {
        return Modality::TimeSeries;
    }
    match (text > 0, table > 3) {
        (true, false) => Modality::Text,
        (true, true) => Modality::Mixed,
        (false, _) => Modality::Tabular,
    }
}

fn has_series(public: &[String]) -> bool {
    public.iter().any(|p| p.to_ascii_lowercase().contains("series"))
}

/// Whether a column holds sentences: mostly different values of several words.
fn is_text(values: &[Cow<'_, str>]) -> bool {
    let head: Vec<&str> = values
        .iter()
        .map(|v| v.trim())
        .filter(|v| !v.is_empty())
        .take(500)
        .collect();
    let words: usize = head.iter().map(|v| v.split_whitespace().count()).sum();
    let distinct = head.iter().collect::<HashSet<_>>().len();
    head.len() >= 5 && words >= 6 * head.len() && distinct * 2 > head.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn metrics_are_declared_described_or_named() {
        let meta = "META = {'id_column': 'id', 'metric': {'name': 'rmsle', 'direction': 'minimize', 'lower_bound': 0.0, 'upper_bound': None}}\n";
        let facts = metric_facts(meta, "scored by accuracy");
        assert_eq!(
            facts,
            MetricFacts {
                name: Some("rmsle".into()),
                min: Some(0.0),
                max: None
            }
        );
        for (text, name) in [
            (
                "Evaluation\n----\nSubmissions are scored by area under the ROC curve. Higher is better.",
                "auc",
            ),
            ("## Evaluation\nroot mean squared logarithmic error", "rmsle"),
            (
                "Predict it with great accuracy.\n\nEvaluation\nthe mean absolute error",
                "mae",
            ),
            ("scored on multi-class logarithmic loss (rows are rescaled)", "log_loss"),
            ("mean average precision at 10", "map_at_k"),
        ] {
            assert_eq!(
                metric_facts("class XMetrics:", text).name.as_deref(),
                Some(name),
                "{text}"
            );
        }
        assert_eq!(
            metric_facts("import x\nclass TaskLogLossMetrics:\n", "predict")
                .name
                .as_deref(),
            Some("log_loss")
        );
        assert_eq!(
            metric_facts("class OwnMetrics:\n", "Evaluation: see the sauce").name,
            None
        );
    }

    #[test]
    fn titles() {
        assert_eq!(title("\n# Age of abalone #\n====\n", "x"), "Age of abalone #");
        assert_eq!(title("Age of abalone\n====\n", "x"), "Age of abalone");
        assert_eq!(title(" \n---\n", "age-of_x"), "age of x");
    }
}
