//! Counts tokens as a model does: byte-level byte pair encodings, as `tokenizer.json` describes them (GPT, Llama 3, Qwen,
//! DeepSeek and most others). It only counts, for estimates beside what a service reports.

mod counter;
mod merges;
mod split;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value as Json;

pub use counter::TokenCounter;
use merges::Merges;
use split::Splitter;

use crate::named_file;

/// Largest file; those of today have at most about 20 MiB.
const MOST_BYTES: u64 = 256 << 20;

/// A tokenizer.
#[derive(Debug)]
pub struct Tokenizer {
    splitter: Splitter,
    merges: Merges,
}

/// Why a tokenizer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// The file cannot be read.
    #[error("the tokenizer {path} cannot be read: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Cause.
        reason: String,
    },
    /// It is of another kind.
    #[error(
        "the tokenizer {path} is of a kind that cannot be counted with: {reason}; leave the option out for a rough estimate"
    )]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What is not known.
        reason: String,
    },
}

/// What is read of `tokenizer.json`.
#[derive(Debug, Deserialize)]
struct File {
    model: Model,
    #[serde(default)]
    pre_tokenizer: Json,
}

#[derive(Debug, Deserialize)]
struct Model {
    /// Missing in old files.
    #[serde(rename = "type")]
    kind: Option<String>,
    vocab: HashMap<String, u32>,
    #[serde(default)]
    merges: Vec<Merge>,
    #[serde(default)]
    ignore_merges: bool,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
}

/// A merge, in both spellings.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Merge {
    Pair([String; 2]),
    Text(String),
}

impl Tokenizer {
    /// Reads a `tokenizer.json`. It takes a while for a large vocabulary.
    ///
    /// # Errors
    /// When the file cannot be read, or is no byte-level byte pair encoding.
    pub fn read(path: &Path) -> Result<Self, TokenizerError> {
        let unreadable = |reason: String| TokenizerError::Unreadable {
            path: path.to_owned(),
            reason,
        };
        let text = named_file::read(path, MOST_BYTES).map_err(unreadable)?;
        let file: File = serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?;
        Self::of_file(&file).map_err(|reason| TokenizerError::Unsupported {
            path: path.to_owned(),
            reason,
        })
    }

    fn of_file(file: &File) -> Result<Self, String> {
        let model = &file.model;
        if let Some(kind) = model.kind.as_deref().filter(|kind| *kind != "BPE") {
            return Err(format!("its model is a {kind}, not a BPE"));
        }
        for (name, value) in [
            ("continuing_subword_prefix", &model.continuing_subword_prefix),
            ("end_of_word_suffix", &model.end_of_word_suffix),
        ] {
            if value.as_ref().is_some_and(|text| !text.is_empty()) {
                return Err(format!("it has a {name}"));
            }
        }
        Ok(Self {
            splitter: Splitter::of_json(&file.pre_tokenizer)?,
            merges: Merges::of_model(model)?,
        })
    }

    /// Tokens of a text. Names of special tokens count as the text they are.
    pub fn count(&self, text: &str) -> u64 {
        let pieces = self.splitter.pieces(text);
        pieces.iter().map(|piece| self.merges.count(piece.as_bytes())).sum()
    }
}
