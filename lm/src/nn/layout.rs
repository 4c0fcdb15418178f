//! How the weights of products are stored.

use tch::{Device, Kind, Tensor};

use crate::error::Result;
use crate::nn::cpu::{self, Product, Start};
use crate::nn::parameter::Piece;

/// Number format and device of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    /// Number format of weights and activations.
    pub(crate) kind: Kind,
    /// Device.
    pub(crate) device: Device,
}

/// The order of the numbers of a weight, or of several of the same size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `[inputs, outputs]`: products of few rows are two to three times as fast with it on CPU than with outputs as rows, as
    /// checkpoints have them.
    Inputs,
    /// `[panels, inputs, PANEL]`, see [`cpu`].
    Panels,
}

impl Layout {
    /// The fastest for weights made of projections with so many outputs each.
    pub(crate) fn of(format: Format, outputs: impl IntoIterator<Item = i64>) -> Self {
        let even = outputs.into_iter().all(|outputs| outputs % cpu::PANEL == 0);
        if even && cpu::is_available(format.kind, format.device) {
            Self::Panels
        } else {
            Self::Inputs
        }
    }

    /// The shape of a weight.
    pub(crate) fn shape(self, inputs: i64, outputs: i64) -> Vec<i64> {
        match self {
            Self::Inputs => vec![inputs, outputs],
            Self::Panels => vec![outputs / cpu::PANEL, inputs, cpu::PANEL],
        }
    }

    /// Puts rows `[outputs, inputs]` of a checkpoint to the outputs from `offset` on. `pick` makes them of what the checkpoint has, and
    /// `find` finds the weight in the parameter; with several weights both have one more dimension in front.
    pub(crate) fn piece(
        self,
        piece: Piece,
        offset: i64,
        outputs: i64,
        pick: impl Fn(Tensor) -> Result<Tensor> + Send + Sync + 'static,
        find: impl Fn(Tensor) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Piece {
        match self {
            Self::Inputs => piece
                .take(pick)
                .put(move |whole| Ok(find(whole)?.f_transpose(-2, -1)?.f_narrow(-2, offset, outputs)?)),
            Self::Panels => piece
                .take(move |tensor| cpu::blocks(&pick(tensor)?))
                .put(move |whole| cpu::place(&find(whole)?, offset, outputs)),
        }
    }

    /// Rows `[n, inputs]` of a weight as a checkpoint has them, by number.
    pub(crate) fn rows(self, weight: &Tensor, rows: &Tensor) -> Result<Tensor> {
        match self {
            Self::Inputs => Ok(weight.f_index_select(1, rows)?.f_transpose(0, 1)?.f_contiguous()?),
            Self::Panels => cpu::rows_of(weight, rows),
        }
    }

    /// Computes `out = start + rows * weight` for each of some inputs, which have outputs of their own.
    pub(crate) fn multiply(self, factors: &[Factors<'_>]) -> Result<()> {
        match self {
            Self::Inputs => factors.iter().try_for_each(|factors| factors.multiply()),
            Self::Panels => {
                let products = factors.iter().map(|factors| {
                    let Factors {
                        rows,
                        weight,
                        out,
                        start,
                    } = *factors;
                    Product::new(rows, weight, out, start)
                });
                cpu::multiply(&products.collect::<Result<Vec<_>>>()?);
                Ok(())
            }
        }
    }
}

/// What is multiplied, and where the result goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Factors<'a> {
    /// `[n, inputs]`.
    pub(crate) rows: &'a Tensor,
    /// In the layout.
    pub(crate) weight: &'a Tensor,
    /// `[n, outputs]`.
    pub(crate) out: &'a Tensor,
    /// What is added.
    pub(crate) start: Start<'a>,
}

impl Factors<'_> {
    /// With a weight `[inputs, outputs]`.
    fn multiply(&self) -> Result<()> {
        let Self {
            rows,
            weight,
            out,
            start,
        } = *self;
        let mut out = out.shallow_clone();
        let _ = match start {
            Start::Zero => rows.f_mm_out(&out, weight)?,
            Start::Bias(bias) => bias.f_addmm_out(&out, rows, weight)?,
            Start::Out => out.f_addmm_(rows, weight)?,
        };
        Ok(())
    }
}
