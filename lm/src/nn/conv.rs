//! Causal convolution over the last few tokens, each channel for itself.

use tch::{Kind, Tensor};

use crate::error::Result;
use crate::nn::parameter::{Module, Parameter, Piece};

/// The convolution, followed by silu, in float32. Its state is the last `width - 1` inputs.
#[derive(Debug)]
pub(crate) struct CausalConv {
    /// `[width, channels]`: channels are adjacent, as in the rows that it works on.
    weight: Parameter,
    width: i64,
}

impl CausalConv {
    /// The convolution `name` over `width` tokens.
    pub(crate) fn new(name: &str, channels: i64, width: i64) -> Self {
        let piece = Piece::new(format!("{name}.weight"), [channels, 1, width])
            .take(|weight| Ok(weight.f_squeeze_dim(1)?.f_transpose(0, 1)?));
        Self {
            weight: Parameter::new([width, channels], Kind::Float, vec![piece]),
            width,
        }
    }

    /// Goes on from states `[sequences, width - 1, channels]` by the rows of one token each or more, `[sequences, n, channels]`.
    /// Gives the outputs, of the same shape, and the states after them.
    pub(crate) fn forward(&self, states: &Tensor, rows: &Tensor) -> Result<(Tensor, Tensor)> {
        let len = rows.size3()?.1;
        let window = Tensor::f_cat(&[states, rows], 1)?;
        let inputs = window.f_to_kind(Kind::Float)?;
        let mut output = inputs
            .f_narrow(1, 0, len)?
            .f_mul(&self.weight.tensor().f_select(0, 0)?)?;
        for back in 1..self.width {
            let _ = output.f_addcmul_(
                &inputs.f_narrow(1, back, len)?,
                &self.weight.tensor().f_select(0, back)?,
            )?;
        }
        Ok((output.f_silu_()?, window.f_narrow(1, len, self.width - 1)?))
    }
}

impl Module for CausalConv {
    fn parameters<'a>(&'a mut self, list: &mut Vec<&'a mut Parameter>) {
        list.push(&mut self.weight);
    }
}
