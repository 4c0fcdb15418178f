//! What counts the tokens of a text: a model's tokenizer, or the bytes where there is none.

use std::sync::Arc;

use super::Tokenizer;
use crate::model::torch::LocalTokenizer;

/// Bytes of a token, for the rough estimate.
const BYTES_PER_TOKEN: u64 = 4;

/// Counts tokens.
#[derive(Debug, Clone)]
pub enum TokenCounter {
    /// Roughly, by bytes.
    Bytes,
    /// As the model does.
    Tokenizer(Arc<Tokenizer>),
    /// As the model does, by the tokenizer beside its weights.
    Local(Arc<LocalTokenizer>),
}

impl TokenCounter {
    /// Tokens of a text.
    pub fn count(&self, text: &str) -> u64 {
        match self {
            Self::Bytes => (text.len() as u64).div_ceil(BYTES_PER_TOKEN),
            Self::Tokenizer(tokenizer) => tokenizer.count(text),
            Self::Local(tokenizer) => tokenizer
                .count(text)
                .map_or_else(|_| Self::Bytes.count(text), |tokens| tokens as u64),
        }
    }

    /// How it counts, in words.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Bytes => "estimate: a token every 4 bytes",
            Self::Tokenizer(_) | Self::Local(_) => "the model's tokenizer",
        }
    }
}
