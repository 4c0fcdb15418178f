//! What a task asks for, read from its public files.

mod assets;
mod columns;
mod outcome;
mod table;

use std::collections::HashSet;
use std::path::PathBuf;

pub(crate) use assets::{Images, Series};
pub(crate) use columns::{DateLayout, Kind};
pub(crate) use outcome::{Outcome, Ranking};

use self::columns::{continues, is_group, kind};
pub(crate) use self::table::Format;
use self::table::Table;
use super::Evolver;
use super::metric::Metric;
use crate::model::error::ModelError;
use crate::model::request::TaskContext;

/// Names of the three tables of a task.
pub(crate) const TRAIN: &str = "train.csv";
pub(crate) const TEST: &str = "test.csv";
pub(crate) const SAMPLE: &str = "sample_submission.csv";

/// Dates that order the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeColumn {
    /// Column name.
    pub(crate) name: String,
    /// How its dates are written.
    pub(crate) layout: DateLayout,
}

/// A series of one value to continue: the test rows have a date and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forecast {
    /// The date column.
    pub(crate) time: TimeColumn,
    /// Lags, in steps of the series, that reach back over the whole horizon.
    pub(crate) lags: Vec<u32>,
    /// Pandas offset of one step.
    pub(crate) step: &'static str,
    /// True when even the first fold of a validation sees years enough for a mean of the latest known year.
    pub(crate) several_years: bool,
}

impl Forecast {
    /// Folds of a validation.
    pub(crate) const FOLDS: u32 = 3;
}

/// Everything the grammar needs to know of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskProfile {
    /// Task id.
    pub(crate) task_id: String,
    /// Column that names a row of the submission.
    pub(crate) id: String,
    /// All columns of the submission.
    pub(crate) submission: Vec<String>,
    /// What is to be predicted.
    pub(crate) outcome: Outcome,
    /// The metric.
    pub(crate) metric: Metric,
    /// Direction of the metric.
    pub(crate) higher_is_better: bool,
    /// Training rows.
    pub(crate) rows: usize,
    /// Test rows.
    pub(crate) test_rows: usize,
    /// Numeric feature columns.
    pub(crate) numeric: Vec<String>,
    /// Feature columns of few categories.
    pub(crate) low: Vec<String>,
    /// Feature columns of many categories.
    pub(crate) high: Vec<String>,
    /// Free text columns and their mean length in characters.
    pub(crate) text: Vec<String>,
    /// Mean characters of all text columns of a row.
    pub(crate) text_length: f64,
    /// Date columns that are features.
    pub(crate) dates: Vec<TimeColumn>,
    /// True when a numeric column has missing values.
    pub(crate) missing: bool,
    /// True when a target has missing values.
    pub(crate) missing_targets: bool,
    /// True when training rows repeat, ids included.
    pub(crate) repeated_rows: bool,
    /// Column whose values are apart between training and test rows.
    pub(crate) group: Option<String>,
    /// Dates, when the test rows lie after the training rows.
    pub(crate) time_order: Option<TimeColumn>,
    /// Set when the task is to continue a series.
    pub(crate) forecast: Option<Forecast>,
    /// Pictures.
    pub(crate) images: Option<Images>,
    /// Series.
    pub(crate) series: Option<Series>,
    /// How the training table, the test table and the sample submission are written.
    pub(crate) formats: [Format; 3],
    /// Longest a program may run.
    pub(crate) time_limit_seconds: u64,
}

impl TaskProfile {
    /// Reads the public files of a task.
    pub(crate) fn read(task: &TaskContext) -> Result<Self, ModelError> {
        let table = |name: &str| {
            let path = task.public_dir.join(name);
            Table::read(&path).map_err(|error| ModelError::TaskFile {
                task: task.task_id.clone(),
                path,
                reason: error.to_string(),
            })
        };
        let (train, test, sample) = (table(TRAIN)?, table(TEST)?, table(SAMPLE)?);
        let unsupported = |reason: &str| ModelError::UnsupportedTask {
            model: Evolver::NAME.to_owned(),
            task: task.task_id.clone(),
            reason: reason.to_owned(),
        };
        let id = task
            .id_column
            .clone()
            .filter(|id| sample.has(id))
            .or_else(|| sample.columns.first().cloned())
            .ok_or_else(|| unsupported("its sample submission has no columns"))?;
        let metric = metric(task);
        let outcome =
            outcome::read(task, &train, &test, &sample, &id, metric).map_err(|reason| unsupported(&reason))?;
        let metric = outcome.own_metric(metric, task.higher_is_better);

        let files = assets::files(&task.public_dir);
        let shared: Vec<&str> = train
            .columns
            .iter()
            .filter(|column| test.has(column) && !outcome.targets().contains(&column.as_str()))
            .map(String::as_str)
            .collect();
        let named: Vec<_> = shared
            .iter()
            .map(|column| (*column, train.values(column).next()))
            .collect();
        let images = assets::images(&task.public_dir, &files, &named);
        let series = match images {
            Some(_) => None,
            None => assets::series(&task.public_dir, &files, &named, &id, &[TRAIN, TEST, SAMPLE]),
        };
        let names_files = |column: &str| match (&images, &series) {
            (Some(images), _) => images.column == column,
            (_, Some(Series::Arrays { column: named, .. })) => named == column,
            _ => false,
        };

        let mut profile = Self {
            task_id: task.task_id.clone(),
            submission: sample.columns.clone(),
            metric,
            higher_is_better: task.higher_is_better,
            rows: train.row_count,
            test_rows: test.row_count,
            numeric: Vec::new(),
            low: Vec::new(),
            high: Vec::new(),
            text: Vec::new(),
            text_length: 0.0,
            dates: Vec::new(),
            missing: !train.complete,
            repeated_rows: train.repeats_rows(),
            missing_targets: outcome
                .targets()
                .iter()
                .any(|target| train.values(target).count() < train.rows_read()),
            group: None,
            time_order: None,
            forecast: None,
            formats: [train.format, test.format, sample.format],
            time_limit_seconds: task.time_limit_seconds,
            images: images.clone(),
            series: series.clone(),
            outcome,
            id,
        };
        for column in shared {
            if names_files(column) {
                continue;
            }
            let is_id = column == profile.id;
            match kind(&train, column) {
                Kind::Date(layout) => {
                    profile.missing |= has_gaps(&train, &test, column);
                    profile.dates.push(TimeColumn {
                        name: column.to_owned(),
                        layout,
                    });
                }
                _ if is_id => {}
                kind => profile.add(&train, &test, column, kind),
            }
        }
        profile.find_time(&train, &test, &task.description);
        let has_features = !profile.numeric.is_empty()
            || !profile.low.is_empty()
            || !profile.high.is_empty()
            || !profile.text.is_empty()
            || !profile.dates.is_empty()
            || profile.images.is_some()
            || profile.series.is_some()
            || profile.forecast.is_some()
            || matches!(profile.outcome, Outcome::Ranking(_));
        if !has_features {
            return Err(unsupported(
                "train.csv and test.csv share no usable column, and no picture or series files were found",
            ));
        }
        Ok(profile)
    }

    fn add(&mut self, train: &Table, test: &Table, column: &str, kind: Kind) {
        let name = column.to_owned();
        if kind != Kind::Text && self.group.is_none() && is_group(train, test, column) {
            self.group = Some(name);
            return;
        }
        match kind {
            Kind::Numeric => {
                self.missing |=
                    train.values(column).count() < train.rows_read() || test.values(column).count() < test.rows_read();
                self.numeric.push(name);
            }
            Kind::LowCardinality => self.low.push(name),
            Kind::HighCardinality => self.high.push(name),
            Kind::Text => {
                let (count, letters) = train
                    .values(column)
                    .fold((0, 0), |(n, sum), text| (n + 1, sum + text.len()));
                self.text_length += letters as f64 / f64::from(count.max(1));
                self.text.push(name);
            }
            Kind::Date(_) | Kind::Useless => {}
        }
    }

    /// Finds out whether time orders the rows, and whether the task is to continue a series.
    fn find_time(&mut self, train: &Table, test: &Table, description: &str) {
        let description = description.to_lowercase();
        let told = ["split is by time", "time-ordered", "ordered by time", "chronological"]
            .iter()
            .any(|words| description.contains(words));
        let keys = |table: &Table, time: &TimeColumn| -> Vec<String> {
            table
                .values(&time.name)
                .filter_map(|value| time.layout.key(value))
                .collect()
        };
        for time in self.dates.clone() {
            let before = keys(train, &time);
            let after = keys(test, &time);
            let apart = train.complete && before.iter().max() <= after.iter().min() && !after.is_empty();
            let alone = self.numeric.is_empty()
                && self.low.is_empty()
                && self.high.is_empty()
                && self.text.is_empty()
                && self.images.is_none()
                && self.series.is_none()
                && self.dates.len() == 1
                && matches!(&self.outcome, Outcome::Values { targets, .. } if targets.len() == 1);
            if alone && before.iter().collect::<HashSet<_>>().len() == train.rows_read() {
                self.forecast = forecast(&time, &before, self.test_rows);
            }
            if apart || told || self.forecast.is_some() {
                self.time_order = Some(time);
                break;
            }
        }
        if self.time_order.is_some() {
            // A number that only grows with time says nothing of the test rows but how late they are.
            self.numeric.retain(|column| !continues(train, test, column));
        }
        let id = self.id.clone();
        self.dates.retain(|time| time.name != id);
    }

    /// Numeric columns that come from pictures or series, or from dates, are counted too.
    pub(crate) fn dense_only(&self) -> bool {
        self.low.is_empty() && self.high.is_empty() && self.text.is_empty() && self.forecast.is_none()
    }

    /// Whether the target is one column, so that features can be encoded or chosen by it.
    pub(crate) fn has_one_target(&self) -> bool {
        !matches!(&self.outcome, Outcome::Values { targets, .. } if targets.len() > 1)
    }

    /// Number of values predicted a row.
    pub(crate) fn outputs(&self) -> usize {
        match &self.outcome {
            Outcome::Values { targets, .. } => targets.len(),
            Outcome::Label { classes, .. } => classes.len(),
            Outcome::Classes { columns, .. } => columns.len(),
            Outcome::Probability { .. } | Outcome::Risk { .. } | Outcome::Ranking(_) => 1,
        }
    }

    /// Whether members predict classes.
    pub(crate) fn classifies(&self) -> bool {
        matches!(
            self.outcome,
            Outcome::Label { .. } | Outcome::Classes { .. } | Outcome::Probability { .. }
        )
    }
}

fn has_gaps(train: &Table, test: &Table, column: &str) -> bool {
    [train, test]
        .iter()
        .any(|table| table.values(column).count() < table.rows_read())
}

/// The metric by its name, else by the words of the task's evaluation section.
fn metric(task: &TaskContext) -> Option<Metric> {
    Metric::recognise(&task.metric).or_else(|| {
        let evaluation = task.description.split("Evaluation").nth(1)?;
        let end = evaluation
            .char_indices()
            .nth(400)
            .map_or(evaluation.len(), |(at, _)| at);
        Metric::recognise(&evaluation[..end])
    })
}

/// The lags and season of a series whose dates are `dates`.
fn forecast(time: &TimeColumn, dates: &[String], horizon: usize) -> Option<Forecast> {
    let mut days: Vec<i64> = dates.iter().filter_map(|date| day_number(date)).collect();
    days.sort_unstable();
    days.dedup();
    let mut gaps: Vec<i64> = days.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let gap = *gaps.get(gaps.len() / 2)?;
    let (season, year, step) = match gap {
        ..=3 => (7_u32, 364_u32, "D"),
        4..=13 => (52, 52, "W"),
        14..=45 => (12, 12, "MS"),
        46..=200 => (4, 4, "QS"),
        _ => return None,
    };
    let years = (horizon as u32).div_ceil(year + season).max(1);
    let mut lags: Vec<u32> = if season == 7 {
        vec![364, 371, 728, 735, 1092]
    } else {
        (1..=3).map(|back| back * year).collect()
    };
    for lag in &mut lags {
        *lag += (years - 1) * year;
    }
    // The first of the validation's folds must still see what each feature looks back to.
    let steps = dates.len();
    let least = steps.saturating_sub(Forecast::FOLDS as usize * horizon.min(steps / (Forecast::FOLDS as usize + 1)));
    lags.retain(|lag| f64::from(*lag) <= 0.6 * least as f64);
    Some(Forecast {
        time: time.clone(),
        lags,
        step,
        several_years: least >= ((2 + years) * year) as usize,
    })
}

/// Days since the start of the common era of a date that starts as `2001-12-31`.
fn day_number(date: &str) -> Option<i64> {
    let mut parts = date.get(..10)?.split('-').map(|part| part.parse::<i64>());
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let (year, month) = if month <= 2 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    Some(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day)
}

/// Where a task's files were read, to keep one profile a folder.
pub(crate) fn cache_key(task: &TaskContext) -> (String, PathBuf, String, bool) {
    (
        task.task_id.clone(),
        task.public_dir.clone(),
        task.metric.clone(),
        task.higher_is_better,
    )
}
