//! Qwen3 with a mixture of experts in some or all layers.

use crate::arch::config::Config;
use crate::arch::decoder::{Blueprint, Feed, Layer, Mixer};
use crate::arch::qwen3;
use crate::error::{LmError, Result};
use crate::nn::moe::MoeShape;
use crate::nn::norm::NormWeight;

/// `qwen3_moe`.
pub(crate) fn qwen3_moe(config: &Config<'_>) -> Result<Blueprint> {
    config.require_silu()?;
    let shape = qwen3::attention(config, None)?;
    let window = if config.flag("use_sliding_window", false)? {
        config.count_if("sliding_window")?
    } else {
        None
    };
    let mixture = mixture(config, config.flag("norm_topk_prob", false)?, None)?;
    let feeds = feeds(config, mixture)?;
    let layers = feeds.into_iter().map(|feed| Layer {
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

/// The mixture.
pub(crate) fn mixture(config: &Config<'_>, normalised: bool, shared: Option<i64>) -> Result<MoeShape> {
    let experts = match config.count_if("num_experts")? {
        Some(experts) => experts,
        None => config.count("num_local_experts")?,
    };
    let chosen = config.count("num_experts_per_tok")?;
    if chosen > experts {
        return Err(LmError::Unsupported(format!(
            "'num_experts_per_tok' is {chosen}, more than the {experts} experts that there are"
        )));
    }
    let (hidden, width) = (config.count("hidden_size")?, config.count("moe_intermediate_size")?);
    Ok(MoeShape {
        hidden,
        width,
        experts,
        chosen,
        normalised,
        shared,
    })
}

/// Layers with a mixture: every `decoder_sparse_step`th, less `mlp_only_layers`.
pub(crate) fn feeds(config: &Config<'_>, mixture: MoeShape) -> Result<Vec<Feed>> {
    let dense = config.layer_numbers("mlp_only_layers")?;
    let step = config.count_if("decoder_sparse_step")?.unwrap_or(1);
    let feed = |layer: i64| {
        if dense.contains(&layer) || (layer + 1) % step != 0 {
            Ok(Feed::Mlp {
                width: config.count("intermediate_size")?,
                bias: false,
            })
        } else {
            Ok(Feed::Moe(mixture))
        }
    };
    (0..config.count("num_hidden_layers")?).map(feed).collect()
}
