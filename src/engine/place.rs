//! Planning errors with their place in the user's text, where DataFusion knows it.

use datafusion::common::diagnostic::Diagnostic;
use datafusion::common::{DataFusionError, SchemaError};

use super::error::EngineError;
use crate::dialect::{DialectError, Position};

/// Most columns that a message lists.
const LISTED: usize = 12;

/// How DataFusion's notes begin that offer a name.
const OFFERS: [&str; 2] = ["possible column ", "Possible function "];

/// Adds the place to an error of planning a statement. `text` is the statement as it was written, `start` where it begins
/// in the text of the user.
pub(super) fn locate(error: EngineError, text: &str, start: Position) -> EngineError {
    let EngineError::Query(source) = error else {
        return error;
    };
    let place = source.diagnostic().and_then(|diagnostic| {
        let at = diagnostic.span?.start;
        let at = Position {
            line: at.line,
            column: at.column,
        };
        DialectError::within(text, start, at, message(diagnostic, &source))
    });
    match (place, source.diagnostic()) {
        (Some(place), _) => EngineError::Statement { place, source },
        (None, Some(diagnostic)) if is_nesting(diagnostic) => EngineError::Request(message(diagnostic, &source)),
        (None, _) => EngineError::Query(source),
    }
}

/// Whether a call stands inside another where it must not. DataFusion's text quotes the planner's form of both.
fn is_nesting(diagnostic: &Diagnostic) -> bool {
    diagnostic.message.contains(" function calls cannot ")
}

/// What is wrong, with names that would be right.
fn message(diagnostic: &Diagnostic, error: &DataFusionError) -> String {
    let mut message = diagnostic.message.clone();
    if let Some(first) = message.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    if is_nesting(diagnostic) {
        message.push_str("; compute the inner one in a subquery or in WITH, and use its column");
        return message;
    }
    let offers: Vec<&str> = diagnostic
        .notes
        .iter()
        .filter_map(|note| OFFERS.iter().find_map(|offer| note.message.strip_prefix(offer)))
        .map(|name| name.trim_matches('\''))
        .collect();
    if !offers.is_empty() {
        message.push_str(&format!("; did you mean {}?", offers.join(" or ")));
    } else if let DataFusionError::SchemaError(inner, _) = error.find_root()
        && let SchemaError::FieldNotFound { valid_fields, .. } = inner.as_ref()
        && !valid_fields.is_empty()
    {
        let names: Vec<&str> = valid_fields
            .iter()
            .take(LISTED)
            .map(|field| field.name.as_str())
            .collect();
        let more = if valid_fields.len() > LISTED { ", …" } else { "" };
        message.push_str(&format!("; there are {}{more}", names.join(", ")));
    } else if message.starts_with("table ") {
        message.push_str("; SHOW TABLES lists them");
    }
    for help in &diagnostic.helps {
        message.push_str("; ");
        message.push_str(&help.message);
    }
    message
}
