//! The query language: text to statements.
//!
//! A text is cut into tokens once. Statements of our own are read here; everything else, and the query before an
//! `EXPAND WITH`, goes to DataFusion's parser with its tokens, so every error names the place in the user's text.

mod ast;
mod cursor;
mod duration;
mod error;
mod evolve_options;
mod expand_options;
mod foreign;
mod option;
mod parser;
mod source;
mod split;
#[cfg(test)]
mod tests;

pub use ast::{
    CreateModel, CreatePolicy, DropModel, DropPolicy, Evolve, Expand, ExpandClause, ExplainExpand, Statement,
};
pub use duration::parse_duration;
pub use error::{DialectError, Position};
pub use evolve_options::{EvolveOptions, RunMode};
pub use expand_options::{ExpandOptions, OnError};
pub use option::{OptionError, OptionItem, OptionSpec, OptionValue, Range};

use source::Source;

/// A statement with the text it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedStatement {
    /// The statement.
    pub statement: Statement,
    /// Its text as the user wrote it, without the semicolon.
    pub sql: String,
    /// Line of its first token, from 1.
    pub line: u64,
    /// Column of its first token in characters, from 1.
    pub column: u64,
}

/// Parse all statements of a text, in order. Nothing is returned unless all of them are right.
pub fn parse(text: &str) -> Result<Vec<ParsedStatement>, DialectError> {
    let source = Source::new(text);
    let statements = split::statements(text).map_err(|fault| fault.locate(&source))?;
    let mut parsed = Vec::with_capacity(statements.len());
    for tokens in &statements {
        let statement = parser::statement(tokens, &source).map_err(|fault| fault.locate(&source))?;
        if let (Some(first), Some(last)) = (tokens.first(), tokens.last()) {
            let sql = source.slice(first.span.start, last.span.end).to_owned();
            parsed.push(ParsedStatement {
                statement,
                sql,
                line: first.span.start.line,
                column: first.span.start.column,
            });
        }
    }
    Ok(parsed)
}
