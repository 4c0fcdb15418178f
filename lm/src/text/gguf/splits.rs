//! How a text is split into words before merges are applied, by the names that llama.cpp gives to the ways.

use serde_json::{Value, json};
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;

use crate::error::{LmError, Result};
use crate::load::GgufMetadata;

/// Digits in threes, contractions whatever their case.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// As Llama 3, digits one by one.
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// As Qwen2, marks belong to words.
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// A way of splitting.
pub(super) struct Split {
    pub pre_tokenizer: PreTokenizerWrapper,
    pub normalizer: Option<NormalizerWrapper>,
    /// Whether a word that is a token is taken as it is, whatever the merges say.
    pub whole_words: bool,
}

/// The way of a name.
pub(super) fn by_name(metadata: &GgufMetadata, name: &str) -> Result<Split> {
    let bytes = |use_regex: bool| json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex });
    let pattern = |pattern: &str| {
        let split =
            json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false });
        json!({ "type": "Sequence", "pretokenizers": [split, bytes(false)] })
    };
    let (pre_tokenizer, composed, whole_words) = match name {
        "gpt-2" | "default" => (bytes(true), false, false),
        "smollm" => {
            let digits = json!({ "type": "Digits", "individual_digits": true });
            (
                json!({ "type": "Sequence", "pretokenizers": [digits, bytes(true)] }),
                false,
                false,
            )
        }
        "llama3" | "llama-v3" | "llama-bpe" | "falcon3" => (pattern(LLAMA3), false, true),
        "qwen2" | "deepseek-r1-qwen" => (pattern(QWEN2), true, false),
        "qwen35" => (pattern(QWEN35), true, false),
        other => {
            return Err(LmError::Unsupported(format!(
                "{}: texts for it are split as '{other}' says, which is not known; known are gpt-2, default, smollm, \
                 llama-bpe, qwen2, qwen35",
                metadata.path().display()
            )));
        }
    };
    let normalizer = if composed {
        Some(read(metadata, json!({ "type": "NFC" }))?)
    } else {
        None
    };
    Ok(Split {
        pre_tokenizer: read(metadata, pre_tokenizer)?,
        normalizer,
        whole_words,
    })
}

/// A part of a tokenizer as `tokenizer.json` writes it.
pub(super) fn read<T: serde::de::DeserializeOwned>(metadata: &GgufMetadata, part: Value) -> Result<T> {
    serde_json::from_value(part)
        .map_err(|error| metadata.fault(format!("has a tokenizer that cannot be built: {error}")))
}
