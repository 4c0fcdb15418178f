//! From tokens to text.

mod stop;

use std::fmt;

use crate::error::Result;

pub(super) use self::stop::{Released, StopMatcher};

/// Turns the tokens of one answer into text, one after the other.
pub trait TextDecoder: Send {
    /// Takes the next token and gives the text that is complete with it: none where a character is still open.
    ///
    /// # Errors
    /// When the token cannot be read; the sample ends with the error.
    fn push(&mut self, id: i64) -> Result<String>;

    /// The rest, when no token follows: what an open character is replaced by.
    ///
    /// # Errors
    /// When it cannot be read; the sample ends with the error.
    fn finish(&mut self) -> Result<String>;
}

/// Makes decoders. A tokenizer is one.
pub trait Detokenizer: Send + Sync + fmt::Debug {
    /// A decoder for an answer to a prompt. The text of the prompt itself does not come out of it.
    ///
    /// # Errors
    /// When the prompt cannot be read; the request is refused.
    fn decoder(&self, prompt: &[i64]) -> Result<Box<dyn TextDecoder>>;
}

/// The text of one sample.
pub(super) struct SampleText {
    decoder: Box<dyn TextDecoder>,
    stops: StopMatcher,
}

impl SampleText {
    /// Text that ends with one of some strings.
    pub(super) fn new(decoder: Box<dyn TextDecoder>, stops: &[String]) -> Self {
        Self {
            decoder,
            stops: StopMatcher::new(stops),
        }
    }

    /// Takes the next token.
    pub(super) fn push(&mut self, id: i64) -> Result<Released> {
        Ok(self.stops.push(&self.decoder.push(id)?))
    }

    /// The text that is left, when no token follows.
    pub(super) fn finish(&mut self) -> Result<String> {
        let last = self.decoder.finish()?;
        let Released { mut text, stop } = self.stops.push(&last);
        if stop.is_none() {
            text.push_str(&self.stops.finish());
        }
        Ok(text)
    }
}

impl fmt::Debug for SampleText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampleText")
            .field("stops", &self.stops)
            .finish_non_exhaustive()
    }
}
