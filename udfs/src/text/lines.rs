//! Splits a text into lines.

/// The text with `\n` as its only line break.
pub(super) fn normalize_newlines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Lines with their line breaks. Every character that a terminal or an editor may show as a break counts, so that no
/// part of a line hides behind an unusual one.
pub(super) fn split_lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(is_line_break).unwrap_or(rest.len());
        let (line, from_break) = rest.split_at(end);
        let width = if from_break.starts_with("\r\n") {
            2
        } else {
            from_break.chars().next().map_or(0, char::len_utf8)
        };
        let (ending, next) = from_break.split_at(width);
        rest = next;
        Some((line, ending))
    })
}

fn is_line_break(letter: char) -> bool {
    matches!(
        letter,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::split_lines;

    #[test]
    fn lines_keep_their_breaks() {
        let lines: Vec<_> = split_lines("a\r\nb\n\nc\u{2028}d").collect();
        assert_eq!(
            lines,
            [("a", "\r\n"), ("b", "\n"), ("", "\n"), ("c", "\u{2028}"), ("d", "")]
        );
    }
}
