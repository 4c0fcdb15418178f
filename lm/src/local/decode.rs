//! The tokenizer as the engine uses it.

use crate::engine;
use crate::error::{LmError, Result};
use crate::text::{Detokenizer, Tokenizer};

/// Makes the text of answers.
#[derive(Debug)]
pub(super) struct Decoding {
    tokenizer: Tokenizer,
}

impl Decoding {
    pub(super) fn new(tokenizer: Tokenizer) -> Self {
        Self { tokenizer }
    }
}

impl engine::Detokenizer for Decoding {
    fn decoder(&self, prompt: &[i64]) -> Result<Box<dyn engine::TextDecoder>> {
        let prompt = prompt.iter().map(|id| token(*id)).collect::<Result<Vec<_>>>()?;
        Ok(Box::new(Decoder(Detokenizer::new(&self.tokenizer, &prompt, false))))
    }
}

/// Text of one answer. A token beyond those of the tokenizer (vocabularies are padded) has none.
struct Decoder(Detokenizer);

impl engine::TextDecoder for Decoder {
    fn push(&mut self, id: i64) -> Result<String> {
        self.0.push(token(id)?)
    }

    fn finish(&mut self) -> Result<String> {
        self.0.finish()
    }
}

/// A token as tokenizers number them.
pub(super) fn token(id: i64) -> Result<u32> {
    u32::try_from(id).map_err(|_| LmError::Tokenizer(format!("{id} is no token")))
}
