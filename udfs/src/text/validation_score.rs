//! The validation score that a program printed about itself.

const LABEL: &str = "Final Validation Score:";

/// The last score printed after `Final Validation Score:`, when it is one finite number.
///
/// Text after the number, such as `%` or words, is allowed; a further digit, letter or dot that would make it another
/// number is not. A last print of `nan` or `inf` gives nothing, because the program then has no valid score.
pub fn final_validation_score(log: &str) -> Option<f64> {
    let mut rest = log;
    while let Some(at) = rest.rfind(LABEL) {
        match leading_number(rest[at + LABEL.len()..].trim_start()) {
            Some(score) => return score.is_finite().then_some(score),
            None => rest = &rest[..at],
        }
    }
    None
}

/// The number at the start of the text; nothing when it does not start with one.
fn leading_number(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let unsigned = &text[sign..];
    let word = unsigned.bytes().take_while(u8::is_ascii_alphabetic).count();
    if matches!(
        unsigned[..word].to_ascii_lowercase().as_str(),
        "nan" | "inf" | "infinity"
    ) {
        return Some(f64::NAN);
    }
    let end = sign + decimal_length(unsigned)?;
    let end = end + exponent_length(&text[end..]);
    let after = &text[end..];
    let continues = after.starts_with(|next: char| next.is_alphanumeric() || next == '_')
        || after
            .strip_prefix('.')
            .is_some_and(|more| more.starts_with(|next: char| next.is_ascii_digit()));
    if continues { None } else { text[..end].parse().ok() }
}

/// Length of `1`, `1.`, `1.5` or `.5`. A dot that ends a sentence is left out; it does not change the number.
fn decimal_length(text: &str) -> Option<usize> {
    let whole = text.bytes().take_while(u8::is_ascii_digit).count();
    let fraction = match text[whole..].strip_prefix('.') {
        Some(digits) => digits.bytes().take_while(u8::is_ascii_digit).count(),
        None => 0,
    };
    match (whole, fraction) {
        (0, 0) => None,
        (whole, 0) => Some(whole),
        (whole, fraction) => Some(whole + 1 + fraction),
    }
}

/// Length of `e5` or `E-05`; zero when no whole exponent stands there.
fn exponent_length(text: &str) -> usize {
    let Some(after) = text.strip_prefix(['e', 'E']) else {
        return 0;
    };
    let sign = usize::from(after.starts_with(['+', '-']));
    match after[sign..].bytes().take_while(u8::is_ascii_digit).count() {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::final_validation_score;

    #[test]
    fn strict_numbers() {
        for (number, score) in [
            ("0.5", Some(0.5)),
            ("0.5.", Some(0.5)),
            ("0.5.3", None),
            ("85%", Some(85.0)),
            ("-1.5e-03", Some(-0.0015)),
            ("+.5", Some(0.5)),
            ("7 points", Some(7.0)),
            ("1e999", None),
            ("nan", None),
            ("-inf", None),
            ("(0.5)", None),
            ("0.5abc", None),
            ("1e", None),
            ("", None),
            (".", None),
        ] {
            assert_eq!(
                final_validation_score(&format!("Final Validation Score: {number}\n")),
                score,
                "{number}"
            );
        }
    }

    #[test]
    fn the_last_print_counts() {
        let log =
            "Final Validation Score: 0.5\nFinal Validation Score: 0.7\n    print(f\"Final Validation Score: {s}\")\n";
        assert_eq!(final_validation_score(log), Some(0.7));
        assert_eq!(
            final_validation_score("Final Validation Score: 0.5\nFinal Validation Score: nan"),
            None
        );
    }
}
