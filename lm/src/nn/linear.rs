//! Multiplication with a weight, of several projections at once.

use std::sync::Arc;

use tch::Tensor;

use crate::error::Result;
use crate::nn::cpu::Start;
use crate::nn::layout::{Factors, Format, Layout};
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

    /// The piece named `ending` as the checkpoint has it, with `rest` behind its outputs.
    fn stored(&self, ending: &str, rest: &[i64]) -> Piece {
        let mut shape = vec![self.stored];
        shape.extend(rest);
        Piece::new(format!("{}.{ending}", self.name), shape)
    }

    /// Makes what is wanted of what is stored.
    fn wanted(&self, rest: &[i64]) -> impl Fn(Tensor) -> Result<Tensor> + Send + Sync + 'static {
        let mut shape = vec![self.outputs];
        shape.extend(rest);
        let pick = self.pick.clone();
        move |tensor| {
            Ok(match &pick {
                Some(pick) => pick(&tensor)?.f_reshape(&shape)?,
                None => tensor,
            })
        }
    }
}

/// `x W + b`.
#[derive(Debug)]
pub(crate) struct Linear {
    layout: Layout,
    outputs: i64,
    weight: Parameter,
    bias: Option<Parameter>,
}

impl Linear {
    /// Projections side by side. `bias` says whether they have one.
    pub(crate) fn new(inputs: i64, projections: &[Projection], bias: bool, format: Format) -> Self {
        let layout = Layout::of(format, projections.iter().map(|projection| projection.outputs));
        let mut offset = 0;
        let (mut weights, mut biases) = (Vec::new(), Vec::new());
        for projection in projections {
            let (from, outputs) = (offset, projection.outputs);
            let weight = projection.stored("weight", &[inputs]);
            weights.push(layout.piece(weight, from, outputs, projection.wanted(&[inputs]), Ok));
            biases.push(
                projection
                    .stored("bias", &[])
                    .take(projection.wanted(&[]))
                    .put(move |whole| Ok(whole.f_narrow(0, from, outputs)?)),
            );
            offset += outputs;
        }
        Self {
            layout,
            outputs: offset,
            weight: Parameter::new(layout.shape(inputs, offset), format.kind, weights),
            bias: bias.then(|| Parameter::new([offset], format.kind, biases)),
        }
    }

    /// Of rows `[n, inputs]`: `[n, outputs]`.
    pub(crate) fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        let out = Tensor::f_empty([rows.size2()?.0, self.outputs], (rows.f_kind()?, rows.device()))?;
        let start = match &self.bias {
            Some(bias) => Start::Bias(bias.tensor()),
            None => Start::Zero,
        };
        self.multiply(rows, &out, start)?;
        Ok(out)
    }

    /// Adds the product to a residual stream, in place.
    pub(crate) fn add_to(&self, residual: &mut Tensor, rows: &Tensor) -> Result<()> {
        self.multiply(rows, residual, Start::Out)?;
        if let Some(bias) = &self.bias {
            let _ = residual.f_add_(bias.tensor())?;
        }
        Ok(())
    }

    fn multiply(&self, rows: &Tensor, out: &Tensor, start: Start<'_>) -> Result<()> {
        let weight = self.weight.tensor();
        self.layout.multiply(&[Factors {
            rows,
            weight,
            out,
            start,
        }])
    }

    /// Rows of the weight as a checkpoint stores it, `[n, inputs]`: the embedding of tokens where it is tied to the output.
    pub(crate) fn embed(&self, tokens: &Tensor) -> Result<Tensor> {
        self.layout.rows(self.weight.tensor(), tokens)
    }
}

impl Module for Linear {
    fn parameters<'a>(&'a mut self, list: &mut Vec<&'a mut Parameter>) {
        list.push(&mut self.weight);
        list.extend(self.bias.as_mut());
    }
}
