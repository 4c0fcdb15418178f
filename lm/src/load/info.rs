//! What there is to know of a checkpoint before it is loaded.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;
use tch::Kind;

use super::checkpoint::{Checkpoint, Format};
use super::{gguf, memory};
use crate::weights::{Dtype, TensorInfo, Weights};

/// Tensors of one number format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FormatBytes {
    /// The number format.
    pub dtype: String,
    /// How many tensors.
    pub tensors: usize,
    /// Their bytes in the checkpoint.
    pub bytes: u64,
}

/// Facts of a checkpoint. What the configuration does not say is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelInfo {
    /// The folder or file.
    pub path: PathBuf,
    /// Format of the checkpoint.
    pub format: Format,
    /// Architecture, as the configuration names it.
    pub model_type: String,
    /// Number of parameters.
    pub parameters: u64,
    /// Layers.
    pub layers: Option<u64>,
    /// Width of a layer.
    pub hidden_size: Option<u64>,
    /// Heads of attention.
    pub heads: Option<u64>,
    /// Heads of keys and values.
    pub key_value_heads: Option<u64>,
    /// Experts of a layer.
    pub experts: Option<u64>,
    /// Positions that the model was made for.
    pub context: Option<u64>,
    /// Size of the vocabulary.
    pub vocabulary: Option<u64>,
    /// Number formats of the weights, the largest first.
    pub dtypes: Vec<FormatBytes>,
    /// Kind of the tokenizer; absent where there is none.
    pub tokenizer: Option<String>,
    /// Why the tokenizer cannot be used.
    pub tokenizer_fault: Option<String>,
    /// Whether there is a chat template.
    pub chat_template: bool,
    /// Why the chat template cannot be used.
    pub chat_template_fault: Option<String>,
    /// Bytes of memory for the weights in 32-bit floats.
    pub memory_f32: u64,
    /// Bytes of memory for the weights in bfloat16.
    pub memory_bf16: u64,
    /// Tensors that are no part of the language model.
    pub ignored: usize,
}

impl ModelInfo {
    pub(super) fn of(checkpoint: &Checkpoint) -> Self {
        let tensors = checkpoint.weights().tensors();
        // Of a multimodal model the language model's part counts.
        let config = match checkpoint.config().get("text_config") {
            Some(Value::Object(text)) => text,
            _ => checkpoint.config(),
        };
        let number = |keys: &[&str]| keys.iter().find_map(|key| config.get(*key)?.as_u64());
        let (tokenizer, tokenizer_fault) = match checkpoint.tokenizer() {
            Ok(tokenizer) => (Some(tokenizer.kind().to_owned()), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let (chat_template, chat_template_fault) = match checkpoint.chat_template(None) {
            Ok(template) => (template.is_some(), None),
            Err(error) => (false, Some(error.to_string())),
        };
        Self {
            path: checkpoint.path().to_owned(),
            format: checkpoint.format(),
            model_type: checkpoint.model_type().to_owned(),
            parameters: tensors.iter().map(memory::elements).sum(),
            layers: number(&["num_hidden_layers"]),
            hidden_size: number(&["hidden_size"]),
            heads: number(&["num_attention_heads"]),
            key_value_heads: number(&["num_key_value_heads"]),
            experts: number(&["num_experts", "num_local_experts"]),
            context: number(&["max_position_embeddings"]),
            vocabulary: number(&["vocab_size"]),
            dtypes: dtypes(&tensors),
            tokenizer,
            tokenizer_fault,
            chat_template,
            chat_template_fault,
            memory_f32: memory::needed(&tensors, Kind::Float),
            memory_bf16: memory::needed(&tensors, Kind::BFloat16),
            ignored: checkpoint.weights().ignored().len(),
        }
    }
}

fn dtypes(tensors: &[TensorInfo]) -> Vec<FormatBytes> {
    let mut formats: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for tensor in tensors {
        let elements = memory::elements(tensor);
        let (name, bytes) = match tensor.dtype {
            Dtype::F32 => ("F32", elements * 4),
            Dtype::F16 => ("F16", elements * 2),
            Dtype::Bf16 => ("BF16", elements * 2),
            Dtype::F8E4m3 => ("F8_E4M3", elements),
            Dtype::Quantized(name) => (name, gguf::quantized_bytes(name, elements).unwrap_or(elements)),
        };
        let format = formats.entry(name).or_default();
        format.0 += 1;
        format.1 += bytes;
    }
    let mut formats: Vec<FormatBytes> = formats
        .into_iter()
        .map(|(dtype, (tensors, bytes))| FormatBytes {
            dtype: dtype.to_owned(),
            tensors,
            bytes,
        })
        .collect();
    formats.sort_by_key(|format| std::cmp::Reverse(format.bytes));
    formats
}

/// A number of bytes, short.
fn short(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if unit == "B" {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {unit}")
    }
}

impl fmt::Display for ModelInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, value: String| writeln!(formatter, "{name:<14}{value}");
        let number = |value: Option<u64>| value.map_or_else(|| "not told".to_owned(), |value| value.to_string());
        line("path", self.path.display().to_string())?;
        line("format", self.format.to_string())?;
        line("architecture", self.model_type.clone())?;
        line(
            "parameters",
            format!("{} ({:.2} billion)", self.parameters, self.parameters as f64 / 1e9),
        )?;
        line("layers", number(self.layers))?;
        line("hidden size", number(self.hidden_size))?;
        let heads = format!(
            "{}, of keys and values {}",
            number(self.heads),
            number(self.key_value_heads)
        );
        line("heads", heads)?;
        if self.experts.is_some() {
            line("experts", number(self.experts))?;
        }
        line("context", number(self.context))?;
        line("vocabulary", number(self.vocabulary))?;
        for format in &self.dtypes {
            line(
                "weights",
                format!(
                    "{} tensors in {}, {}",
                    format.tensors,
                    format.dtype,
                    short(format.bytes)
                ),
            )?;
        }
        let or_fault = |fault: &Option<String>, value: &str| fault.clone().unwrap_or_else(|| value.to_owned());
        line(
            "tokenizer",
            or_fault(&self.tokenizer_fault, self.tokenizer.as_deref().unwrap_or("none")),
        )?;
        line(
            "chat template",
            or_fault(&self.chat_template_fault, if self.chat_template { "yes" } else { "no" }),
        )?;
        line(
            "memory",
            format!(
                "{} in float32, {} in bfloat16",
                short(self.memory_f32),
                short(self.memory_bf16)
            ),
        )?;
        line(
            "left out",
            format!("{} tensors that are no part of the language model", self.ignored),
        )
    }
}
