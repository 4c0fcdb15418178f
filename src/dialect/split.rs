//! Cuts a text into statements, and a statement at its `EXPAND WITH`, on tokens.
//!
//! The cut must come before parsing: in `FROM nodes EXPAND WITH (x)` the parser would take `EXPAND` for an alias
//! and drop the rest without a word.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::cursor::is_word;
use super::error::Fault;

/// The statements of a text, each as its tokens without white space; empty statements are left out.
pub(super) fn statements(text: &str) -> Result<Vec<Vec<TokenWithSpan>>, Fault> {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location()?;
    let mut statements = vec![Vec::new()];
    for token in tokens {
        match token.token {
            Token::SemiColon => statements.push(Vec::new()),
            Token::Whitespace(_) | Token::EOF => {}
            _ => {
                if let Some(current) = statements.last_mut() {
                    current.push(token);
                }
            }
        }
    }
    statements.retain(|tokens| !tokens.is_empty());
    Ok(statements)
}

/// A statement with the clause.
#[derive(Debug)]
pub(super) struct ExpandCut<'a> {
    /// What stands before `EXPAND`.
    pub(super) head: &'a [TokenWithSpan],
    /// Where `EXPAND` starts.
    pub(super) start: Location,
    /// Where `WITH` ends.
    pub(super) end: Location,
    /// What follows `WITH`.
    pub(super) tail: &'a [TokenWithSpan],
}

/// Cut a statement at its `EXPAND WITH`, when it has one.
pub(super) fn at_expand(tokens: &[TokenWithSpan]) -> Result<Option<ExpandCut<'_>>, Fault> {
    let mut depth = 0_usize;
    let mut cut: Option<ExpandCut<'_>> = None;
    for (index, pair) in tokens.windows(2).enumerate() {
        match pair[0].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if !(is_word(&pair[0].token, "expand") && is_word(&pair[1].token, "with")) {
            continue;
        }
        let at = pair[0].span.start;
        if depth > 0 {
            let message = "EXPAND WITH ends a statement and cannot stand inside parentheses; \
                           inside a query write FROM expand((query), 'operator', option => value)";
            return Err(Fault::new(message, at));
        }
        if cut.is_some() {
            return Err(Fault::new(
                "a statement may hold one EXPAND; split it into two statements",
                at,
            ));
        }
        cut = Some(ExpandCut {
            head: &tokens[..index],
            start: at,
            end: pair[1].span.end,
            tail: &tokens[index + 2..],
        });
    }
    Ok(cut)
}
