//! From tokens to text.

mod stop;

use std::fmt;

pub(super) use self::stop::{Released, StopMatcher};

/// Turns the tokens of one answer into text, one after the other.
pub trait TextDecoder: Send {
    /// Takes the next token and gives the text that is complete with it; `None` where a character is still open.
    fn push(&mut self, id: i64) -> Option<String>;

    /// The rest, when no token follows: what an open character is replaced by.
    fn finish(&mut self) -> Option<String>;
}

/// Makes decoders. A tokenizer is one.
pub trait Detokenizer: Send + Sync + fmt::Debug {
    /// A decoder for an answer to a prompt. The text of the prompt itself does not come out of it.
    fn decoder(&self, prompt: &[i64]) -> Box<dyn TextDecoder>;
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
    pub(super) fn push(&mut self, id: i64) -> Released {
        let piece = self.decoder.push(id).unwrap_or_default();
        self.stops.push(&piece)
    }

    /// The text that is left, when no token follows.
    pub(super) fn finish(&mut self) -> String {
        let last = self.decoder.finish().unwrap_or_default();
        let Released { mut text, stop } = self.stops.push(&last);
        if stop.is_none() {
            text.push_str(&self.stops.finish());
        }
        text
    }
}

impl fmt::Debug for SampleText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampleText")
            .field("stops", &self.stops)
            .finish_non_exhaustive()
    }
}
