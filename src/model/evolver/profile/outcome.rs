//! What is to be predicted and the form in which the submission wants it.

use std::collections::{BTreeSet, HashSet};

use super::table::Table;
use crate::model::evolver::literal::quote;
use crate::model::evolver::metric::Metric;
use crate::model::request::TaskContext;

/// Most classes of a label.
const MOST_CLASSES: usize = 200;

/// A class as the training data writes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassLabel {
    /// The text in the file.
    pub(crate) text: String,
    /// True when pandas reads the column as numbers or booleans.
    pub(crate) bare: bool,
}

impl ClassLabel {
    /// The class as a Python literal.
    pub(crate) fn python(&self) -> String {
        match self.text.as_str() {
            "TRUE" | "true" if self.bare => "True".to_owned(),
            "FALSE" | "false" if self.bare => "False".to_owned(),
            text if self.bare => text.to_owned(),
            text => quote(text),
        }
    }
}

/// A list of items for each user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ranking {
    /// Column of the one who gets the list.
    pub(crate) user: String,
    /// Column of what is listed.
    pub(crate) item: String,
    /// Column that orders the history.
    pub(crate) time: Option<String>,
    /// Column of the submission with the list.
    pub(crate) column: String,
    /// Length of the list.
    pub(crate) length: usize,
    /// Items of each user that are held back, as far as can be told.
    pub(crate) held_back: usize,
}

/// What is to be predicted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// One or several numbers.
    Values {
        /// Target columns.
        targets: Vec<String>,
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
        /// True when values are stretched to the right, so that a logarithm helps.
        skewed: bool,
    },
    /// One class a row.
    Label {
        /// Target column.
        target: String,
        /// Classes.
        classes: Vec<ClassLabel>,
        /// The class the metric counts, when there are two.
        positive: Option<ClassLabel>,
    },
    /// Probability of one class of two.
    Probability {
        /// Target column.
        target: String,
        /// The class.
        positive: ClassLabel,
        /// The other class.
        negative: ClassLabel,
    },
    /// Probability of each class.
    Classes {
        /// Target column.
        target: String,
        /// Class and the column of its probability.
        columns: Vec<(ClassLabel, String)>,
    },
    /// Risk of an event, from times some of which are cut off.
    Risk {
        /// Column of the time.
        duration: String,
        /// Column that is 1 when the event happened.
        event: String,
        /// Column of the submission.
        column: String,
    },
    /// A list of items for each user.
    Ranking(Ranking),
}

impl Outcome {
    /// Columns that are targets.
    pub(crate) fn targets(&self) -> Vec<&str> {
        match self {
            Self::Values { targets, .. } => targets.iter().map(String::as_str).collect(),
            Self::Label { target, .. } | Self::Probability { target, .. } | Self::Classes { target, .. } => {
                vec![target]
            }
            Self::Risk { duration, event, .. } => vec![duration, event],
            Self::Ranking(_) => Vec::new(),
        }
    }

    /// The metric a program computes itself: the task's where it is known, else a common one for this outcome.
    pub(crate) fn own_metric(&self, metric: Option<Metric>, higher_is_better: bool) -> Metric {
        let fits = |metric: &Metric| match self {
            Self::Ranking(_) => *metric == Metric::MapAtK,
            Self::Risk { .. } => *metric == Metric::ConcordanceIndex,
            Self::Label { .. } => metric.wants_labels(),
            Self::Probability { .. } => metric.wants_probabilities(),
            Self::Classes { .. } => matches!(metric, Metric::LogLoss),
            Self::Values { targets, .. } if targets.len() > 1 => {
                matches!(metric, Metric::MeanColumnwiseRmse | Metric::MeanColumnwiseAuc)
            }
            Self::Values { .. } => {
                !(metric.wants_labels()
                    || metric.wants_probabilities()
                    || matches!(
                        metric,
                        Metric::MapAtK
                            | Metric::ConcordanceIndex
                            | Metric::MeanColumnwiseAuc
                            | Metric::MeanColumnwiseRmse
                    ))
            }
        };
        metric.filter(fits).unwrap_or(match self {
            Self::Ranking(_) => Metric::MapAtK,
            Self::Risk { .. } => Metric::ConcordanceIndex,
            Self::Label { .. } => Metric::Accuracy,
            Self::Classes { .. } => Metric::LogLoss,
            Self::Probability { .. } if higher_is_better => Metric::Auc,
            Self::Probability { .. } => Metric::LogLoss,
            Self::Values { targets, .. } if targets.len() > 1 && higher_is_better => Metric::MeanColumnwiseAuc,
            Self::Values { targets, .. } if targets.len() > 1 => Metric::MeanColumnwiseRmse,
            Self::Values { .. } if higher_is_better => Metric::R2,
            Self::Values { .. } => Metric::Rmse,
        })
    }
}

/// Reads the outcome of a task; the error says what could not be made out.
pub(crate) fn read(
    task: &TaskContext,
    train: &Table,
    test: &Table,
    sample: &Table,
    id: &str,
    metric: Option<Metric>,
) -> Result<Outcome, String> {
    let wanted: Vec<&String> = sample.columns.iter().filter(|column| *column != id).collect();
    let first = wanted.first().ok_or("its sample submission has only the id column")?;
    if let Some(ranking) = ranking(task, train, test, sample, id, first) {
        return Ok(Outcome::Ranking(ranking));
    }
    if metric == Some(Metric::ConcordanceIndex) {
        let known: Vec<_> = task.target_columns.iter().filter(|column| train.has(column)).collect();
        if let [duration, event, ..] = known.as_slice() {
            return Ok(Outcome::Risk {
                duration: (*duration).clone(),
                event: (*event).clone(),
                column: (*first).clone(),
            });
        }
    }
    let named: Vec<String> = task
        .target_columns
        .iter()
        .filter(|column| train.has(column))
        .cloned()
        .collect();
    let in_sample: Vec<String> = wanted
        .iter()
        .filter(|column| train.has(column))
        .map(|column| (*column).clone())
        .collect();
    if wanted.len() > 1 && in_sample.len() == wanted.len() {
        return Ok(values(train, in_sample));
    }
    if wanted.len() > 1 {
        let candidates = named
            .iter()
            .chain(train.columns.iter().rev().filter(|column| !test.has(column)));
        for target in candidates {
            if let Some(columns) = class_columns(train, target, &wanted) {
                return Ok(Outcome::Classes {
                    target: target.clone(),
                    columns,
                });
            }
        }
        return Err(format!(
            "no column of train.csv has the classes {} that its sample submission wants",
            wanted
                .iter()
                .map(|column| column.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    let target = in_sample
        .first()
        .or(named.first())
        .or_else(|| train.columns.iter().rev().find(|column| !test.has(column)))
        .ok_or("train.csv has no column that test.csv lacks, so there is nothing to predict")?
        .clone();
    Ok(single(task, train, target, metric))
}

fn single(task: &TaskContext, train: &Table, target: String, metric: Option<Metric>) -> Outcome {
    let classes = classes(train, &target);
    let is_text = classes.iter().any(|class| !class.bare);
    let labels = metric.is_some_and(Metric::wants_labels);
    let probabilities = metric.is_some_and(Metric::wants_probabilities);
    let few = (2..=MOST_CLASSES).contains(&classes.len());
    if let ([first, second], true) = (classes.as_slice(), probabilities || (is_text && !labels)) {
        let (negative, positive) = match positive(task, first, second) {
            class if class == first => (second, first),
            _ => (first, second),
        };
        return Outcome::Probability {
            target,
            positive: positive.clone(),
            negative: negative.clone(),
        };
    }
    if few && (labels || is_text) {
        let positive = match classes.as_slice() {
            [first, second] => Some(positive(task, first, second).clone()),
            _ => None,
        };
        return Outcome::Label {
            target,
            classes,
            positive,
        };
    }
    values(train, vec![target])
}

fn values(train: &Table, targets: Vec<String>) -> Outcome {
    let mut low = f64::INFINITY;
    let mut high = f64::NEG_INFINITY;
    let mut skewed = false;
    for target in &targets {
        let mut numbers: Vec<f64> = train
            .values(target)
            .filter_map(|value| value.trim().parse().ok())
            .collect();
        numbers.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            numbers
                .get((share * numbers.len() as f64) as usize)
                .copied()
                .unwrap_or(0.0)
        };
        low = low.min(numbers.first().copied().unwrap_or(0.0));
        high = high.max(numbers.last().copied().unwrap_or(0.0));
        skewed |= at(0.98) - at(0.5) > 1.6 * (at(0.5) - at(0.02));
    }
    Outcome::Values {
        targets,
        low,
        high,
        skewed,
    }
}

/// The distinct values of a column, in the order of scikit-learn's `classes_`.
fn classes(train: &Table, target: &str) -> Vec<ClassLabel> {
    let texts: BTreeSet<&str> = train.values(target).collect();
    let numeric = texts.iter().all(|text| text.trim().parse::<f64>().is_ok());
    let boolean = texts
        .iter()
        .all(|text| ["True", "False", "TRUE", "FALSE", "true", "false"].contains(text));
    let mut classes: Vec<ClassLabel> = texts
        .into_iter()
        .take(MOST_CLASSES + 1)
        .map(|text| ClassLabel {
            text: text.to_owned(),
            bare: numeric || boolean,
        })
        .collect();
    if numeric {
        let value = |class: &ClassLabel| class.text.trim().parse().unwrap_or(f64::NAN);
        classes.sort_by(|a, b| value(a).total_cmp(&value(b)));
        classes.dedup_by(|a, b| value(a).total_cmp(&value(b)).is_eq());
    }
    classes
}

/// The class of two whose probability is asked for: the one the description quotes where it speaks of the probability, else
/// the one that reads like a yes, else the second.
fn positive<'a>(task: &TaskContext, first: &'a ClassLabel, second: &'a ClassLabel) -> &'a ClassLabel {
    let description = &task.description;
    for sentence in description.split_inclusive(['.', '\n']).filter(|sentence| {
        let sentence = sentence.to_lowercase();
        sentence.contains("probab") || sentence.contains("positive") || sentence.contains("likel")
    }) {
        let quotes = |class: &ClassLabel| {
            ['\'', '"', '`', '*']
                .iter()
                .any(|mark| sentence.contains(&format!("{mark}{}{mark}", class.text)))
        };
        match (quotes(first), quotes(second)) {
            (true, false) => return first,
            (false, true) => return second,
            _ => {}
        }
    }
    let affirms = |class: &ClassLabel| {
        let text = class.text.to_lowercase();
        [
            "1", "1.0", "true", "yes", "y", "positive", "pos", "bad", "fraud", "default", "churn", "dead", "spam",
        ]
        .contains(&text.as_str())
    };
    if affirms(first) && !affirms(second) {
        first
    } else {
        second
    }
}

/// Matches each probability column of the submission with a class of the target.
fn class_columns(train: &Table, target: &str, wanted: &[&String]) -> Option<Vec<(ClassLabel, String)>> {
    let classes = classes(train, target);
    if classes.len() > wanted.len() {
        return None;
    }
    let mut columns = Vec::new();
    for class in classes {
        let names = |column: &str| {
            column == class.text
                || column
                    .strip_suffix(&class.text)
                    .is_some_and(|prefix| prefix.ends_with(['_', '-', ' ', '.']))
        };
        let column = wanted.iter().find(|column| names(column))?;
        columns.push((class, (*column).clone()));
    }
    (columns.len() >= 2).then_some(columns)
}

fn ranking(task: &TaskContext, train: &Table, test: &Table, sample: &Table, id: &str, column: &str) -> Option<Ranking> {
    if !train.has(id) {
        return None;
    }
    let lists: Vec<Vec<&str>> = sample
        .values(column)
        .take(50)
        .map(|list| list.split_whitespace().collect())
        .collect();
    let length = lists.iter().map(Vec::len).max()?;
    let users: HashSet<&str> = train.values(id).collect();
    if length < 2 || users.len() * 2 > train.rows_read() {
        return None;
    }
    let listed: HashSet<&str> = lists.into_iter().flatten().collect();
    let only_train: Vec<&String> = train
        .columns
        .iter()
        .filter(|name| *name != id && !test.has(name))
        .collect();
    let item = only_train.iter().find(|name| {
        let known: HashSet<&str> = train.values(name).collect();
        listed.iter().filter(|item| known.contains(*item)).count() * 2 > listed.len()
    })?;
    let time = only_train.iter().find(|name| {
        let lower = name.to_lowercase();
        ["time", "date", "order", "step"]
            .iter()
            .any(|word| lower.contains(word))
    });
    Some(Ranking {
        user: id.to_owned(),
        item: (*item).clone(),
        time: time.map(|name| (*name).clone()),
        column: column.to_owned(),
        length,
        held_back: held_back(&task.description),
    })
}

/// How many items of each user the description says were held back.
fn held_back(description: &str) -> usize {
    const NUMBERS: [&str; 10] = [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    ];
    const USUAL: usize = 5;
    let words: Vec<String> = description
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .collect();
    words
        .windows(2)
        .filter(|pair| pair[0] == "last")
        .find_map(|pair| {
            let spelled = NUMBERS.iter().position(|number| *number == pair[1]).map(|at| at + 1);
            spelled.or_else(|| pair[1].parse().ok())
        })
        .filter(|count| (1..=50).contains(count))
        .unwrap_or(USUAL)
}
