//! How templates write values.

use std::borrow::Cow;

use chrono::DateTime;
use minijinja::{Environment, Error, Output, State, Value, escape_formatter};

use crate::figures;

/// What stands where nothing is known.
const UNKNOWN: &str = "–";

/// Adds the filters, and the cleaning of texts, to an environment.
pub(super) fn register(templates: &mut Environment<'_>) {
    templates.set_formatter(format_clean);
    templates.add_filter("score", |value: Option<f64>| or_unknown(value, figures::score));
    templates.add_filter("gain", |value: Option<f64>| or_unknown(value, gain));
    templates.add_filter("sign", |value: Option<f64>| value.map_or("", sign));
    templates.add_filter("duration", |value: Option<f64>| or_unknown(value, figures::duration));
    templates.add_filter("dollars", |value: Option<f64>| or_unknown(value, dollars));
    templates.add_filter("thousands", |value: Option<i64>| or_unknown(value, figures::thousands));
    templates.add_filter("share", share);
    templates.add_filter("percent", |value: Option<f64>| or_unknown(value, percent));
    templates.add_filter("moment", |value: Option<i64>| or_unknown(value, moment));
    templates.add_filter("counted", |value: i64, thing: String| {
        format!(
            "{} {thing}{}",
            figures::thousands(value),
            if value == 1 { "" } else { "s" }
        )
    });
}

fn or_unknown<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), text)
}

/// A gain with its sign.
pub(super) fn gain(value: f64) -> String {
    match value {
        value if value > 0.0 => format!("+{}", figures::score(value)),
        value if value < 0.0 => format!("−{}", figures::score(-value)),
        _ => "±0".to_owned(),
    }
}

/// Class of a gain.
fn sign(value: f64) -> &'static str {
    match value {
        value if value > 0.0 => "up",
        value if value < 0.0 => "down",
        _ => "",
    }
}

/// US dollars; cents are enough where there are dollars, and where they are all there is.
pub(super) fn dollars(amount: f64) -> String {
    if amount < 1.0 {
        let text = figures::dollars(amount);
        text.strip_suffix("00").unwrap_or(&text).to_owned()
    } else {
        format!("${amount:.2}")
    }
}

/// A part of a whole as a whole percentage; nothing of nothing is nothing.
fn share(part: i64, whole: i64) -> String {
    if whole == 0 {
        UNKNOWN.to_owned()
    } else {
        format!("{:.0} %", part as f64 / whole as f64 * 100.0)
    }
}

/// A probability or share from 0 to 1.
pub(super) fn percent(value: f64) -> String {
    let percent = value * 100.0;
    if percent > 0.0 && percent < 0.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// Microseconds since the Unix epoch as a moment.
fn moment(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros).map_or_else(
        || UNKNOWN.to_owned(),
        |moment| moment.format("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

/// Bytes with a unit.
pub(super) fn bytes(count: i64) -> String {
    match count {
        ..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.0} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

/// Writes a value; texts are cleaned, then escaped.
fn format_clean(out: &mut Output<'_>, state: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    if !value.is_safe()
        && let Some(text) = value.as_str()
        && let Cow::Owned(clean) = clean(text)
    {
        return escape_formatter(out, state, &Value::from(clean));
    }
    escape_formatter(out, state, value)
}

/// The text without characters that are not seen but change what is: control characters, and those that turn the direction of
/// writing, by which a name could pass for another.
fn clean(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| match c {
        '\n' | '\t' => true,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        c => !c.is_control(),
    };
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_plain(c) { c } else { '\u{fffd}' }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_say_their_sign_and_unit() {
        assert_eq!(
            [gain(0.25), gain(-0.25), gain(0.0)],
            ["+0.25", "−0.25", "±0"].map(String::from)
        );
        assert_eq!(
            [percent(0.0), percent(0.004), percent(0.5)],
            ["0 %", "0.4 %", "50 %"].map(String::from)
        );
        assert_eq!(
            [dollars(0.0), dollars(0.0125), dollars(0.05), dollars(10.4)],
            ["$0", "$0.0125", "$0.05", "$10.40"].map(String::from)
        );
        assert_eq!([share(1, 3), share(0, 0)], ["33 %", "–"].map(String::from));
        assert_eq!(moment(1_764_400_000_000_000), "2025-11-29 07:06 UTC");
        assert_eq!(
            [bytes(12), bytes(12_345), bytes(345_678_901)],
            ["12 B", "12.3 kB", "346 MB"].map(String::from)
        );
    }

    #[test]
    fn hidden_characters_are_seen() {
        assert_eq!(clean("a\tb\n"), "a\tb\n");
        assert_eq!(clean("a\u{202e}b\u{1b}[31m\0"), "a\u{fffd}b\u{fffd}[31m\u{fffd}");
    }
}
