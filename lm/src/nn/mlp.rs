//! The gated feed-forward block.

use tch::Tensor;

use crate::error::Result;
use crate::nn::layout::Format;
use crate::nn::linear::{Linear, Projection};
use crate::nn::parameter::{Module, Parameter};

/// `silu(gate) * up` of rows that hold both side by side; the rows are overwritten.
pub(crate) fn gated(rows: &Tensor, width: i64) -> Result<Tensor> {
    let mut gate = rows.f_narrow(1, 0, width)?;
    let mut gate = gate.f_silu_()?;
    Ok(gate.f_mul_(&rows.f_narrow(1, width, width)?)?)
}

/// `down(silu(gate(x)) * up(x))`.
#[derive(Debug)]
pub(crate) struct Mlp {
    gate_up: Linear,
    down: Linear,
    width: i64,
}

impl Mlp {
    /// The block `name` with `width` inner units.
    pub(crate) fn new(name: &str, hidden: i64, width: i64, bias: bool, format: Format) -> Self {
        let parts = [
            Projection::new(format!("{name}.gate_proj"), width),
            Projection::new(format!("{name}.up_proj"), width),
        ];
        Self {
            gate_up: Linear::new(hidden, &parts, bias, format),
            down: Linear::new(
                width,
                &[Projection::new(format!("{name}.down_proj"), hidden)],
                bias,
                format,
            ),
            width,
        }
    }

    /// Of rows `[n, hidden]`.
    pub(crate) fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        self.down.forward(&gated(&self.gate_up.forward(rows)?, self.width)?)
    }

    /// Adds the output to a residual stream, in place.
    pub(crate) fn add_to(&self, residual: &mut Tensor, rows: &Tensor) -> Result<()> {
        self.down
            .add_to(residual, &gated(&self.gate_up.forward(rows)?, self.width)?)
    }
}

impl Module for Mlp {
    fn parameters<'a>(&'a mut self, list: &mut Vec<&'a mut Parameter>) {
        self.gate_up.parameters(list);
        self.down.parameters(list);
    }
}
