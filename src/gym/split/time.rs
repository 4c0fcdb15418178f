//! Times in tables: which columns hold them, in which format.

use std::borrow::Cow;

use chrono::NaiveDate;

/// Formats of a date, tried in this order; the first that fits (nearly) all values is the column's.
const DATE_FORMATS: [&str; 18] = [
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%Y%m%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d.%m.%y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d-%b-%Y",
    "%d %b %Y",
    "%b %d, %Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%d-%b-%y",
];
/// Formats of a month, which stands for its first day.
const MONTH_FORMATS: [&str; 4] = ["%Y-%m", "%b-%Y", "%b %Y", "%B %Y"];
/// Share of the values that must fit a format.
const FIT: f64 = 0.99;

/// Words that name a time when they are a part of a column's name.
const TIME_WORDS: [&str; 15] = [
    "date",
    "datetime",
    "time",
    "timestamp",
    "ts",
    "year",
    "yr",
    "month",
    "week",
    "day",
    "quarter",
    "season",
    "period",
    "epoch",
    "hour",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Date(&'static str),
    Month(&'static str),
    Number,
}

/// Times of the values of two tables in one common format, as sortable numbers; `None` for a missing value.
pub type Times = (Vec<Option<f64>>, Vec<Option<f64>>);

/// Reads two columns as times, if they hold times in one format. Plain numbers are times only in a column with a time's name.
pub fn read_times(name: &str, train: &[Cow<'_, str>], test: &[Cow<'_, str>]) -> Option<Times> {
    let named = is_time_name(name);
    let formats = DATE_FORMATS
        .iter()
        // Eight digits are a date only where the name says so.
        .filter(|f| **f != "%Y%m%d" || named)
        .map(|f| Format::Date(f))
        .chain(MONTH_FORMATS.iter().map(|f| Format::Month(f)))
        .chain(named.then_some(Format::Number));
    let head = |values: &'_ [Cow<'_, str>]| {
        values
            .iter()
            .filter(|v| !is_missing(v))
            .take(64)
            .map(|v| v.to_string())
            .collect::<Vec<_>>()
    };
    let sample: Vec<String> = head(train).into_iter().chain(head(test)).collect();
    if sample.is_empty() {
        return None;
    }
    for format in formats {
        let good = sample.iter().filter(|v| parse(v, format).is_some()).count();
        if (good as f64) < FIT * sample.len() as f64 {
            continue;
        }
        if let (Some(train), Some(test)) = (read_all(train, format), read_all(test, format)) {
            return Some((train, test));
        }
    }
    None
}

/// Reads a column as numbers or times for sorting, whatever its name.
pub fn read_order(values: &[Cow<'_, str>]) -> Option<Vec<Option<f64>>> {
    read_all(values, Format::Number).or_else(|| read_times("date", values, values).map(|(times, _)| times))
}

/// Whether a column's name says that it holds a time.
pub fn is_time_name(name: &str) -> bool {
    words(name).iter().any(|w| TIME_WORDS.contains(&w.as_str()))
}

/// Lower-case words of a name, cut at punctuation and at capitals.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            words.push(String::new());
        } else {
            if c.is_uppercase() && before_lower {
                words.push(String::new());
            }
            if let Some(last) = words.last_mut() {
                last.extend(c.to_lowercase());
            }
        }
        before_lower = c.is_lowercase();
    }
    words.retain(|w| !w.is_empty());
    words
}

pub(super) fn is_missing(value: &str) -> bool {
    matches!(
        value.trim(),
        "" | "NA" | "NaN" | "nan" | "null" | "NULL" | "None" | "N/A"
    )
}

fn read_all(values: &[Cow<'_, str>], format: Format) -> Option<Vec<Option<f64>>> {
    let mut present = 0_usize;
    let mut bad = 0_usize;
    let times = values
        .iter()
        .map(|v| {
            if is_missing(v) {
                return None;
            }
            present += 1;
            let time = parse(v, format);
            bad += usize::from(time.is_none());
            time
        })
        .collect();
    (present > 0 && bad as f64 <= (1.0 - FIT) * present as f64).then_some(times)
}

fn parse(value: &str, format: Format) -> Option<f64> {
    let value = value.trim();
    match format {
        Format::Number => value.parse::<f64>().ok().filter(|v| v.is_finite()),
        Format::Date(format) => {
            let (date, time) = split_clock(value);
            let digits = date.chars().filter(char::is_ascii_digit).count();
            // Years are taken with any number of digits: 1.2.3 or 12345-01-01 are no dates.
            let short_year = format.ends_with("%y");
            let two_digits = date.len() >= 2 && date.bytes().rev().take(2).all(|b| b.is_ascii_digit());
            if short_year && !two_digits || !short_year && !(5..=8).contains(&digits) {
                return None;
            }
            let day = NaiveDate::parse_from_str(date, format).ok()?;
            let seconds = if time.is_empty() { 0.0 } else { clock_seconds(time)? };
            Some(day_seconds(day)? + seconds)
        }
        Format::Month(format) => {
            day_seconds(NaiveDate::parse_from_str(&format!("{value} 01"), &format!("{format} %d")).ok()?)
        }
    }
}

fn day_seconds(day: NaiveDate) -> Option<f64> {
    Some(day.and_hms_opt(0, 0, 0)?.and_utc().timestamp() as f64)
}

/// Cuts `2020-01-31T10:00:00Z` or `31.01.2020 10:00` into date and clock.
fn split_clock(value: &str) -> (&str, &str) {
    let Some(colon) = value.find(':') else {
        return (value, "");
    };
    match value[..colon].rfind(['T', ' ']) {
        Some(at) => (value[..at].trim_end(), value[at + 1..].trim()),
        None => (value, ""),
    }
}

/// Seconds of a clock `10:00[:00[.5]][ PM][Z|+02:00]`, as universal time when it has an offset.
fn clock_seconds(text: &str) -> Option<f64> {
    let upper = text.to_ascii_uppercase();
    let (clock, half) = match (upper.strip_suffix("AM"), upper.strip_suffix("PM")) {
        (Some(clock), _) => (clock.trim(), Some(0.0)),
        (_, Some(clock)) => (clock.trim(), Some(12.0)),
        _ => (upper.as_str(), None),
    };
    let clock = clock.strip_suffix("UTC").map_or(clock, str::trim);
    let (clock, offset) = match (clock.strip_suffix('Z'), clock.rfind(['+', '-'])) {
        (Some(clock), _) => (clock, 0.0),
        (None, Some(at)) => (&clock[..at], offset_seconds(&clock[at..])?),
        (None, None) => (clock, 0.0),
    };
    let mut parts = clock.trim().split(':');
    let mut hour: f64 = parts.next()?.parse().ok()?;
    let minute: f64 = parts.next()?.parse().ok()?;
    let second: f64 = parts.next().map_or(Some(0.0), |s| s.parse().ok())?;
    if let Some(half) = half {
        hour = hour % 12.0 + half;
    }
    Some(hour * 3600.0 + minute * 60.0 + second - offset)
}

fn offset_seconds(text: &str) -> Option<f64> {
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let hours: f64 = digits.get(..2)?.parse().ok()?;
    let minutes: f64 = digits.get(2..4).map_or(Some(0.0), |m| m.parse().ok())?;
    Some(sign * (hours * 3600.0 + minutes * 60.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn times(name: &str, values: &[&str]) -> Option<Vec<Option<f64>>> {
        let cells: Vec<Cow<'_, str>> = values.iter().map(|v| Cow::Borrowed(*v)).collect();
        read_times(name, &cells, &cells).map(|(t, _)| t)
    }

    #[test]
    fn formats() {
        let day = 86400.0;
        for (a, b, gap) in [
            ("2020-01-31", "2020-02-01", day),
            ("24.08.1963", "25.08.1963", day),
            ("31/01/2020", "01/02/2020", day),
            ("01/31/2020", "02/01/2020", day),
            ("2020-01-31 10:00:00", "2020-01-31 10:00:01.5", 1.5),
            ("2020-01-31T10:00:00Z", "2020-01-31T10:00:00+01:00", -3600.0),
            ("1/31/2020 1:00 AM", "1/31/2020 1:00 PM", 43200.0),
            ("Jan-2018", "Feb-2018", 31.0 * day),
            ("2018-01", "2018-02", 31.0 * day),
            ("5 Mar 2019", "6 Mar 2019", day),
        ] {
            let t = times("x", &[a, b]).unwrap_or_else(|| panic!("{a}"));
            assert_eq!(t[1].unwrap() - t[0].unwrap(), gap, "{a} {b}");
        }
    }

    #[test]
    fn numbers_are_times_only_by_name() {
        assert!(times("Year", &["1963", "1964"]).is_some());
        assert!(times("pickup_time", &["1260759108", "1260759113"]).is_some());
        assert!(times("saleDate", &["20200131", "20200201"]).is_some());
        assert!(times("area", &["1963", "1964"]).is_none());
        assert!(times("code", &["20200131", "20200201"]).is_none());
        assert!(times("version", &["1.2.3", "1.2.4"]).is_none());
        assert!(times("years", &["3", "4"]).is_none());
        assert!(times("name", &["a", "b"]).is_none());
    }

    #[test]
    fn missing_values_stay_missing() {
        assert_eq!(
            times("Date", &["", "01.02.2000", "NA"])
                .unwrap()
                .iter()
                .filter(|t| t.is_none())
                .count(),
            2
        );
    }
}
