//! Architectures: what a configuration says, as a composition of modules.

mod config;
mod decoder;
mod llama;
mod qwen2;
mod qwen3;
mod qwen3_5;
mod qwen3_moe;
mod qwen3_next;

use serde_json::{Map, Value};
use tch::{Device, Kind};

use self::config::Config;
use self::decoder::{Blueprint, Decoder};
use crate::error::{LmError, Result};
use crate::model::CausalLm;
use crate::weights::Weights;

/// Reads a configuration.
type Read = fn(&Config<'_>) -> Result<Blueprint>;

/// Architectures by `model_type`.
const ARCHITECTURES: &[(&str, Read)] = &[
    ("llama", llama::llama),
    ("mistral", llama::mistral),
    ("qwen2", qwen2::qwen2),
    ("qwen3", qwen3::qwen3),
    ("qwen3_5", qwen3_5::dense),
    ("qwen3_5_text", qwen3_5::dense),
    ("qwen3_5_moe", qwen3_5::moe),
    ("qwen3_5_moe_text", qwen3_5::moe),
    ("qwen3_moe", qwen3_moe::qwen3_moe),
    ("qwen3_next", qwen3_next::qwen3_next),
];

/// The `model_type`s that can be built.
pub fn model_types() -> impl Iterator<Item = &'static str> {
    ARCHITECTURES.iter().map(|(name, _)| *name)
}

/// Makes a model of a configuration, as `config.json` holds it, and a checkpoint.
///
/// # Errors
/// When the architecture or a feature that the configuration asks for is not known, a key is missing or is of another type, a tensor
/// is missing or has another shape, or cannot be read.
pub fn build(
    config: &Map<String, Value>,
    weights: &dyn Weights,
    kind: Kind,
    device: Device,
) -> Result<Box<dyn CausalLm>> {
    let config = Config::new(config)?;
    let Some((_, read)) = ARCHITECTURES.iter().find(|(name, _)| *name == config.model_type()) else {
        return Err(LmError::Unsupported(format!(
            "models of the type '{}' are not known here, only {}",
            config.model_type(),
            model_types().collect::<Vec<_>>().join(", ")
        )));
    };
    Ok(Box::new(Decoder::new(read(&config)?, weights, kind, device)?))
}
