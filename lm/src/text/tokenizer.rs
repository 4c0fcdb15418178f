//! A tokenizer of any origin.

use std::sync::Arc;

use crate::error::{LmError, Result};

/// Turns texts into tokens and back. Copies share its tables.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<tokenizers::Tokenizer>,
    kind: Arc<str>,
    begin: Option<u32>,
    end: Option<u32>,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Tokenizer")
            .field("kind", &self.kind)
            .field("size", &self.size())
            .field("begin", &self.begin)
            .field("end", &self.end)
            .finish()
    }
}

impl Tokenizer {
    /// A tokenizer that names its kind, and the tokens with which texts begin and end.
    pub(super) fn new(inner: tokenizers::Tokenizer, kind: &str, begin: Option<u32>, end: Option<u32>) -> Self {
        Self {
            inner: Arc::new(inner),
            kind: kind.into(),
            begin,
            end,
        }
    }

    /// What it is, in words for a user.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Number of tokens. The vocabulary of the model may be larger.
    #[must_use]
    pub fn size(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    /// The token with which texts begin.
    #[must_use]
    pub fn begin_token(&self) -> Option<u32> {
        self.begin
    }

    /// The token with which texts end.
    #[must_use]
    pub fn end_token(&self) -> Option<u32> {
        self.end
    }

    /// The token of this text, where it is one.
    #[must_use]
    pub fn token(&self, text: &str) -> Option<u32> {
        self.inner.token_to_id(text)
    }

    /// How a token is written.
    #[must_use]
    pub fn written(&self, token: u32) -> Option<String> {
        self.inner.id_to_token(token)
    }

    /// Whether a token marks structure and is no text.
    #[must_use]
    pub fn is_special(&self, token: u32) -> bool {
        self.inner
            .get_added_vocabulary()
            .get_added_tokens_decoder()
            .get(&token)
            .is_some_and(|added| added.special)
    }

    /// Tokens of a text, in which special tokens are recognised where they are written out. `complete` adds what the model expects
    /// around a text, as a token with which it begins; a chat template has written that already.
    ///
    /// # Errors
    /// When the text cannot be tokenized.
    pub fn encode(&self, text: &str, complete: bool) -> Result<Vec<u32>> {
        let encoding = self
            .inner
            .encode_fast(text, complete)
            .map_err(|error| LmError::Tokenizer(error.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Text of tokens, special ones left out or written out. Bytes that are no UTF-8 become `U+FFFD`.
    ///
    /// # Errors
    /// When the tokens cannot be put together.
    pub fn decode(&self, tokens: &[u32], special: bool) -> Result<String> {
        self.inner
            .decode(tokens, !special)
            .map_err(|error| LmError::Tokenizer(error.to_string()))
    }
}
