//! Folders as Hugging Face publishes them.

mod fp8;
mod safetensors;
mod shards;

use std::path::Path;

use serde_json::{Map, Value};

use super::Format;
use super::checkpoint::Checkpoint;
use super::files::{self, format_error};
use super::weights::CheckpointWeights;
use crate::error::Result;

/// Opens a folder with a `config.json` and safetensors files.
pub(super) fn open(folder: &Path) -> Result<Checkpoint> {
    let config_path = folder.join("config.json");
    if !config_path.exists() {
        return Err(format_error(
            &config_path,
            "is missing; a model is a folder with config.json and safetensors files, or a .gguf file",
        ));
    }
    let config = files::read_object(&config_path)?;
    check_model_type(&config_path, &config)?;
    let (shards, ignored) = shards::Shards::open(folder)?;
    let weights = fp8::wrap(folder, &config, Box::new(shards))?;
    let generation_config = files::read_optional_object(&folder.join("generation_config.json"))?.unwrap_or_default();
    Ok(Checkpoint::new(
        folder.to_owned(),
        Format::HuggingFace,
        config,
        generation_config,
        CheckpointWeights::new(weights, ignored),
        None,
    ))
}

fn check_model_type(path: &Path, config: &Map<String, Value>) -> Result<()> {
    match config.get("model_type") {
        Some(Value::String(_)) => Ok(()),
        Some(other) => Err(format_error(
            path,
            format!("'model_type' is {other}, a string is expected"),
        )),
        None => Err(format_error(path, "has no 'model_type', which names the architecture")),
    }
}
