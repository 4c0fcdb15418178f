//! Errors of the query language: what is wrong, at which place of the user's text.

use datafusion::common::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Location, TokenizerError};

use super::source::Source;

/// A statement that cannot be read, with its place in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}\n{excerpt}")]
pub struct DialectError {
    /// What is wrong and what would be right.
    pub message: String,
    /// Line of the user's text, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
    /// The line with a caret below the column.
    pub excerpt: String,
}

/// A place in a text; lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: u64,
    /// Column.
    pub column: u64,
}

impl DialectError {
    /// An error in a statement that begins at `start` of the user's text; `at` is a place of that text too. None when it lies
    /// outside of the statement.
    pub(crate) fn within(statement: &str, start: Position, at: Position, message: String) -> Option<Self> {
        let line = at.line.checked_sub(start.line)? + 1;
        let column = if line == 1 {
            at.column.checked_sub(start.column)? + 1
        } else {
            at.column
        };
        let source = Source::new(statement);
        let inside = Location { line, column };
        if column == 0 || line > source.end().line {
            return None;
        }
        Some(Self {
            message,
            line: at.line,
            column: at.column,
            excerpt: source.excerpt(inside),
        })
    }
}

/// A fault whose text excerpt is not made yet.
#[derive(Debug)]
pub(super) struct Fault {
    /// What is wrong.
    pub(super) message: String,
    /// Where; `None` is the end of the text.
    pub(super) at: Option<Location>,
}

impl Fault {
    /// A fault at a place; line 0 is how the tokenizer says "at the end".
    pub(super) fn new(message: impl Into<String>, at: Location) -> Self {
        Self {
            message: message.into(),
            at: (at.line > 0).then_some(at),
        }
    }

    /// Give the fault its place and excerpt in `source`.
    pub(super) fn locate(self, source: &Source<'_>) -> DialectError {
        let at = self.at.unwrap_or_else(|| source.end());
        DialectError {
            message: self.message,
            line: at.line,
            column: at.column,
            excerpt: source.excerpt(at),
        }
    }
}

impl From<TokenizerError> for Fault {
    fn from(error: TokenizerError) -> Self {
        Self::new(error.message, error.location)
    }
}

impl From<DataFusionError> for Fault {
    fn from(error: DataFusionError) -> Self {
        let text = match error.find_root() {
            DataFusionError::SQL(parser_error, _) => match parser_error.as_ref() {
                ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.clone(),
                ParserError::RecursionLimitExceeded => "the statement is nested too deeply".to_owned(),
            },
            other => other.message().into_owned(),
        };
        let (message, at) = take_location(&text);
        Self { message, at }
    }
}

/// Cut the place off the end of a parser's message: `… at Line: 1, Column: 8`.
fn take_location(text: &str) -> (String, Option<Location>) {
    let parsed = text.rsplit_once(" at Line: ").and_then(|(message, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        let location = Location {
            line: line.parse().ok()?,
            column: column.trim().parse().ok()?,
        };
        Some((message, location))
    });
    let (message, at) = match parsed {
        Some((message, location)) => (message, Some(location)),
        None => (text, None),
    };
    let message = message.strip_prefix("Expected: ").map_or_else(
        || message.to_owned(),
        |rest| {
            format!(
                "expected {}",
                rest.replacen(", found: ", ", found ", 1)
                    .replace("found EOF", "found the end of the statement")
            )
        },
    );
    (message, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_cut_off_the_message() {
        let (message, at) = take_location("Expected: an expression, found: FROM at Line: 2, Column: 8");
        assert_eq!(message, "expected an expression, found FROM");
        assert_eq!(at, Some(Location { line: 2, column: 8 }));
        assert_eq!(
            take_location("Expected: identifier, found: EOF").0,
            "expected identifier, found the end of the statement"
        );
        assert_eq!(take_location("odd at Line: x").1, None);
    }
}
