//! A statement that is refused by what it names, with the place of the name.

use datafusion::sql::sqlparser::tokenizer::Span;

use super::error::EngineError;
use crate::dialect::{DialectError, Position};

/// Why a statement is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    message: String,
    /// Where the name stands; none where the parser does not say.
    at: Option<Position>,
}

impl Refusal {
    /// A refusal of what stands at a place. An empty span is none.
    pub(super) fn new(span: Span, message: impl Into<String>) -> Self {
        let at = Position {
            line: span.start.line,
            column: span.start.column,
        };
        Self {
            message: message.into(),
            at: (at.line > 0).then_some(at),
        }
    }

    /// The error of a statement that begins at `start` of the user's text. Without a place of its own the statement's is named.
    pub(super) fn within(self, statement: &str, start: Position) -> EngineError {
        let at = self.at.unwrap_or(start);
        match DialectError::within(statement, start, at, self.message.clone()) {
            Some(placed) => placed.into(),
            None => EngineError::Request(self.message),
        }
    }
}
