//! Qwen3-Next: gated delta nets, and attention with a gate in every fourth layer.

use crate::arch::config::Config;
use crate::arch::decoder::{Blueprint, Feed, Layer, Mixer};
use crate::arch::{qwen3, qwen3_moe};
use crate::error::{LmError, Result};
use crate::nn::gated_delta::{DeltaLayout, DeltaShape};
use crate::nn::norm::NormWeight;

/// `qwen3_next`.
pub(crate) fn qwen3_next(config: &Config<'_>) -> Result<Blueprint> {
    let shared = config.count("shared_expert_intermediate_size")?;
    let mixture = qwen3_moe::mixture(config, config.flag("norm_topk_prob", true)?, Some(shared))?;
    hybrid(config, qwen3_moe::feeds(config, mixture)?, DeltaLayout::ByKeyHead)
}

/// Layers of both kinds.
pub(crate) fn hybrid(config: &Config<'_>, feeds: Vec<Feed>, layout: DeltaLayout) -> Result<Blueprint> {
    config.require_silu()?;
    let mut attention = qwen3::attention(config, Some(256))?;
    attention.norm = Some((config.float("rms_norm_eps")?, NormWeight::FactorLessOne));
    attention.gated = true;
    let delta = DeltaShape {
        hidden: attention.hidden,
        key_heads: config.count("linear_num_key_heads")?,
        value_heads: config.count("linear_num_value_heads")?,
        key_width: config.count("linear_key_head_dim")?,
        value_width: config.count("linear_value_head_dim")?,
        conv_width: config.count("linear_conv_kernel_dim")?,
    };
    if delta.value_heads % delta.key_heads != 0 {
        return Err(LmError::Unsupported(format!(
            "'linear_num_value_heads' is {}, which is no multiple of 'linear_num_key_heads', {}",
            delta.value_heads, delta.key_heads
        )));
    }
    let layers = config.count("num_hidden_layers")?;
    let interval = config.count_if("full_attention_interval")?.unwrap_or(4);
    let types = config.names("layer_types", layers)?.unwrap_or_else(|| {
        let name = |layer: i64| {
            if (layer + 1) % interval == 0 {
                "full_attention"
            } else {
                "linear_attention"
            }
        };
        (0..layers).map(name).collect()
    });
    let layer = |(name, feed): (&str, Feed)| {
        let mixer = match name {
            "full_attention" => Mixer::Attention {
                shape: attention,
                window: None,
            },
            "linear_attention" => Mixer::Delta { shape: delta, layout },
            other => {
                return Err(LmError::Unsupported(format!(
                    "layers of the type '{other}' are not known in {}",
                    config.model_type()
                )));
            }
        };
        Ok(Layer { mixer, feed })
    };
    let layers = types.into_iter().zip(feeds).map(layer).collect::<Result<Vec<_>>>()?;
    Blueprint::new(
        config,
        layers,
        config.rope(attention.head_width, 0.25)?,
        NormWeight::FactorLessOne,
    )
}
