//! A checkpoint that was opened: everything about a model but the model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use tch::{Device, Kind};

use super::gguf::Metadata;
use super::info::ModelInfo;
use super::memory;
use super::weights::CheckpointWeights;
use crate::error::Result;
use crate::text::{self, ChatTemplate, Tokenizer};
use crate::weights::Weights;

/// Format of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Format {
    /// A folder with safetensors files.
    #[serde(rename = "huggingface")]
    HuggingFace,
    /// A GGUF file.
    #[serde(rename = "gguf")]
    Gguf,
}

impl std::fmt::Display for Format {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::HuggingFace => "Hugging Face",
            Self::Gguf => "GGUF",
        })
    }
}

/// A checkpoint. Its weights are not in memory: they are read, and dequantised where they are quantised, when a model asks for them.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    format: Format,
    config: Map<String, Value>,
    generation_config: Map<String, Value>,
    weights: Arc<CheckpointWeights>,
    metadata: Option<Arc<Metadata>>,
}

impl Checkpoint {
    pub(super) fn new(
        path: PathBuf,
        format: Format,
        config: Map<String, Value>,
        generation_config: Map<String, Value>,
        weights: CheckpointWeights,
        metadata: Option<Arc<Metadata>>,
    ) -> Self {
        Self {
            path,
            format,
            config,
            generation_config,
            weights: Arc::new(weights),
            metadata,
        }
    }

    /// The folder or file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The configuration, in the keys of a Hugging Face `config.json` whatever the format.
    #[must_use]
    pub fn config(&self) -> &Map<String, Value> {
        &self.config
    }

    /// How its authors sample from it, in the keys of `generation_config.json`. Empty where it does not say.
    #[must_use]
    pub fn generation_config(&self) -> &Map<String, Value> {
        &self.generation_config
    }

    /// The weights.
    #[must_use]
    pub fn weights(&self) -> &Arc<CheckpointWeights> {
        &self.weights
    }

    /// Architecture, as the configuration names it.
    #[must_use]
    pub fn model_type(&self) -> &str {
        self.config
            .get("model_type")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Reads the tokenizer.
    ///
    /// # Errors
    /// When there is none, or it is of a kind that is not known.
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        match &self.metadata {
            Some(metadata) => text::gguf::tokenizer(metadata),
            None => text::hugging_face::tokenizer(&self.path),
        }
    }

    /// Reads the chat template, or a named one where there are several. `None` where the model has none of its own.
    ///
    /// # Errors
    /// When it cannot be read or parsed, or there is none of the name.
    pub fn chat_template(&self, name: Option<&str>) -> Result<Option<ChatTemplate>> {
        match &self.metadata {
            Some(metadata) => text::gguf::chat_template(metadata, name),
            None => text::hugging_face::chat_template(&self.path, name),
        }
    }

    /// Tokens that end a text: those of the generation configuration, else of the configuration, and the tokenizer's own.
    ///
    /// # Errors
    /// When one of them is no token.
    pub fn stop_tokens(&self, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
        let text_config = self.config.get("text_config").and_then(Value::as_object);
        let configured = [Some(&self.generation_config), Some(&self.config), text_config]
            .into_iter()
            .flatten()
            .find_map(|config| config.get("eos_token_id").filter(|value| !value.is_null()));
        let mut tokens = match configured {
            Some(Value::Array(values)) => values
                .iter()
                .map(|value| self.token(value))
                .collect::<Result<Vec<_>>>()?,
            Some(value) => vec![self.token(value)?],
            None => Vec::new(),
        };
        if let Some(end) = tokenizer.end_token().filter(|end| !tokens.contains(end)) {
            tokens.push(end);
        }
        Ok(tokens)
    }

    /// Refuses to load the weights where they do not fit into the memory that is free.
    ///
    /// # Errors
    /// When they do not, or how much is free is not known.
    pub fn check_memory(&self, kind: Kind, device: Device) -> Result<()> {
        let needed = memory::needed(&self.weights.tensors(), kind);
        memory::check(&format!("the model {}", self.path.display()), needed, device)
    }

    fn token(&self, value: &Value) -> Result<u32> {
        value
            .as_u64()
            .and_then(|token| u32::try_from(token).ok())
            .ok_or_else(|| {
                super::files::format_error(&self.path, format!("'eos_token_id' is {value}, which is no token"))
            })
    }

    /// What there is to know of it before it is loaded.
    #[must_use]
    pub fn info(&self) -> ModelInfo {
        ModelInfo::of(self)
    }
}
