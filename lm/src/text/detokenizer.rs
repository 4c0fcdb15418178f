//! Text of tokens that come one after the other.
//!
//! A token may hold a part of a character, and what a token reads as may depend on the token before it. So a few tokens are read
//! together, and text is given out when a later token can no longer change it.

use super::tokenizer::Tokenizer;
use crate::error::Result;

/// Tokens of a prompt that can matter for how the next token reads.
const CONTEXT: usize = 6;

/// What a decoder writes for bytes that are no character yet.
const UNFINISHED: char = '\u{FFFD}';

/// Turns a stream of tokens into text.
#[derive(Debug, Clone)]
pub struct Detokenizer {
    tokenizer: Tokenizer,
    special: bool,
    /// Tokens that are read together: some whose text was given out, and those after them.
    tokens: Vec<u32>,
    /// How many of them were given out.
    given: usize,
}

impl Detokenizer {
    /// A stream that continues a prompt. Special tokens are left out or written out.
    #[must_use]
    pub fn new(tokenizer: &Tokenizer, prompt: &[u32], special: bool) -> Self {
        let tokens = prompt[prompt.len().saturating_sub(CONTEXT)..].to_vec();
        Self {
            tokenizer: tokenizer.clone(),
            special,
            given: tokens.len(),
            tokens,
        }
    }

    /// Takes the next token, and gives the text that is certain by now: nothing while a character lacks bytes.
    ///
    /// # Errors
    /// When the tokens cannot be put together.
    pub fn push(&mut self, token: u32) -> Result<String> {
        self.tokens.push(token);
        let (before, all) = self.texts()?;
        if all.len() <= before.len() || all.ends_with(UNFINISHED) {
            return Ok(String::new());
        }
        let text = new_part(&before, &all).to_owned();
        self.tokens.drain(..self.given);
        self.given = self.tokens.len();
        Ok(text)
    }

    /// What is left at the end of the stream: bytes that are no character read as `U+FFFD`.
    ///
    /// # Errors
    /// When the tokens cannot be put together.
    pub fn finish(&mut self) -> Result<String> {
        let (before, all) = self.texts()?;
        self.given = self.tokens.len();
        Ok(new_part(&before, &all).to_owned())
    }

    fn texts(&self) -> Result<(String, String)> {
        let before = self.tokenizer.decode(&self.tokens[..self.given], self.special)?;
        let all = self.tokenizer.decode(&self.tokens, self.special)?;
        Ok((before, all))
    }
}

/// What follows the part that two texts have in common. They differ before the end of the first where its last character was
/// unfinished.
fn new_part<'a>(before: &str, all: &'a str) -> &'a str {
    let common = before
        .chars()
        .zip(all.chars())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum::<usize>();
    &all[common..]
}
