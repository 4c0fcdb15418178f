//! Attention: of many rows of queries to keys that all or the earlier ones of them see, and of single tokens to their own.

// Without kernels nothing attends here.
#![cfg_attr(not(cpu_kernels), allow(dead_code))]

#[cfg(cpu_kernels)]
mod blocks;
mod pages;
#[cfg(cpu_kernels)]
mod place;

pub(crate) use pages::{Pages, Span, attend_pages};

use tch::{Device, Kind, Tensor};

#[cfg(cpu_kernels)]
use self::blocks::compute;
use super::{PANEL, is_available, is_plain};
use crate::error::{LmError, Result};

/// Rows of queries below which laying keys out in panels takes longer than it saves.
const WORTH_IT: i64 = 16;

/// Which keys a row sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// All.
    All,
    /// Those up to its own number; there are as many keys as rows.
    UpToItself,
}

/// Whether [`attend`] can do it and is worth it, for queries `[rows, key heads, group, width]`.
pub(crate) fn can_attend(queries: &Tensor) -> Result<bool> {
    let (rows, _, group, width) = queries.size4()?;
    let is_available = is_available(queries.f_kind()?, queries.device());
    Ok(is_available && rows * group >= WORTH_IT && width % PANEL == 0)
}

/// Attention of queries `[rows, key heads, group, width]` to keys and values `[tokens, key heads, width]`; the heads of queries of a
/// group share a head of keys. Gives the output, of the shape of the queries, and the log-sum-exp of the scores,
/// `[rows, key heads, group]`.
///
/// # Errors
///
/// Sizes, number formats, devices or strides do not fit, or this machine has no kernel.
pub(crate) fn attend(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    seen: Seen,
    scale: f64,
) -> Result<(Tensor, Tensor)> {
    let (rows, key_heads, group, width) = queries.size4()?;
    let tokens = keys.size3()?.0;
    let has_heads = |tensor: &Tensor| is_plain(tensor) && tensor.stride().last() == Some(&1);
    let fits = [queries, keys, values].into_iter().all(has_heads)
        && keys.size() == [tokens, key_heads, width]
        && values.size() == keys.size()
        && width % PANEL == 0
        && tokens > 0
        && scale > 0.0
        && (seen == Seen::All || tokens == rows);
    if !fits {
        return Err(LmError::Model(format!(
            "queries {:?}, keys {:?} and values {:?} make no attention",
            queries.size(),
            keys.size(),
            values.size()
        )));
    }
    let output = Tensor::f_empty([rows, key_heads, group, width], (Kind::Float, Device::Cpu))?;
    let sums = Tensor::f_empty([rows, key_heads, group], (Kind::Float, Device::Cpu))?;
    compute(queries, keys, values, seen, scale as f32, &output, &sums)?;
    Ok((output, sums))
}

#[cfg(not(cpu_kernels))]
fn compute(
    _queries: &Tensor,
    _keys: &Tensor,
    _values: &Tensor,
    _seen: Seen,
    _scale: f32,
    _output: &Tensor,
    _sums: &Tensor,
) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tch::{Device, Kind, Tensor};

    use super::{Seen, attend};
    use crate::nn::cpu::is_available;

    const CPU: (Kind, Device) = (Kind::Float, Device::Cpu);

    /// What double precision says.
    fn exact(queries: &Tensor, keys: &Tensor, values: &Tensor, seen: Seen, scale: f64) -> (Tensor, Tensor) {
        let wide = |tensor: &Tensor| tensor.to_kind(Kind::Double);
        // [key heads, group, rows, width] and [key heads, 1, tokens, width]
        let queries = wide(queries).permute([1, 2, 0, 3]);
        let across = |tensor: &Tensor| wide(tensor).transpose(0, 1).unsqueeze(1);
        let mut scores = queries.matmul(&across(keys).transpose(2, 3)) * scale;
        if seen == Seen::UpToItself {
            let (rows, tokens) = (scores.size()[2], scores.size()[3]);
            let later = Tensor::ones([rows, tokens], (Kind::Bool, Device::Cpu)).triu(1);
            scores = scores.masked_fill(&later, f64::NEG_INFINITY);
        }
        let sums = scores.logsumexp([-1].as_slice(), false);
        let output = scores.softmax(-1, Kind::Double).matmul(&across(values));
        (output.permute([2, 0, 1, 3]), sums.permute([2, 0, 1]))
    }

    #[test]
    fn attention_is_that_of_double_precision() {
        if !is_available(Kind::Float, Device::Cpu) {
            return;
        }
        for (rows, tokens, key_heads, group, width) in [
            (1, 5, 1, 1, 16),
            (6, 6, 2, 3, 16),
            (48, 48, 3, 3, 64),
            (201, 201, 2, 1, 32),
            (7, 300, 2, 4, 48),
        ] {
            // Beside each other, as projections have them.
            let all = Tensor::randn([rows, key_heads * group + 1, width], CPU);
            let queries = all.narrow(1, 1, key_heads * group).unflatten(1, [key_heads, group]);
            let cached = Tensor::randn([tokens, 2, key_heads, width], CPU);
            let (keys, values) = (cached.select(1, 0), cached.select(1, 1));
            for seen in [Seen::All, Seen::UpToItself] {
                if seen == Seen::UpToItself && rows != tokens {
                    assert!(attend(&queries, &keys, &values, seen, 0.2).is_err());
                    continue;
                }
                let (output, sums) = attend(&queries, &keys, &values, seen, 0.2).unwrap();
                let (exact_output, exact_sums) = exact(&queries, &keys, &values, seen, 0.2);
                assert!((output - exact_output).abs().max().double_value(&[]) < 2e-6);
                assert!((sums - exact_sums).abs().max().double_value(&[]) < 5e-6);
            }
        }
    }

    #[test]
    fn what_is_not_finite_is_told() {
        if !is_available(Kind::Float, Device::Cpu) {
            return;
        }
        let queries = Tensor::randn([20, 1, 1, 16], CPU);
        let _ = queries.narrow(0, 3, 1).fill_(f64::NAN);
        let keys = Tensor::randn([20, 1, 16], CPU);
        let (output, _) = attend(&queries, &keys, &keys, Seen::All, 1.0).unwrap();
        let is_wrong = output.isnan().flatten(1, -1).any_dim(1, false);
        assert_eq!(
            Vec::<bool>::try_from(is_wrong).unwrap(),
            (0..20).map(|row| row == 3).collect::<Vec<_>>()
        );
    }
}
