//! Qwen3.5 and Qwen3.6, the language model: layers as in Qwen3-Next, with projections that are stored apart.

use crate::arch::config::Config;
use crate::arch::decoder::{Blueprint, Feed};
use crate::arch::{qwen3_moe, qwen3_next};
use crate::error::Result;
use crate::nn::gated_delta::DeltaLayout;

/// `qwen3_5_moe_text`.
pub(crate) fn moe(config: &Config<'_>) -> Result<Blueprint> {
    let shared = config.count("shared_expert_intermediate_size")?;
    alike(config, Feed::Moe(qwen3_moe::mixture(config, true, Some(shared))?))
}

/// `qwen3_5_text`.
pub(crate) fn dense(config: &Config<'_>) -> Result<Blueprint> {
    alike(
        config,
        Feed::Mlp {
            width: config.count("intermediate_size")?,
            bias: false,
        },
    )
}

fn alike(config: &Config<'_>, feed: Feed) -> Result<Blueprint> {
    let layers = usize::try_from(config.count("num_hidden_layers")?).unwrap_or_default();
    qwen3_next::hybrid(config, vec![feed; layers], DeltaLayout::Separate)
}
