//! Statistics of columns, from their values as text.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use super::{ColumnOverview, FIRST_COLUMNS, LAST_COLUMNS, NAME_CHARS, SAMPLE_CHARS, line};

/// Different values that are counted.
const MOST_DISTINCT: usize = 10_000;
/// Samples of a column; one with few values shows all of them.
const SAMPLES: usize = 3;
const FEW_VALUES: usize = 8;
/// A text of more characters on average is a long one.
const LONG_TEXT: f64 = 100.0;

/// Texts that stand for a missing value.
const MISSING: [&str; 8] = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"];

/// What the values of a column can all be read as.
#[derive(Debug, Clone, Copy)]
struct Readings {
    integer: bool,
    number: bool,
    boolean: bool,
    date: bool,
}

/// A column as its values come in.
#[derive(Debug)]
pub(super) struct ColumnStats {
    name: String,
    readings: Readings,
    /// list or object, as soon as a value is one.
    nested: Option<&'static str>,
    rows: u64,
    missing: u64,
    chars: u64,
    minimum: f64,
    maximum: f64,
    first: Option<String>,
    last: Option<String>,
    hasher: RandomState,
    distinct: HashSet<u64>,
    samples: Vec<String>,
}

impl ColumnStats {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: line(name, NAME_CHARS),
            readings: Readings {
                integer: true,
                number: true,
                boolean: true,
                date: true,
            },
            nested: None,
            rows: 0,
            missing: 0,
            chars: 0,
            minimum: f64::INFINITY,
            maximum: f64::NEG_INFINITY,
            first: None,
            last: None,
            hasher: RandomState::new(),
            distinct: HashSet::new(),
            samples: Vec::new(),
        }
    }

    /// Takes the value of a row.
    pub(super) fn add(&mut self, value: &str) {
        self.rows += 1;
        let value = value.trim();
        if MISSING.contains(&value) {
            self.missing += 1;
            return;
        }
        self.chars += value.len() as u64;
        let readings = &mut self.readings;
        if readings.number {
            match value.parse::<f64>() {
                Ok(number) if number.is_finite() => {
                    self.minimum = self.minimum.min(number);
                    self.maximum = self.maximum.max(number);
                }
                _ => readings.number = false,
            }
        }
        readings.integer = readings.integer && value.parse::<i64>().is_ok();
        readings.boolean = readings.boolean && ["true", "false"].contains(&value.to_ascii_lowercase().as_str());
        readings.date = readings.date && is_date(value);
        if readings.date {
            // Dates that begin with the year sort as texts.
            if self.first.as_deref().is_none_or(|first| value < first) {
                self.first = Some(value.to_owned());
            }
            if self.last.as_deref().is_none_or(|last| value > last) {
                self.last = Some(value.to_owned());
            }
        }
        if self.distinct.len() <= MOST_DISTINCT
            && self.distinct.insert(self.hasher.hash_one(value))
            && self.samples.len() < FEW_VALUES
        {
            self.samples.push(line(value, SAMPLE_CHARS));
        }
    }

    /// Takes a value that is a list or an object.
    pub(super) fn add_nested(&mut self, kind: &'static str, text: &str) {
        self.nested = Some(kind);
        self.add(text);
    }

    /// Counts rows in which the column did not occur.
    pub(super) fn fill(&mut self, rows: u64) {
        let lacking = rows.saturating_sub(self.rows);
        self.missing += lacking;
        self.rows += lacking;
    }

    pub(super) fn finish(mut self) -> ColumnOverview {
        let values = self.rows - self.missing;
        let is_number = self.readings.number && values > 0 && self.nested.is_none();
        let kind = match self.readings {
            _ if self.nested.is_some() => self.nested.unwrap_or_default(),
            _ if values == 0 => "empty",
            Readings { integer: true, .. } => "integer",
            Readings { number: true, .. } => "number",
            Readings { boolean: true, .. } => "boolean",
            Readings { date: true, .. } => "date",
            _ if self.chars as f64 / values as f64 > LONG_TEXT => "long text",
            _ => "text",
        };
        let distinct = (self.distinct.len() <= MOST_DISTINCT).then_some(self.distinct.len() as i64);
        if self.distinct.len() > FEW_VALUES {
            self.samples.truncate(SAMPLES);
        }
        let year_first = |value: &String| value.as_bytes().iter().take_while(|byte| byte.is_ascii_digit()).count() == 4;
        let is_range = kind == "date" && self.first.iter().chain(&self.last).all(year_first);
        let range = |number_text: String, date: Option<String>| match (is_number, is_range) {
            (true, _) => Some(number_text),
            (_, true) => date.map(|date| line(&date, SAMPLE_CHARS)),
            _ => None,
        };
        ColumnOverview {
            name: self.name,
            kind: kind.to_owned(),
            missing: (self.rows > 0).then(|| self.missing as f64 / self.rows as f64),
            distinct,
            minimum: range(number(self.minimum), self.first),
            maximum: range(number(self.maximum), self.last),
            samples: self.samples,
        }
    }
}

/// The columns that are described, and how many are not.
pub(super) fn described<T>(mut columns: Vec<T>) -> (Vec<T>, i64) {
    if columns.len() <= FIRST_COLUMNS + LAST_COLUMNS {
        return (columns, 0);
    }
    let left_out = columns.len() - FIRST_COLUMNS - LAST_COLUMNS;
    columns.drain(FIRST_COLUMNS..FIRST_COLUMNS + left_out);
    (columns, left_out as i64)
}

/// A number as short as it can be written at six digits.
fn number(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    format!("{rounded}")
}

/// `2024-05-01`, with or without a time of day, or `01/05/2024`.
fn is_date(value: &str) -> bool {
    let day = value.split([' ', 'T']).next().unwrap_or_default();
    let parts: Vec<&str> = day.split(['-', '/', '.']).collect();
    let digits = |part: &&str| !part.is_empty() && part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(digits) && parts.iter().any(|part| part.len() == 4)
}
