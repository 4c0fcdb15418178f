//! Breaking a cell into lines of a width.

use unicode_width::UnicodeWidthChar;

use super::cell::{truncated, width};

/// Characters behind which a long name may be broken.
const JOINTS: &str = "-_/,.";

/// A broken text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lines {
    /// At least one line.
    pub lines: Vec<String>,
    /// Whether text was left out, which an ellipsis at the end says.
    pub is_cut: bool,
}

/// Breaks a text at its blanks into at most so many lines; a word that is wider than a line is broken anywhere.
pub(super) fn wrap(text: &str, columns: usize, most: usize) -> Lines {
    if width(text) <= columns {
        return Lines {
            lines: vec![text.to_owned()],
            is_cut: false,
        };
    }
    let mut lines: Vec<String> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if lines.len() + 1 == most && width(rest) > columns {
            let cut = truncated(rest, columns);
            // A blank before the ellipsis says nothing.
            lines.push(format!("{}…", cut.trim_end_matches('…').trim_end()));
            return Lines { lines, is_cut: true };
        }
        let (line, tail) = first_line(rest, columns);
        lines.push(line.trim_end().to_owned());
        rest = tail.trim_start();
    }
    Lines { lines, is_cut: false }
}

/// As much of a text as fits and the rest: up to a blank where there is one, else up to a joint of a name, else anywhere. At
/// least one character is taken.
fn first_line(text: &str, columns: usize) -> (&str, &str) {
    let (mut used, mut blank, mut joint) = (0, 0, 0);
    for (at, character) in text.char_indices() {
        if character == ' ' {
            blank = at;
        }
        used += character.width().unwrap_or(0);
        if used > columns {
            let ends = [blank, joint, at, character.len_utf8()];
            let end = ends.into_iter().find(|end| *end > 0).unwrap_or(text.len());
            return text.split_at(end);
        }
        if JOINTS.contains(character) {
            joint = at + character.len_utf8();
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, columns: usize, most: usize) -> (Vec<String>, bool) {
        let Lines { lines, is_cut } = wrap(text, columns, most);
        (lines, is_cut)
    }

    #[test]
    fn lines_end_at_blanks() {
        assert_eq!(lines("one", 5, 4), (vec!["one".to_owned()], false));
        assert_eq!(
            lines("one two three", 7, 4),
            (vec!["one two".to_owned(), "three".to_owned()], false)
        );
        assert_eq!(lines("", 5, 4), (vec![String::new()], false));
    }

    #[test]
    fn long_words_are_broken_anywhere() {
        assert_eq!(
            lines("a abcdefgh", 4, 9),
            (vec!["a".to_owned(), "abcd".to_owned(), "efgh".to_owned()], false)
        );
        assert_eq!(
            lines("年龄年", 3, 9),
            (vec!["年".to_owned(), "龄".to_owned(), "年".to_owned()], false)
        );
        assert_eq!(
            lines("breast-cancer", 9, 9),
            (vec!["breast-".to_owned(), "cancer".to_owned()], false)
        );
        assert_eq!(lines("年", 1, 9), (vec!["年".to_owned()], false));
    }

    #[test]
    fn what_is_left_out_shows() {
        assert_eq!(
            lines("one two three four", 5, 2),
            (vec!["one".to_owned(), "two…".to_owned()], true)
        );
    }
}
