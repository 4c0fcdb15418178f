//! Building SQL texts.

use std::borrow::Cow;

/// A text as an SQL literal.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name as an SQL identifier, quoted where it must be.
pub fn identifier(name: &str) -> Cow<'_, str> {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("\"{}\"", name.replace('"', "\"\"")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(identifier("best_of_n"), "best_of_n");
        assert_eq!(identifier("My \"policy\""), "\"My \"\"policy\"\"\"");
        assert_eq!(identifier("2x"), "\"2x\"");
    }
}
