//! What kind of values a column holds.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use super::table::Table;

/// Categories of at most this many values are few.
const FEW: usize = 15;
/// Values looked at to tell numbers from dates and words.
const LOOKED_AT: usize = 2_000;

/// Kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Numbers.
    Numeric,
    /// Few categories.
    LowCardinality,
    /// Many categories.
    HighCardinality,
    /// Words in sentences.
    Text,
    /// Dates in a known layout.
    Date(DateLayout),
    /// Nothing a model can use: empty, constant, or a name for each row.
    Useless,
}

/// Layout of a date column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DateLayout {
    /// `2001-12-31`, perhaps with a time.
    Iso,
    /// `31.12.2001`
    DayDots,
    /// `31/12/2001`
    DaySlashes,
    /// `12/31/2001`
    MonthSlashes,
}

static ISO: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(\d{4})-(\d{2})-(\d{2})(?:[T ](.*))?$").ok());
static THREE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(\d{1,2})([./])(\d{1,2})[./](\d{4})$").ok());

impl DateLayout {
    /// The `format` argument of `pd.to_datetime`.
    pub(crate) fn pandas(self) -> &'static str {
        match self {
            Self::Iso => "ISO8601",
            Self::DayDots => "%d.%m.%Y",
            Self::DaySlashes => "%d/%m/%Y",
            Self::MonthSlashes => "%m/%d/%Y",
        }
    }

    /// A text that sorts like the date.
    pub(crate) fn key(self, value: &str) -> Option<String> {
        if self == Self::Iso {
            return ISO.as_ref()?.is_match(value).then(|| value.to_owned());
        }
        let parts = THREE.as_ref()?.captures(value)?;
        let (first, second, year) = (&parts[1], &parts[3], &parts[4]);
        let (day, month) = if self == Self::MonthSlashes {
            (second, first)
        } else {
            (first, second)
        };
        Some(format!("{year}-{month:0>2}-{day:0>2}"))
    }

    /// The layout in which all of these values are dates.
    pub(crate) fn of<'a>(values: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut candidates = vec![Self::Iso, Self::DayDots, Self::DaySlashes, Self::MonthSlashes];
        let mut any = false;
        for value in values.take(LOOKED_AT) {
            any = true;
            candidates.retain(|layout| layout.fits(value));
            if candidates.is_empty() {
                return None;
            }
        }
        candidates.first().copied().filter(|_| any)
    }

    fn fits(self, value: &str) -> bool {
        let in_range = |month: &str, day: &str| {
            month.parse().is_ok_and(|month: u32| (1..=12).contains(&month))
                && day.parse().is_ok_and(|day: u32| (1..=31).contains(&day))
        };
        if self == Self::Iso {
            let Some(parts) = ISO.as_ref().and_then(|iso| iso.captures(value)) else {
                return false;
            };
            return in_range(&parts[2], &parts[3]);
        }
        let Some(parts) = THREE.as_ref().and_then(|three| three.captures(value)) else {
            return false;
        };
        let separator = if self == Self::DayDots { "." } else { "/" };
        let (month, day) = if self == Self::MonthSlashes {
            (&parts[1], &parts[3])
        } else {
            (&parts[3], &parts[1])
        };
        &parts[2] == separator && in_range(month, day)
    }
}

/// Tells the kind of a column of the training data.
pub(crate) fn kind(train: &Table, column: &str) -> Kind {
    let mut distinct = HashSet::new();
    let (mut count, mut numeric, mut words, mut letters) = (0_usize, 0_usize, 0_usize, 0_usize);
    for value in train.values(column) {
        count += 1;
        numeric += usize::from(value.trim().parse::<f64>().is_ok());
        words += value.split_whitespace().count();
        letters += value.len();
        distinct.insert(value);
    }
    if distinct.len() < 2 {
        return Kind::Useless;
    }
    if numeric == count {
        return Kind::Numeric;
    }
    if let Some(layout) = DateLayout::of(train.values(column)) {
        return Kind::Date(layout);
    }
    let share = distinct.len() as f64 / count as f64;
    let (words, letters) = (words as f64 / count as f64, letters as f64 / count as f64);
    if share > 0.3 && (words >= 4.0 || letters >= 40.0) {
        Kind::Text
    } else if distinct.len() <= FEW {
        Kind::LowCardinality
    } else if share > 0.95 {
        Kind::Useless
    } else {
        Kind::HighCardinality
    }
}

/// Whether a column names groups that do not cross from the training to the test rows: its values repeat in the training
/// rows, none of them is in the test rows, and the two are not just two stretches of one scale.
pub(crate) fn is_group(train: &Table, test: &Table, column: &str) -> bool {
    const LEAST: usize = 20;
    let mut groups = HashSet::new();
    let mut count = 0_usize;
    for value in train.values(column) {
        count += 1;
        groups.insert(value);
    }
    let mut any = false;
    let apart = test.values(column).all(|value| {
        any = true;
        !groups.contains(value)
    });
    apart && any && groups.len() >= LEAST && count >= 2 * groups.len() && !continues(train, test, column)
}

/// Whether a numeric column has nearly all its test values outside the range of its training values.
pub(crate) fn continues(train: &Table, test: &Table, column: &str) -> bool {
    const NEARLY_ALL: f64 = 0.8;
    let numbers = |table: &Table| -> Vec<f64> {
        table
            .values(column)
            .filter_map(|value| value.trim().parse().ok())
            .collect()
    };
    let (before, after) = (numbers(train), numbers(test));
    let low = before.iter().copied().fold(f64::INFINITY, f64::min);
    let high = before.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let outside = after.iter().filter(|value| **value < low || **value > high).count();
    !after.is_empty() && outside as f64 >= NEARLY_ALL * after.len() as f64
}
