//! Qwen2 and Qwen2.5: queries, keys and values have a bias, and some layers may have a window.

use crate::arch::config::Config;
use crate::arch::decoder::{Blueprint, Feed, Layer, Mixer};
use crate::error::{LmError, Result};
use crate::nn::attention::AttentionShape;
use crate::nn::norm::NormWeight;

/// `qwen2`.
pub(crate) fn qwen2(config: &Config<'_>) -> Result<Blueprint> {
    let (query_heads, key_heads, head_width) = config.heads(None)?;
    let shape = AttentionShape {
        hidden: config.count("hidden_size")?,
        query_heads,
        key_heads,
        head_width,
        input_bias: true,
        output_bias: false,
        norm: None,
        gated: false,
    };
    dense(config, shape)
}

/// Layers of attention and MLP, some with a window.
pub(crate) fn dense(config: &Config<'_>, shape: AttentionShape) -> Result<Blueprint> {
    config.require_silu()?;
    let feed = Feed::Mlp {
        width: config.count("intermediate_size")?,
        bias: false,
    };
    let layers = windows(config)?.into_iter().map(|window| Layer {
        mixer: Mixer::Attention { shape, window },
        feed,
    });
    Blueprint::new(
        config,
        layers.collect(),
        config.rope(shape.head_width, 1.0)?,
        NormWeight::Factor,
    )
}

/// The window of each layer: those named so in `layer_types`, or all from `max_window_layers` on.
fn windows(config: &Config<'_>) -> Result<Vec<Option<i64>>> {
    let layers = config.count("num_hidden_layers")?;
    let window = if config.flag("use_sliding_window", false)? {
        config.count_if("sliding_window")?
    } else {
        None
    };
    let Some(types) = config.names("layer_types", layers)? else {
        let Some(window) = window else {
            return Ok((0..layers).map(|_| None).collect());
        };
        let first = config.count_if("max_window_layers")?.unwrap_or(28);
        return Ok((0..layers).map(|layer| (layer >= first).then_some(window)).collect());
    };
    let window_of = |name: &str| {
        match (name, window) {
        ("full_attention", _) => Ok(None),
        ("sliding_attention", Some(window)) => Ok(Some(window)),
        ("sliding_attention", None) => Err(LmError::Unsupported(
            "'layer_types' of the configuration has a 'sliding_attention', but 'use_sliding_window' and 'sliding_window' give no \
             window"
                .into(),
        )),
        (other, _) => Err(LmError::Unsupported(format!("layers of the type '{other}' are not known in {}", config.model_type()))),
    }
    };
    types.into_iter().map(window_of).collect()
}
