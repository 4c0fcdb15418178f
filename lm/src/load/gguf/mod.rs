//! GGUF files, as llama.cpp writes them.

mod architecture;
mod config;
mod dequant;
mod header;
mod metadata;
mod names;
mod rope;
mod tensors;

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use self::dequant::GgmlType;
pub(crate) use self::metadata::Metadata;
use super::Format;
use super::checkpoint::Checkpoint;
use super::files;
use super::weights::CheckpointWeights;
use crate::error::{LmError, Result};

/// Opens a file.
pub(super) fn open(path: &Path) -> Result<Checkpoint> {
    let file = files::map(path)?;
    let header::Header { metadata, tensors } = header::read(path, &file)?;
    refuse_parts(&metadata)?;
    let factors = tensors.get("rope_freqs.weight").map(|entry| {
        let elements = entry.shape.iter().product::<i64>() as usize;
        let mut values = vec![0.0; elements];
        entry.ggml_type.dequantize(&file[entry.bytes.clone()], &mut values);
        values
    });
    let (config, layout) = config::read(&metadata, &tensors, factors.as_deref())?;
    let generation_config = generation_config(&metadata)?;
    let names::Named { recipes, ignored } = names::name(&tensors, &layout);
    let weights = tensors::GgufWeights::new(path.to_owned(), file, tensors, recipes)?;
    Ok(Checkpoint::new(
        path.to_owned(),
        Format::Gguf,
        config,
        generation_config,
        CheckpointWeights::new(Box::new(weights), ignored),
        Some(Arc::new(metadata)),
    ))
}

/// Bytes that a number of floats has in a block format, by its name.
pub(super) fn quantized_bytes(format: &str, elements: u64) -> Option<u64> {
    let format = GgmlType::by_name(format)?;
    Some(elements / format.block_elements() as u64 * format.block_bytes() as u64)
}

fn refuse_parts(metadata: &Metadata) -> Result<()> {
    match metadata.optional::<u32>("split.count")? {
        Some(parts) if parts > 1 => Err(LmError::Unsupported(format!(
            "{}: the model is split into {parts} files; join them with llama-gguf-split --merge",
            metadata.path().display()
        ))),
        _ => Ok(()),
    }
}

/// What a file says of sampling, in the keys of Hugging Face.
fn generation_config(metadata: &Metadata) -> Result<Map<String, Value>> {
    let mut config = Map::new();
    let floats = [
        ("temp", "temperature"),
        ("top_p", "top_p"),
        ("min_p", "min_p"),
        ("penalty_repeat", "repetition_penalty"),
    ];
    for (key, ours) in floats {
        if let Some(value) = metadata.optional::<f64>(&format!("general.sampling.{key}"))? {
            config.insert(ours.to_owned(), value.into());
        }
    }
    if let Some(top_k) = metadata.optional::<i32>("general.sampling.top_k")? {
        config.insert("top_k".to_owned(), top_k.into());
    }
    let mut ends: Vec<Value> = Vec::new();
    for key in ["eos", "eot", "eom"] {
        let token = metadata
            .optional::<u32>(&format!("tokenizer.ggml.{key}_token_id"))?
            .map(Value::from);
        ends.extend(token.filter(|token| !ends.contains(token)));
    }
    if !ends.is_empty() {
        config.insert("eos_token_id".to_owned(), ends.into());
    }
    Ok(config)
}
