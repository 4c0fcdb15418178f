//! Llama and what shares its shape: SmolLM2, and Mistral with its window.

use crate::arch::config::Config;
use crate::arch::decoder::{Blueprint, Feed, Layer, Mixer};
use crate::error::Result;
use crate::nn::attention::AttentionShape;
use crate::nn::norm::NormWeight;

/// `llama`.
pub(crate) fn llama(config: &Config<'_>) -> Result<Blueprint> {
    let bias = config.flag("attention_bias", false)?;
    plain(config, bias, config.flag("mlp_bias", false)?, None)
}

/// `mistral`.
pub(crate) fn mistral(config: &Config<'_>) -> Result<Blueprint> {
    plain(config, false, false, config.count_if("sliding_window")?)
}

fn plain(config: &Config<'_>, bias: bool, mlp_bias: bool, window: Option<i64>) -> Result<Blueprint> {
    config.require_silu()?;
    let hidden = config.count("hidden_size")?;
    let (query_heads, key_heads, head_width) = config.heads(None)?;
    let shape = AttentionShape {
        hidden,
        query_heads,
        key_heads,
        head_width,
        input_bias: bias,
        output_bias: bias,
        norm: None,
        gated: false,
    };
    let layer = Layer {
        mixer: Mixer::Attention { shape, window },
        feed: Feed::Mlp {
            width: config.count("intermediate_size")?,
            bias: mlp_bias,
        },
    };
    let layers = vec![layer; usize::try_from(config.count("num_hidden_layers")?).unwrap_or_default()];
    Blueprint::new(config, layers, config.rope(head_width, 1.0)?, NormWeight::Factor)
}
