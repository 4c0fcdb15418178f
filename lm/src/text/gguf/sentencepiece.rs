//! BPE of SentencePiece: tokens have scores instead of merges, spaces are written `▁`, and what is no token is written in bytes.

use std::collections::HashMap;

use serde_json::json;
use tokenizers::decoders::DecoderWrapper;
use tokenizers::models::bpe::BpeBuilder;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;

use super::{Vocabulary, model, splits};
use crate::error::Result;
use crate::load::GgufMetadata;

/// Builds the tokenizer.
pub(super) fn build(metadata: &GgufMetadata, vocabulary: &Vocabulary) -> Result<tokenizers::Tokenizer> {
    let scores: Vec<f64> = metadata.required("tokenizer.ggml.scores")?;
    if scores.len() != vocabulary.tokens.len() {
        let problem = format!(
            "'tokenizer.ggml.scores' has {} entries for {} tokens",
            scores.len(),
            vocabulary.tokens.len()
        );
        return Err(metadata.fault(problem));
    }
    let mut builder = BpeBuilder::new().byte_fallback(true).fuse_unk(true);
    if let Some(unknown) = vocabulary
        .unknown
        .and_then(|unknown| vocabulary.tokens.get(unknown as usize))
    {
        builder = builder.unk_token(unknown.clone());
    }
    let merges = merges(&vocabulary.tokens, &scores);
    let tokens = vocabulary.tokens.iter().cloned().zip(0..);
    let mut inner = tokenizers::Tokenizer::new(model(metadata, builder, tokens, merges)?);

    let space_before = metadata.optional("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let scheme = if space_before { "first" } else { "never" };
    let pre_tokenizer: PreTokenizerWrapper = splits::read(
        metadata,
        json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": false }),
    )?;
    inner.with_pre_tokenizer(Some(pre_tokenizer));
    let mut decoders = vec![
        json!({ "type": "Replace", "pattern": { "String": "▁" }, "content": " " }),
        json!({ "type": "ByteFallback" }),
        json!({ "type": "Fuse" }),
    ];
    if space_before {
        decoders.push(json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
    }
    let decoder: DecoderWrapper = splits::read(metadata, json!({ "type": "Sequence", "decoders": decoders }))?;
    inner.with_decoder(Some(decoder));
    Ok(inner)
}

/// The merges that the scores amount to: each way of putting a token together from two, the token of the highest score first.
fn merges(tokens: &[String], scores: &[f64]) -> Vec<(String, String)> {
    let places: HashMap<&str, usize> = tokens.iter().map(String::as_str).zip(0..).collect();
    let mut merges: Vec<(f64, [usize; 2], [usize; 2])> = Vec::new();
    for (token, score) in tokens.iter().zip(scores) {
        let parts = token.char_indices().skip(1).filter_map(|(at, _)| {
            let (left, right) = token.split_at(at);
            Some((
                *score,
                [left.chars().count(), right.chars().count()],
                [*places.get(left)?, *places.get(right)?],
            ))
        });
        let start = merges.len();
        merges.extend(parts);
        merges[start..].sort_by_key(|(_, _, places)| *places);
    }
    // Of equal scores the longer left part comes first, then the order of the vocabulary.
    merges.sort_by(|(a, a_lengths, _), (b, b_lengths, _)| b.total_cmp(a).then_with(|| b_lengths.cmp(a_lengths)));
    merges
        .into_iter()
        .map(|(_, _, [left, right])| (tokens[left].clone(), tokens[right].clone()))
        .collect()
}
