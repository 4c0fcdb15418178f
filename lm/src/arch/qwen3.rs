//! Qwen3: queries and keys are normalised.

use crate::arch::config::Config;
use crate::arch::decoder::Blueprint;
use crate::arch::qwen2;
use crate::error::Result;
use crate::nn::attention::AttentionShape;
use crate::nn::norm::NormWeight;

/// `qwen3`.
pub(crate) fn qwen3(config: &Config<'_>) -> Result<Blueprint> {
    qwen2::dense(config, attention(config, Some(128))?)
}

/// Attention of Qwen3. `width` is that of a head where it is not given.
pub(crate) fn attention(config: &Config<'_>, width: Option<i64>) -> Result<AttentionShape> {
    let (query_heads, key_heads, head_width) = config.heads(width)?;
    let bias = config.flag("attention_bias", false)?;
    Ok(AttentionShape {
        hidden: config.count("hidden_size")?,
        query_heads,
        key_heads,
        head_width,
        input_bias: bias,
        output_bias: bias,
        norm: Some((config.float("rms_norm_eps")?, NormWeight::Factor)),
        gated: false,
    })
}
