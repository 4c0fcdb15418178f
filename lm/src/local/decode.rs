//! The tokenizer as the engine uses it.

use crate::engine;
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
    fn decoder(&self, prompt: &[i64]) -> Box<dyn engine::TextDecoder> {
        let prompt: Vec<u32> = prompt.iter().filter_map(|id| u32::try_from(*id).ok()).collect();
        Box::new(Decoder(Detokenizer::new(&self.tokenizer, &prompt, false)))
    }
}

/// Text of one answer.
struct Decoder(Detokenizer);

impl engine::TextDecoder for Decoder {
    fn push(&mut self, id: i64) -> Option<String> {
        let token = u32::try_from(id).ok()?;
        // A token beyond those of the tokenizer (vocabularies are padded) has no text.
        self.0.push(token).ok().filter(|text| !text.is_empty())
    }

    fn finish(&mut self) -> Option<String> {
        self.0.finish().ok().filter(|text| !text.is_empty())
    }
}
