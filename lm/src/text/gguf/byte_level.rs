//! Byte-level BPE: tokens are written in an alphabet that has a letter for each byte.

use serde_json::json;
use tokenizers::decoders::DecoderWrapper;
use tokenizers::models::bpe::BpeBuilder;

use super::{Vocabulary, model, splits};
use crate::error::Result;
use crate::load::GgufMetadata;

/// Builds the tokenizer.
pub(super) fn build(metadata: &GgufMetadata, vocabulary: &Vocabulary, split: &str) -> Result<tokenizers::Tokenizer> {
    let splits::Split {
        pre_tokenizer,
        normalizer,
        whole_words,
    } = splits::by_name(metadata, split)?;
    let merges: Vec<String> = metadata.required("tokenizer.ggml.merges")?;
    let merges = merges
        .into_iter()
        .map(|merge| match merge.split_once(' ') {
            Some((left, right)) => Ok((left.to_owned(), right.to_owned())),
            None => Err(metadata.fault(format!("'tokenizer.ggml.merges' has '{merge}', which is no pair"))),
        })
        .collect::<Result<Vec<_>>>()?;
    let tokens = vocabulary.tokens.iter().cloned().zip(0..);
    let builder = BpeBuilder::new().ignore_merges(whole_words);
    let mut inner = tokenizers::Tokenizer::new(model(metadata, builder, tokens, merges)?);
    inner
        .with_normalizer(normalizer)
        .map_err(|error| metadata.fault(format!("has a tokenizer that cannot be built: {error}")))?;
    inner.with_pre_tokenizer(Some(pre_tokenizer));
    let decoder: DecoderWrapper = splits::read(
        metadata,
        json!({ "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true }),
    )?;
    inner.with_decoder(Some(decoder));
    Ok(inner)
}
