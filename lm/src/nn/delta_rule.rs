//! The gated delta rule: a state of keys and values per head, which decays and of which each token overwrites the value of its key.
//!
//! `S ← e^g S;  S ← S + k ⊗ β (v − k S);  o = q S`, all in float32.

use tch::{Kind, Tensor};

use crate::error::Result;

/// Tokens that a prompt is worked off by at once.
const CHUNK: i64 = 64;

/// Inputs of the rule for some tokens, float32; queries are scaled, queries and keys have length one.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// `[n, heads, key width]`.
    pub(crate) queries: Tensor,
    /// `[n, heads, key width]`.
    pub(crate) keys: Tensor,
    /// `[n, heads, value width]`.
    pub(crate) values: Tensor,
    /// Logarithm of the decay, at most 0: `[n, heads]`.
    pub(crate) decay: Tensor,
    /// How much of the old value is overwritten, 0 to 1: `[n, heads]`.
    pub(crate) strength: Tensor,
}

impl Inputs {
    /// Those of some rows.
    pub(crate) fn narrow(&self, start: i64, len: i64) -> Result<Self> {
        self.each(|tensor| Ok(tensor.f_narrow(0, start, len)?))
    }

    /// Those of rows by number.
    pub(crate) fn select(&self, rows: &Tensor) -> Result<Self> {
        self.each(|tensor| Ok(tensor.f_index_select(0, rows)?))
    }

    fn each(&self, part: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Self> {
        Ok(Self {
            queries: part(&self.queries)?,
            keys: part(&self.keys)?,
            values: part(&self.values)?,
            decay: part(&self.decay)?,
            strength: part(&self.strength)?,
        })
    }
}

/// One token of each of several sequences: their states `[n, heads, key width, value width]` are updated in place. Gives
/// `[n, heads, value width]`.
pub(crate) fn step(inputs: &Inputs, states: &mut Tensor) -> Result<Tensor> {
    let (sequences, heads, key_width, value_width) = states.size4()?;
    let flat = |tensor: &Tensor, rows: i64, columns: i64| tensor.f_reshape([sequences * heads, rows, columns]);
    let _ = states.f_mul_(&inputs.decay.f_exp()?.f_reshape([sequences, heads, 1, 1])?)?;
    let mut flat_states = states.f_view([sequences * heads, key_width, value_width])?;
    let known = flat(&inputs.keys, 1, key_width)?.f_bmm(&flat_states)?;
    let mut change = flat(&inputs.values, 1, value_width)?.f_sub(&known)?;
    let change = change.f_mul_(&flat(&inputs.strength, 1, 1)?)?;
    let _ = flat_states.f_baddbmm_(&flat(&inputs.keys, key_width, 1)?, &change)?;
    Ok(flat(&inputs.queries, 1, key_width)?
        .f_bmm(&flat_states)?
        .f_view([sequences, heads, value_width])?)
}

/// Many tokens of one sequence, whose state `[heads, key width, value width]` is updated in place. Gives
/// `[n, heads, value width]`.
///
/// Within a chunk, what each token writes depends on what those before it wrote. That is a triangular system of equations, solved
/// for all tokens of all chunks at once; only the state goes from chunk to chunk.
pub(crate) fn chunks(inputs: &Inputs, state: &mut Tensor) -> Result<Tensor> {
    let (len, heads, value_width) = inputs.values.size3()?;
    let chunk = len.min(CHUNK);
    let padding = (chunk - len % chunk) % chunk;
    let count = (len + padding) / chunk;
    // [n, heads, width] → [heads, chunks, chunk, width]; padding of zeros leaves the state as it is.
    let split = |tensor: &Tensor| -> Result<Tensor> {
        let width = tensor.size3()?.2;
        let padded = tensor.f_constant_pad_nd([0, 0, 0, 0, 0, padding])?;
        Ok(padded.f_transpose(0, 1)?.f_reshape([heads, count, chunk, width])?)
    };
    let (queries, keys) = (split(&inputs.queries)?, split(&inputs.keys)?);
    let strength = split(&inputs.strength.f_unsqueeze(2)?)?;
    let decay = split(&inputs.decay.f_unsqueeze(2)?)?
        .f_squeeze_dim(3)?
        .f_cumsum(2, Kind::Float)?;
    let later = Tensor::f_ones([chunk, chunk], (Kind::Bool, state.device()))?.f_triu(1)?;
    let pairwise = decay.f_unsqueeze(3)?.f_sub(&decay.f_unsqueeze(2)?)?;
    let pairwise = pairwise.f_masked_fill(&later, f64::NEG_INFINITY)?.f_exp()?;

    let keys_across = keys.f_transpose(2, 3)?;
    let strong_keys = keys.f_mul(&strength)?;
    let system = strong_keys.f_matmul(&keys_across)?.f_mul(&pairwise)?;
    let own = queries.f_matmul(&keys_across)?.f_mul(&pairwise)?;
    let decayed = decay.f_exp()?.f_unsqueeze(3)?;
    let solve = |right: &Tensor| system.f_linalg_solve_triangular(right, false, true, true);
    let written = solve(&split(&inputs.values)?.f_mul(&strength)?)?;
    let read = solve(&strong_keys.f_mul(&decayed)?)?;

    let queries = queries.f_mul(&decayed)?;
    let last = decay.f_narrow(2, chunk - 1, 1)?;
    let keys_across = keys
        .f_mul(&last.f_sub(&decay)?.f_exp()?.f_unsqueeze(3)?)?
        .f_transpose(2, 3)?;
    let chunk_decay = last.f_exp()?.f_unsqueeze(3)?;
    let mut outputs = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
    for at in 0..count {
        let part = |tensor: &Tensor| tensor.f_select(1, at);
        let new = part(&written)?.f_sub(&part(&read)?.f_bmm(state)?)?;
        outputs.push(part(&own)?.f_bmm(&new)?.f_baddbmm(&part(&queries)?, state, 1.0, 1.0)?);
        let _ = state
            .f_mul_(&part(&chunk_decay)?)?
            .f_baddbmm_(&part(&keys_across)?, &new)?;
    }
    let outputs = Tensor::f_stack(&outputs, 1)?.f_reshape([heads, count * chunk, value_width])?;
    Ok(outputs.f_narrow(1, 0, len)?.f_transpose(0, 1)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tch::{Device, Kind, Tensor};

    use super::{Inputs, chunks, step};

    const HEADS: i64 = 3;

    fn inputs(len: i64) -> Inputs {
        let random = |shape: &[i64]| Tensor::randn(shape, (Kind::Float, Device::Cpu));
        let unit = |tensor: Tensor| {
            let length = tensor
                .square()
                .sum_dim_intlist([-1].as_slice(), true, Kind::Float)
                .sqrt();
            tensor / length
        };
        Inputs {
            queries: unit(random(&[len, HEADS, 8])),
            keys: unit(random(&[len, HEADS, 8])),
            values: random(&[len, HEADS, 5]),
            decay: -random(&[len, HEADS]).abs(),
            strength: random(&[len, HEADS]).sigmoid(),
        }
    }

    #[test]
    fn chunks_are_steps_one_after_the_other() {
        tch::manual_seed(1);
        for len in [1, 2, 63, 64, 65, 150] {
            let inputs = inputs(len);
            let start = Tensor::randn([HEADS, 8, 5], (Kind::Float, Device::Cpu));
            let mut at_once = start.copy();
            let together = chunks(&inputs, &mut at_once).unwrap();
            let mut one_by_one = start.unsqueeze(0).copy();
            let mut outputs = Vec::new();
            for at in 0..len {
                outputs.push(step(&inputs.narrow(at, 1).unwrap(), &mut one_by_one).unwrap());
            }
            let outputs = Tensor::cat(&outputs, 0);
            assert!(
                (together - outputs).abs().max().double_value(&[]) < 1e-4,
                "{len} tokens"
            );
            assert!(
                (at_once - one_by_one.squeeze_dim(0)).abs().max().double_value(&[]) < 1e-4,
                "{len} tokens"
            );
        }
    }
}
