//! Durations in options: seconds as a number, or a number with a unit as text.

use std::time::Duration;

/// Units, the longest first so that writing picks the shortest form.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("min", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// Longest duration that is taken: ten years.
const LONGEST_SECONDS: f64 = 315_360_000.0;

/// Read `30`, `30 s`, `1.5 h`, `250 ms`, `2 min`, `1 d`; a bare number is seconds.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let split = text
        .find(|character: char| character.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let milliseconds = match unit.trim() {
        "" => 1_000,
        unit => UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1,
    };
    let seconds = number.trim().parse::<f64>().ok()? * milliseconds as f64 / 1_000.0;
    (0.0..=LONGEST_SECONDS)
        .contains(&seconds)
        .then(|| Duration::from_millis((seconds * 1_000.0).round() as u64))
}

/// Reads a duration above nothing, as the command line takes it.
///
/// # Errors
/// When the text is none.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    parse(text)
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "a time such as 90s, '10 min' or '1.5 h' is wanted; a bare number is seconds".to_owned())
}

/// Write a duration in its largest unit that divides it, to the millisecond.
pub(super) fn format(duration: Duration) -> String {
    let total = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    UNITS
        .iter()
        .find(|(_, size)| total > 0 && total.is_multiple_of(*size))
        .map_or_else(|| "0 s".to_owned(), |(name, size)| format!("{} {name}", total / size))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn units_and_bare_seconds() {
        for (text, milliseconds) in [
            ("30", 30_000),
            ("30 s", 30_000),
            ("1.5h", 5_400_000),
            ("250 ms", 250),
            ("2 min", 120_000),
            ("1 D", 86_400_000),
        ] {
            assert_eq!(parse(text).unwrap(), Duration::from_millis(milliseconds), "{text}");
        }
        for text in ["", "s", "-1 s", "nan", "1 week", "1 s s", "1e300", "inf"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn writing_and_reading_agree() {
        for milliseconds in [0, 1, 999, 1_000, 90_000, 3_600_000, 86_400_000, 86_400_001] {
            let duration = Duration::from_millis(milliseconds);
            assert_eq!(parse(&format(duration)), Some(duration));
        }
    }
}
