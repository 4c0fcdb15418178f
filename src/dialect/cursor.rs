//! Reads the tokens of one statement from left to right.

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::error::Fault;
use super::option::{OptionError, OptionItem, OptionValue};

impl From<OptionError> for Fault {
    fn from(error: OptionError) -> Self {
        Self::new(error.message, error.at)
    }
}

/// Whether `token` is the unquoted word `word`, in any case.
pub(super) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// A position in the tokens of a statement; white space is already gone.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    tokens: &'a [TokenWithSpan],
    next: usize,
}

impl<'a> Cursor<'a> {
    /// Start before the first token.
    pub(super) fn new(tokens: &'a [TokenWithSpan]) -> Self {
        Self { tokens, next: 0 }
    }

    /// The tokens that are not read yet.
    pub(super) fn rest(&self) -> &'a [TokenWithSpan] {
        &self.tokens[self.next..]
    }

    /// Place of the next token; behind the last one at the end.
    pub(super) fn location(&self) -> Location {
        match (self.tokens.get(self.next), self.tokens.last()) {
            (Some(token), _) => token.span.start,
            (None, Some(last)) => last.span.end,
            (None, None) => Location { line: 0, column: 0 },
        }
    }

    /// Take the words when all of them come next.
    pub(super) fn take_words(&mut self, words: &[&str]) -> bool {
        let rest = self.rest();
        let all = rest.len() >= words.len() && rest.iter().zip(words).all(|(token, word)| is_word(&token.token, word));
        if all {
            self.next += words.len();
        }
        all
    }

    /// Take one word or fail.
    pub(super) fn expect_word(&mut self, word: &str) -> Result<(), Fault> {
        if self.take_words(&[word]) {
            Ok(())
        } else {
            Err(self.expected(word))
        }
    }

    /// Take the token when it comes next.
    pub(super) fn take(&mut self, token: &Token) -> bool {
        let found = self.rest().first().is_some_and(|next| next.token == *token);
        if found {
            self.next += 1;
        }
        found
    }

    /// Take the token or fail.
    pub(super) fn expect(&mut self, token: &Token) -> Result<(), Fault> {
        if self.take(token) {
            Ok(())
        } else {
            Err(self.expected(&format!("'{token}'")))
        }
    }

    /// Fail unless everything is read.
    pub(super) fn expect_end(&self) -> Result<(), Fault> {
        if self.rest().is_empty() {
            Ok(())
        } else {
            Err(self.expected("the end of the statement"))
        }
    }

    /// The fault that something else should stand here.
    pub(super) fn expected(&self, what: &str) -> Fault {
        let found = self
            .rest()
            .first()
            .map_or_else(|| "the end of the statement".to_owned(), |token| token.to_string());
        Fault::new(format!("expected {what}, found {found}"), self.location())
    }

    /// A name: a word in lower case, or a quoted word or text as it stands.
    pub(super) fn name(&mut self, what: &str) -> Result<String, Fault> {
        let name = match self.rest().first().map(|token| &token.token) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_lowercase(),
            Some(Token::Word(word)) => word.value.clone(),
            Some(Token::SingleQuotedString(text)) => text.clone(),
            _ => return Err(self.expected(what)),
        };
        if name.is_empty() {
            return Err(self.expected(what));
        }
        self.next += 1;
        Ok(name)
    }

    /// A quoted text.
    pub(super) fn text(&mut self, what: &str) -> Result<String, Fault> {
        match self.rest().first().map(|token| &token.token) {
            Some(Token::SingleQuotedString(text)) => {
                let text = text.clone();
                self.next += 1;
                Ok(text)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A name with dots: `schema.table`.
    pub(super) fn dotted_name(&mut self, what: &str) -> Result<Vec<String>, Fault> {
        let mut parts = vec![self.name(what)?];
        while self.take(&Token::Period) {
            parts.push(self.name(what)?);
        }
        Ok(parts)
    }

    /// `(name => value, …)`, opening parenthesis included.
    pub(super) fn options(&mut self) -> Result<Vec<OptionItem>, Fault> {
        self.option_list(|cursor| cursor.expect(&Token::RArrow))
    }

    /// `(name value, …)`, as OPTIONS of other statements are written; the arrow may stand as well.
    pub(super) fn listed_options(&mut self) -> Result<Vec<OptionItem>, Fault> {
        self.option_list(|cursor| {
            cursor.take(&Token::RArrow);
            Ok(())
        })
    }

    fn option_list(&mut self, arrow: impl Fn(&mut Self) -> Result<(), Fault>) -> Result<Vec<OptionItem>, Fault> {
        self.expect(&Token::LParen)?;
        let mut items = Vec::new();
        if self.take(&Token::RParen) {
            return Ok(items);
        }
        loop {
            let at = self.location();
            let name = self.name("an option's name")?;
            arrow(self)?;
            items.push(OptionItem {
                name,
                value: self.option_value()?,
                at,
            });
            if self.take(&Token::RParen) {
                return Ok(items);
            }
            if !self.take(&Token::Comma) {
                return Err(self.expected("',' or ')'"));
            }
        }
    }

    fn option_value(&mut self) -> Result<OptionValue, Fault> {
        let sign = if self.take(&Token::Minus) { "-" } else { "" };
        let value = match self.rest().first().map(|token| &token.token) {
            Some(Token::Number(text, _)) => OptionValue::Number(format!("{sign}{text}")),
            Some(Token::SingleQuotedString(text)) if sign.is_empty() => OptionValue::Text(text.clone()),
            Some(word) if sign.is_empty() && is_word(word, "true") => OptionValue::Bool(true),
            Some(word) if sign.is_empty() && is_word(word, "false") => OptionValue::Bool(false),
            _ => return Err(self.expected("a number, a quoted text, true or false")),
        };
        self.next += 1;
        Ok(value)
    }
}
