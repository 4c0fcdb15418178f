//! Attention with log-sum-exp: the library's fused kernel on CPU, two multiplications elsewhere.

use tch::{Device, Kind, Tensor};

use crate::error::Result;

/// Bytes of scores that are made at once where there is no fused kernel.
const SCORE_BYTES: i64 = 256 << 20;

/// Attention of queries `[batch, heads, n, width]` to keys and values `[batch, heads, m, width]`, which may have any strides as long
/// as the numbers of a head are adjacent. Gives the output, of the shape of the queries, and the log-sum-exp of the scores, float32
/// `[batch, heads, n]`.
pub(crate) fn attend(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    mask: Option<&Tensor>,
    causal: bool,
    scale: f64,
) -> Result<(Tensor, Tensor)> {
    if queries.device() == Device::Cpu {
        // The kernel takes masks in the format of the queries.
        let mask = mask.map(|mask| mask.f_to_kind(queries.f_kind()?)).transpose()?;
        return Ok(Tensor::f_internal_scaled_dot_product_flash_attention_for_cpu(
            queries, keys, values, 0.0, causal, mask, scale,
        )?);
    }
    plain(queries, keys, values, mask, causal, scale)
}

/// Scores in float32, as many rows at once as fit a bound of memory.
fn plain(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    mask: Option<&Tensor>,
    causal: bool,
    scale: f64,
) -> Result<(Tensor, Tensor)> {
    let (batch, heads, len, _) = queries.size4()?;
    let seen = keys.size4()?.2;
    let at_once = (SCORE_BYTES / (4 * batch * heads * seen).max(1)).clamp(1, len.max(1));
    let across = keys.f_transpose(2, 3)?;
    let (mut outputs, mut sums) = (Vec::new(), Vec::new());
    let mut start = 0;
    while start < len {
        let rows = at_once.min(len - start);
        let part = queries.f_narrow(2, start, rows)?.f_mul_scalar(scale)?;
        let mut scores = part.f_matmul(&across)?.f_to_kind(Kind::Float)?;
        if let Some(mask) = mask {
            // A mask of one row is that of all rows.
            let each = mask
                .size()
                .iter()
                .rev()
                .nth(1)
                .is_some_and(|&rows| rows == len && len > 1);
            let _ = if each {
                scores.f_add_(&mask.f_narrow(-2, start, rows)?)?
            } else {
                scores.f_add_(mask)?
            };
        }
        if causal {
            let later = Tensor::f_ones([rows, seen], (Kind::Bool, queries.device()))?.f_triu(start + 1)?;
            let _ = scores.f_masked_fill_(&later, f64::NEG_INFINITY)?;
        }
        let sum = scores.f_logsumexp([-1].as_slice(), true)?;
        let weights = scores.f_sub_(&sum)?.f_exp_()?.f_to_kind(queries.f_kind()?)?;
        outputs.push(weights.f_matmul(values)?);
        sums.push(sum.f_squeeze_dim(-1)?);
        start += rows;
    }
    Ok((Tensor::f_cat(&outputs, 2)?, Tensor::f_cat(&sums, 2)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tch::{Device, Kind, Tensor};

    use super::{attend, plain};

    #[test]
    fn both_ways_agree() {
        tch::manual_seed(3);
        let random = |len: i64| Tensor::randn([2, 3, len, 8], (Kind::Float, Device::Cpu));
        let (queries, keys, values) = (random(5), random(5), random(5));
        let mask = Tensor::zeros([2, 1, 1, 5], (Kind::Float, Device::Cpu));
        let _ = mask.select(0, 1).narrow(2, 3, 2).fill_(f64::NEG_INFINITY);
        let full = mask.expand([2, 1, 5, 5], false).contiguous();
        for (mask, causal) in [(None, false), (None, true), (Some(&mask), false), (Some(&full), false)] {
            let (fused, fused_sum) = attend(&queries, &keys, &values, mask, causal, 0.3).unwrap();
            let (simple, simple_sum) = plain(&queries, &keys, &values, mask, causal, 0.3).unwrap();
            assert!((fused - simple).abs().max().double_value(&[]) < 1e-5);
            assert!((fused_sum - simple_sum).abs().max().double_value(&[]) < 1e-5);
        }
    }
}
