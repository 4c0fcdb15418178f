//! Published scores as papers write them: `95.5 ± 0.2`, `~0.97`, `<0.05`, `0.91-0.93`, `mean=1.2 (n=5)`.

use std::sync::LazyLock;

use regex::Regex;

/// A number at the beginning of a text.
const NUMBER: &str = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?";

#[expect(clippy::unwrap_used, reason = "fixed patterns")]
static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns {
    mean: Regex::new(&format!(r"(?i)\bmean\s*=\s*({NUMBER})")).unwrap(),
    range: Regex::new(r"^~?\s*([-+]?\d+(?:\.\d+)?)\s*(?:to|-|–|—)\s*~?\s*([-+]?\d+(?:\.\d+)?)$").unwrap(),
    number: Regex::new(&format!(r"^(?:[<>]=?)?\s*~?\s*({NUMBER})")).unwrap(),
});

struct Patterns {
    mean: Regex,
    range: Regex,
    number: Regex,
}

/// The number of a published score: its mean where there is one, the better end of a range, the bound of a bound; nothing where
/// the text has none.
pub fn number_of(text: &str, higher_is_better: bool) -> Option<f64> {
    let patterns = &*PATTERNS;
    let parsed = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    if let Some(found) = patterns.mean.captures(text) {
        return parsed(&found[1]);
    }
    let core = text.split('(').next().unwrap_or(text).trim();
    if let Some(found) = patterns.range.captures(core) {
        let (low, high) = (parsed(&found[1])?, parsed(&found[2])?);
        return Some(if higher_is_better { high } else { low });
    }
    patterns.number.captures(core).and_then(|found| parsed(&found[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_papers_write_them() {
        for (text, expected) in [
            ("95.5", Some(95.5)),
            ("95.5 ± 0.2", Some(95.5)),
            (" ~0.97 ", Some(0.97)),
            ("-1.5e-3", Some(-0.0015)),
            ("<0.05", Some(0.05)),
            (">= 12 (n = 3)", Some(12.0)),
            ("0.91 (0.89-0.93)", Some(0.91)),
            ("median 3, mean = 4.5", Some(4.5)),
            ("n/a", None),
            ("", None),
        ] {
            assert_eq!(number_of(text, true), expected, "{text}");
        }
        for text in ["0.91-0.93", "0.91 to 0.93", "~0.91 – ~0.93"] {
            assert_eq!(
                (number_of(text, true), number_of(text, false)),
                (Some(0.93), Some(0.91)),
                "{text}"
            );
        }
    }
}
