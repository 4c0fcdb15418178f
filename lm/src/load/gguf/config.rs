//! The configuration of a GGUF file in the keys of Hugging Face.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::architecture::{Architecture, LinearHeads};
use super::header::Entry;
use super::metadata::{FromValue, Metadata};
use super::names::Layout;
use super::rope;
use crate::error::{LmError, Result};

/// Larger than any size in a model.
const MAX_SIZE: u64 = 1 << 24;

/// Reads keys that begin with the architecture's name.
struct Keys<'a> {
    metadata: &'a Metadata,
    prefix: &'static str,
}

impl Keys<'_> {
    fn required<T: FromValue>(&self, key: &str) -> Result<T> {
        self.metadata.required(&format!("{}.{key}", self.prefix))
    }

    fn optional<T: FromValue>(&self, key: &str) -> Result<Option<T>> {
        self.metadata.optional(&format!("{}.{key}", self.prefix))
    }

    fn has(&self, key: &str) -> bool {
        self.metadata.has(&format!("{}.{key}", self.prefix))
    }

    /// A size. Others are divided by it and multiplied with it.
    fn positive(&self, key: &str) -> Result<u64> {
        match self.required(key)? {
            value @ 1..=MAX_SIZE => Ok(value),
            value => Err(self
                .metadata
                .fault(format!("the key '{}.{key}' is {value}, which cannot be", self.prefix))),
        }
    }
}

/// Sizes that several keys follow from.
struct Sizes {
    layers: u64,
    hidden: u64,
    heads: u64,
    key_value_heads: u64,
    head: u64,
    rope_theta: f64,
}

/// The configuration, and what the layout of tensors follows from.
pub(super) fn read(
    metadata: &Metadata,
    entries: &BTreeMap<String, Entry>,
    rope_factors: Option<&[f32]>,
) -> Result<(Map<String, Value>, Layout)> {
    let architecture = Architecture::of(metadata)?;
    let keys = Keys {
        metadata,
        prefix: architecture.gguf_name(),
    };
    refuse_variants(&keys, architecture)?;
    let sizes = sizes(&keys, architecture)?;

    let mut config = Map::new();
    let mut set = |key: &str, value: Value| {
        config.insert(key.to_owned(), value);
    };
    set("model_type", architecture.model_type().into());
    set("hidden_act", "silu".into());
    set("hidden_size", sizes.hidden.into());
    set("num_hidden_layers", sizes.layers.into());
    set("num_attention_heads", sizes.heads.into());
    set("num_key_value_heads", sizes.key_value_heads.into());
    set("head_dim", sizes.head.into());
    set(
        "max_position_embeddings",
        keys.required::<u64>("context_length")?.into(),
    );
    set(
        "rms_norm_eps",
        keys.required::<f64>("attention.layer_norm_rms_epsilon")?.into(),
    );
    set("vocab_size", vocabulary(metadata, entries)?.into());
    // llama.cpp writes the output projection only where it is not the embedding.
    set("tie_word_embeddings", (!entries.contains_key("output.weight")).into());
    set("attention_bias", entries.contains_key("blk.0.attn_q.bias").into());
    set("mlp_bias", entries.contains_key("blk.0.ffn_gate.bias").into());
    // A model of experts alone has no dense layer whose width could be told.
    let width: Option<u64> = keys.optional("feed_forward_length")?;
    match width {
        Some(width) => set("intermediate_size", width.into()),
        None if architecture.has_experts() => {}
        None => set("intermediate_size", keys.required::<u64>("feed_forward_length")?.into()),
    }
    for (key, ours) in [
        ("bos", "bos_token_id"),
        ("eos", "eos_token_id"),
        ("padding", "pad_token_id"),
    ] {
        if let Some(token) = metadata.optional::<u32>(&format!("tokenizer.ggml.{key}_token_id"))? {
            set(ours, token.into());
        }
    }
    if architecture.has_experts() {
        set("num_experts", keys.positive("expert_count")?.into());
        set("num_experts_per_tok", keys.positive("expert_used_count")?.into());
        set(
            "moe_intermediate_size",
            keys.positive("expert_feed_forward_length")?.into(),
        );
        set("norm_topk_prob", true.into());
    }
    if architecture == Architecture::Qwen3Moe {
        set("decoder_sparse_step", 1.into());
        set("mlp_only_layers", json!([]));
    }
    if architecture == Architecture::Qwen35Moe {
        set(
            "shared_expert_intermediate_size",
            keys.positive("expert_shared_feed_forward_length")?.into(),
        );
    }
    let linear = if architecture.is_hybrid() {
        Some(hybrid(&keys, &sizes, &mut config)?)
    } else {
        config.insert("rope_theta".to_owned(), sizes.rope_theta.into());
        if let Some(scaling) = scaling(&keys, &sizes, rope_factors)? {
            config.insert("rope_scaling".to_owned(), scaling);
        }
        None
    };
    let layout = Layout {
        architecture,
        layers: sizes.layers,
        heads: sizes.heads as i64,
        key_value_heads: sizes.key_value_heads as i64,
        linear,
    };
    Ok((config, layout))
}

/// Models that share a name with one that is known but compute something else.
fn refuse_variants(keys: &Keys<'_>, architecture: Architecture) -> Result<()> {
    let refuse = |what: &str| {
        Err(LmError::Unsupported(format!(
            "{}: {what}, which is not supported",
            keys.metadata.path().display()
        )))
    };
    if !architecture.has_experts() && keys.optional::<u64>("expert_count")?.is_some_and(|experts| experts > 0) {
        return refuse(&format!("the architecture '{}' with experts", keys.prefix));
    }
    if keys
        .optional::<u64>("attention.sliding_window")?
        .is_some_and(|window| window > 0)
    {
        return refuse(&format!("the architecture '{}' with a sliding window", keys.prefix));
    }
    Ok(())
}

fn sizes(keys: &Keys<'_>, architecture: Architecture) -> Result<Sizes> {
    let hidden = keys.positive("embedding_length")?;
    let heads = keys.positive("attention.head_count")?;
    let head = match keys.optional("attention.key_length")? {
        Some(size) => size,
        None if architecture == Architecture::Llama => keys.optional("rope.dimension_count")?.unwrap_or(hidden / heads),
        None => hidden / heads,
    };
    let predicting: u64 = keys.optional("nextn_predict_layers")?.unwrap_or(0);
    let blocks = keys.positive("block_count")?;
    let layers = blocks.checked_sub(predicting).ok_or_else(|| {
        keys.metadata.fault(format!(
            "has {blocks} layers, of which {predicting} are said to predict further tokens"
        ))
    })?;
    Ok(Sizes {
        layers,
        hidden,
        heads,
        key_value_heads: if keys.has("attention.head_count_kv") {
            keys.positive("attention.head_count_kv")?
        } else {
            heads
        },
        head,
        rope_theta: keys.optional("rope.freq_base")?.unwrap_or(10_000.0),
    })
}

/// Rows of the embedding, which is what logits have; the tokenizer may know fewer tokens.
fn vocabulary(metadata: &Metadata, entries: &BTreeMap<String, Entry>) -> Result<i64> {
    match entries.get("token_embd.weight").map(|entry| entry.shape.as_slice()) {
        Some([rows, _]) => Ok(*rows),
        Some(shape) => Err(metadata.fault(format!("has the tensor 'token_embd.weight' with the shape {shape:?}"))),
        None => Err(metadata.fault("has no tensor 'token_embd.weight'")),
    }
}

fn scaling(keys: &Keys<'_>, sizes: &Sizes, factors: Option<&[f32]>) -> Result<Option<Value>> {
    if let Some(factors) = factors {
        return rope::llama3(keys.metadata, factors, sizes.rope_theta, sizes.head).map(Some);
    }
    let Some(kind) = keys.optional::<String>("rope.scaling.type")? else {
        return match keys.optional::<f64>("rope.scale_linear")? {
            Some(factor) if factor != 1.0 => Ok(Some(json!({ "rope_type": "linear", "factor": factor }))),
            _ => Ok(None),
        };
    };
    match kind.as_str() {
        "none" => Ok(None),
        "linear" => Ok(Some(
            json!({ "rope_type": "linear", "factor": keys.required::<f64>("rope.scaling.factor")? }),
        )),
        "yarn" => {
            let mut scaling = json!({
                "rope_type": "yarn",
                "factor": keys.required::<f64>("rope.scaling.factor")?,
                "original_max_position_embeddings": keys.required::<u64>("rope.scaling.original_context_length")?,
            });
            // In llama.cpp it multiplies what Hugging Face's `attention_factor` replaces.
            if keys
                .optional::<f64>("rope.scaling.attn_factor")?
                .is_some_and(|factor| factor != 1.0)
            {
                let key = format!("{}.rope.scaling.attn_factor", keys.prefix);
                return Err(LmError::Unsupported(format!(
                    "{}: '{key}' is not supported",
                    keys.metadata.path().display()
                )));
            }
            let settings = [("yarn_beta_fast", "beta_fast"), ("yarn_beta_slow", "beta_slow")];
            for (key, ours) in settings {
                if let Some(value) = keys.optional::<f64>(&format!("rope.scaling.{key}"))? {
                    scaling[ours] = value.into();
                }
            }
            Ok(Some(scaling))
        }
        other => Err(LmError::Unsupported(format!(
            "{}: the rotary scaling '{other}' is not supported",
            keys.metadata.path().display()
        ))),
    }
}

/// Layers with a gated delta net, and those with attention between them.
fn hybrid(keys: &Keys<'_>, sizes: &Sizes, config: &mut Map<String, Value>) -> Result<LinearHeads> {
    let interval = keys.positive("full_attention_interval")?;
    let value_heads = keys.positive("ssm.time_step_rank")?;
    let linear = LinearHeads {
        keys: keys.positive("ssm.group_count")? as i64,
        key_size: keys.positive("ssm.state_size")? as i64,
        values: value_heads as i64,
        value_size: (keys.positive("ssm.inner_size")? / value_heads) as i64,
    };
    if linear.values % linear.keys != 0 {
        let problem = format!(
            "has {} value heads for {} key heads, which is no multiple",
            linear.values, linear.keys
        );
        return Err(keys.metadata.fault(problem));
    }
    let layer_types: Vec<&str> = (1..=sizes.layers)
        .map(|layer| {
            if layer % interval == 0 {
                "full_attention"
            } else {
                "linear_attention"
            }
        })
        .collect();
    let sections: Vec<u64> = keys.required("rope.dimension_sections")?;
    let sections: Vec<u64> = sections.into_iter().filter(|section| *section > 0).collect();
    let settings = json!({
        "full_attention_interval": interval,
        "layer_types": layer_types,
        "linear_conv_kernel_dim": keys.positive("ssm.conv_kernel")?,
        "linear_key_head_dim": linear.key_size,
        "linear_num_key_heads": linear.keys,
        "linear_num_value_heads": linear.values,
        "linear_value_head_dim": linear.value_size,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": sizes.rope_theta,
            "mrope_section": sections,
            "mrope_interleaved": true,
            "partial_rotary_factor": keys.positive("rope.dimension_count")? as f64 / sizes.head as f64,
        },
    });
    if let Value::Object(settings) = settings {
        config.extend(settings);
    }
    Ok(linear)
}
