//! Architectures that are known in GGUF files.

use super::metadata::Metadata;
use crate::error::{LmError, Result};

/// An architecture, as `general.architecture` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    Llama,
    Qwen2,
    Qwen3,
    Qwen3Moe,
    Qwen35,
    Qwen35Moe,
}

/// Heads of a linear attention.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinearHeads {
    pub keys: i64,
    pub key_size: i64,
    pub values: i64,
    pub value_size: i64,
}

impl Architecture {
    const ALL: [Self; 6] = [
        Self::Llama,
        Self::Qwen2,
        Self::Qwen3,
        Self::Qwen3Moe,
        Self::Qwen35,
        Self::Qwen35Moe,
    ];

    /// The architecture of a file.
    pub(super) fn of(metadata: &Metadata) -> Result<Self> {
        let name: String = metadata.required("general.architecture")?;
        Self::ALL
            .into_iter()
            .find(|architecture| architecture.gguf_name() == name)
            .ok_or_else(|| {
                let known: Vec<&str> = Self::ALL.iter().map(|architecture| architecture.gguf_name()).collect();
                LmError::Unsupported(format!(
                    "{}: the architecture '{name}' is not known; known in GGUF files are {}",
                    metadata.path().display(),
                    known.join(", ")
                ))
            })
    }

    /// Its name in GGUF files, with which its keys begin.
    pub(super) const fn gguf_name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Qwen3Moe => "qwen3moe",
            Self::Qwen35 => "qwen35",
            Self::Qwen35Moe => "qwen35moe",
        }
    }

    /// Its name in configurations of Hugging Face.
    pub(super) const fn model_type(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Qwen3Moe => "qwen3_moe",
            Self::Qwen35 => "qwen3_5_text",
            Self::Qwen35Moe => "qwen3_5_moe_text",
        }
    }

    /// Whether most layers have a gated delta net in place of attention.
    pub(super) const fn is_hybrid(self) -> bool {
        matches!(self, Self::Qwen35 | Self::Qwen35Moe)
    }

    /// Whether layers have experts.
    pub(super) const fn has_experts(self) -> bool {
        matches!(self, Self::Qwen3Moe | Self::Qwen35Moe)
    }

    /// Whether weights of norms are centred at zero in the model, and at one in the file.
    pub(super) const fn has_offset_norms(self) -> bool {
        self.is_hybrid()
    }
}
