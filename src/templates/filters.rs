//! The environment that templates are rendered in, with its filters.

use minijinja::{Environment, UndefinedBehavior};

/// Steps of a template after which it is taken for one without an end. The largest built-in prompt takes some ten thousand.
pub(super) const MOST_STEPS: u64 = 5_000_000;

/// An environment where a value that is not known is an error, and a template that does not end too.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_keep_trailing_newline(true);
    environment.set_fuel(Some(MOST_STEPS));
    environment.add_filter("truncate", |text: String, length: usize| {
        clade_udfs::text::truncate_middle(&text, length, length / 2).into_owned()
    });
    environment.add_filter("trim_end", |text: String| text.trim_end().to_owned());
    environment.add_filter("tail", |text: String, length: usize| tail(&text, length));
    environment.add_filter("figure", figure);
    environment.add_filter("size", |bytes: i64| size(u64::try_from(bytes).unwrap_or(0)));
    environment
}

/// A number at six significant digits.
fn figure(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    format!("{rounded}")
}

/// The last characters of a text.
pub fn tail(text: &str, chars: usize) -> String {
    let length = text.chars().count();
    if length <= chars {
        return text.to_owned();
    }
    let start = text.char_indices().nth(length - chars).map_or(0, |(at, _)| at);
    format!("[…]{}", &text[start..])
}

/// A number of bytes in a unit that keeps it short.
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        None => format!("{bytes} bytes"),
        Some((name, unit)) => {
            let tenths = (bytes as f64 / *unit as f64 * 10.0).round();
            format!("{} {name}", tenths / 10.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!([size(12), size(1536), size(4 << 30)], ["12 bytes", "1.5 KiB", "4 GiB"]);
    }
}
