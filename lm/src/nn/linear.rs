//! Multiplication with a weight, of several projections at once.

use std::sync::Arc;

use tch::{Kind, Tensor};

use crate::error::Result;
use crate::nn::parameter::{Module, Parameter, Piece};

/// Picks rows of a projection; it must work along the first dimension only, since it is used for weight and bias.
pub(crate) type PickRows = Arc<dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync>;

/// A projection of a checkpoint, or some of its rows, as a part of a [`Linear`].
#[derive(Clone)]
pub(crate) struct Projection {
    /// Name without `.weight` and `.bias`.
    name: String,
    /// Outputs in the checkpoint.
    stored: i64,
    /// Outputs that are wanted.
    outputs: i64,
    pick: Option<PickRows>,
}

impl Projection {
    /// A whole projection.
    pub(crate) fn new(name: impl Into<String>, outputs: i64) -> Self {
        Self {
            name: name.into(),
            stored: outputs,
            outputs,
            pick: None,
        }
    }

    /// Some rows of a projection that has `stored` of them.
    pub(crate) fn picked(name: impl Into<String>, stored: i64, outputs: i64, pick: PickRows) -> Self {
        Self {
            name: name.into(),
            stored,
            outputs,
            pick: Some(pick),
        }
    }

    fn piece(&self, ending: &str, rest: &[i64], offset: i64) -> Piece {
        let (outputs, pick) = (self.outputs, self.pick.clone());
        let mut shape = vec![self.stored];
        shape.extend(rest);
        let mut taken = vec![outputs];
        taken.extend(rest);
        let transposed = !rest.is_empty();
        Piece::new(format!("{}.{ending}", self.name), shape)
            .take(move |tensor| {
                Ok(match &pick {
                    Some(pick) => pick(&tensor)?.f_reshape(&taken)?,
                    None => tensor,
                })
            })
            .put(move |whole| {
                let rows = if transposed { whole.f_transpose(0, 1)? } else { whole };
                Ok(rows.f_narrow(0, offset, outputs)?)
            })
    }
}

/// `x W + b`. The weight is stored with inputs as rows: products of few rows, which decoding consists of, are two to three times as
/// fast with it on CPU than with outputs as rows.
#[derive(Debug)]
pub(crate) struct Linear {
    weight: Parameter,
    bias: Option<Parameter>,
}

impl Linear {
    /// Projections side by side. `bias` says whether they have one.
    pub(crate) fn new(inputs: i64, projections: &[Projection], bias: bool, kind: Kind) -> Self {
        let outputs = projections.iter().map(|projection| projection.outputs).sum::<i64>();
        let pieces = |ending: &str, rest: &[i64]| {
            let mut offset = 0;
            let mut pieces = Vec::with_capacity(projections.len());
            for projection in projections {
                pieces.push(projection.piece(ending, rest, offset));
                offset += projection.outputs;
            }
            pieces
        };
        Self {
            weight: Parameter::new([inputs, outputs], kind, pieces("weight", &[inputs])),
            bias: bias.then(|| Parameter::new([outputs], kind, pieces("bias", &[]))),
        }
    }

    /// Of rows `[n, inputs]`: `[n, outputs]`.
    pub(crate) fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        Ok(match &self.bias {
            Some(bias) => bias.tensor().f_addmm(rows, self.weight.tensor())?,
            None => rows.f_mm(self.weight.tensor())?,
        })
    }

    /// Adds the product to a residual stream, in place.
    pub(crate) fn add_to(&self, residual: &mut Tensor, rows: &Tensor) -> Result<()> {
        let _ = residual.f_addmm_(rows, self.weight.tensor())?;
        if let Some(bias) = &self.bias {
            let _ = residual.f_add_(bias.tensor())?;
        }
        Ok(())
    }

    /// Rows of the weight as a checkpoint stores it, `[n, inputs]`: the embedding of tokens where it is tied to the output.
    pub(crate) fn embed(&self, tokens: &Tensor) -> Result<Tensor> {
        Ok(self
            .weight
            .tensor()
            .f_index_select(1, tokens)?
            .f_transpose(0, 1)?
            .f_contiguous()?)
    }
}

impl Module for Linear {
    fn parameters<'a>(&'a mut self, list: &mut Vec<&'a mut Parameter>) {
        list.push(&mut self.weight);
        list.extend(self.bias.as_mut());
    }
}
