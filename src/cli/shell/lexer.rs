//! Just enough of the language's lexical rules to colour a line and to see whether a statement is complete.

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word: keyword, name or function.
    Word,
    /// A name in double quotes.
    QuotedName,
    /// A text in single quotes.
    Text,
    /// A number.
    Number,
    /// A comment.
    Comment,
    /// Blank space.
    Blank,
    /// `;`
    Semicolon,
    /// Anything else.
    Symbol,
}

/// A piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub kind: Kind,
    pub text: &'a str,
    /// Whether a quote or comment is closed.
    pub closed: bool,
}

/// Cuts a text into pieces; nothing is lost.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kind, length, closed) = match first {
            '\'' => quoted(rest, '\'', Kind::Text),
            '"' => quoted(rest, '"', Kind::QuotedName),
            '-' if rest.starts_with("--") => (Kind::Comment, rest.find('\n').unwrap_or(rest.len()), true),
            '/' if rest.starts_with("/*") => match rest[2..].find("*/") {
                Some(end) => (Kind::Comment, end + 4, true),
                None => (Kind::Comment, rest.len(), false),
            },
            ';' => (Kind::Semicolon, 1, true),
            c if c.is_whitespace() => (Kind::Blank, run(rest, char::is_whitespace), true),
            c if c.is_ascii_digit() => (
                Kind::Number,
                run(rest, |c| c.is_ascii_alphanumeric() || c == '.' || c == '_'),
                true,
            ),
            c if is_word(c) => (Kind::Word, run(rest, is_word), true),
            c => (Kind::Symbol, c.len_utf8(), true),
        };
        let (piece, tail) = rest.split_at(length);
        pieces.push(Piece {
            kind,
            text: piece,
            closed,
        });
        rest = tail;
    }
    pieces
}

/// Whether the text holds a whole statement: its last piece that matters is a semicolon.
pub(super) fn is_complete(text: &str) -> bool {
    let pieces = pieces(text);
    let significant = pieces
        .iter()
        .rev()
        .find(|piece| !matches!(piece.kind, Kind::Blank | Kind::Comment));
    match significant {
        Some(piece) => piece.kind == Kind::Semicolon && pieces.last().is_none_or(|last| last.closed),
        // Nothing but blanks and comments: there is nothing to wait for, unless a comment is open.
        None => pieces.iter().all(|piece| piece.closed),
    }
}

fn quoted(text: &str, quote: char, kind: Kind) -> (Kind, usize, bool) {
    let mut from = 1;
    while let Some(at) = text[from..].find(quote) {
        let end = from + at + 1;
        // A doubled quote stands for itself.
        if text[end..].starts_with(quote) {
            from = end + 1;
        } else {
            return (kind, end, true);
        }
    }
    (kind, text.len(), false)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn run(text: &str, accept: impl Fn(char) -> bool) -> usize {
    text.find(|c| !accept(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost() {
        for text in [
            "SELECT 'it''s', \"a\"\"b\" -- x\n FROM t /* y */;",
            "'open",
            "/* open",
            "é § ",
            "1.5e3 x$1",
        ] {
            let joined: String = pieces(text).iter().map(|piece| piece.text).collect();
            assert_eq!(joined, text);
        }
    }

    #[test]
    fn a_semicolon_ends_a_statement_only_outside_quotes_and_comments() {
        for text in [
            "SELECT 1;",
            "SELECT ';' ; ",
            "SELECT 1; -- done",
            "",
            "  ",
            "-- note",
            "a; /* x */",
        ] {
            assert!(is_complete(text), "{text}");
        }
        for text in [
            "SELECT 1",
            "SELECT ';",
            "SELECT 1 -- ;",
            "SELECT \";",
            "/* ;",
            "SELECT 1; SELECT 2",
            "a; /* x",
            "a; 'x",
        ] {
            assert!(!is_complete(text), "{text}");
        }
    }
}
