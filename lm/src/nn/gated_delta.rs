//! The gated delta net: linear attention whose memory is a state of fixed size instead of a cache that grows.

use std::sync::Arc;

use tch::{Kind, Tensor};

use crate::cache::StateLayer;
use crate::error::Result;
use crate::nn::attention::plan::StatePlan;
use crate::nn::conv::CausalConv;
use crate::nn::delta_rule::{self, Inputs};
use crate::nn::layout::Format;
use crate::nn::linear::{Linear, Projection};
use crate::nn::norm::{NormWeight, RmsNorm};
use crate::nn::parameter::{Module, Parameter, Piece};

/// Added to the squared length of queries and keys before they are brought to length one.
const LENGTH_EPSILON: f64 = 1e-6;

/// Sizes of a gated delta net.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeltaShape {
    /// Width of the residual stream.
    pub(crate) hidden: i64,
    /// Heads of queries and keys.
    pub(crate) key_heads: i64,
    /// Heads of values, a multiple of those of keys.
    pub(crate) value_heads: i64,
    /// Width of a head of queries and keys.
    pub(crate) key_width: i64,
    /// Width of a head of values.
    pub(crate) value_width: i64,
    /// Tokens that the convolution sees.
    pub(crate) conv_width: i64,
}

impl DeltaShape {
    fn keys(self) -> i64 {
        self.key_heads * self.key_width
    }

    fn values(self) -> i64 {
        self.value_heads * self.value_width
    }

    /// Channels of the convolution.
    pub(crate) fn channels(self) -> i64 {
        2 * self.keys() + self.values()
    }
}

/// How a checkpoint stores the projections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeltaLayout {
    /// `in_proj_qkv`, `in_proj_z`, `in_proj_b`, `in_proj_a`.
    Separate,
    /// `in_proj_qkvz` and `in_proj_ba`, each with the parts of one key head side by side.
    ByKeyHead,
}

/// The block.
#[derive(Debug)]
pub(crate) struct GatedDelta {
    shape: DeltaShape,
    input: Linear,
    conv: CausalConv,
    /// `-exp(A_log)`.
    decay: Parameter,
    step_bias: Parameter,
    norm: RmsNorm,
    output: Linear,
}

impl GatedDelta {
    /// The block `name`.
    pub(crate) fn new(name: &str, shape: DeltaShape, layout: DeltaLayout, epsilon: f64, format: Format) -> Self {
        let heads = shape.value_heads;
        let projections = match layout {
            DeltaLayout::Separate => vec![
                Projection::new(format!("{name}.in_proj_qkv"), shape.channels()),
                Projection::new(format!("{name}.in_proj_z"), shape.values()),
                Projection::new(format!("{name}.in_proj_b"), heads),
                Projection::new(format!("{name}.in_proj_a"), heads),
            ],
            DeltaLayout::ByKeyHead => by_key_head(name, shape),
        };
        let decay = Piece::new(format!("{name}.A_log"), [heads]).take(|log| Ok(log.f_exp()?.f_neg()?));
        Self {
            shape,
            input: Linear::new(shape.hidden, &projections, false, format),
            conv: CausalConv::new(&format!("{name}.conv1d"), shape.channels(), shape.conv_width),
            decay: Parameter::new([heads], Kind::Float, vec![decay]),
            step_bias: Parameter::new(
                [heads],
                Kind::Float,
                vec![Piece::new(format!("{name}.dt_bias"), [heads])],
            ),
            norm: RmsNorm::new(&format!("{name}.norm"), shape.value_width, epsilon, NormWeight::Factor),
            output: Linear::new(
                shape.values(),
                &[Projection::new(format!("{name}.out_proj"), shape.hidden)],
                false,
                format,
            ),
        }
    }

    /// Adds the output of the rows of a step to a residual stream, in place, and moves the states of its sequences on.
    pub(crate) fn add_to(
        &self,
        residual: &mut Tensor,
        rows: &Tensor,
        plan: &StatePlan,
        layer: &mut StateLayer,
    ) -> Result<()> {
        let DeltaShape {
            value_heads,
            value_width,
            ..
        } = self.shape;
        let len = rows.size2()?.0;
        let projected = self.input.forward(rows)?;
        let mixed = projected.f_narrow(1, 0, self.shape.channels())?;
        let mut offset = self.shape.channels();
        let mut next = |width: i64| {
            offset += width;
            projected.f_narrow(1, offset - width, width)?.f_to_kind(Kind::Float)
        };
        let gate = next(self.shape.values())?;
        let strength = next(value_heads)?.f_sigmoid()?;
        let decay = next(value_heads)?
            .f_add(self.step_bias.tensor())?
            .f_softplus()?
            .f_mul(self.decay.tensor())?;

        let convolved = self.convolve(&mixed, plan, layer)?;
        let inputs = self.inputs(&convolved, decay, strength)?;
        let mut outputs = Tensor::f_empty([len, value_heads, value_width], (Kind::Float, rows.device()))?;
        for run in &plan.runs {
            let mut state = layer.state(run.slot)?;
            let written = delta_rule::chunks(&inputs.narrow(run.start, run.len)?, &mut state)?;
            outputs.f_narrow(0, run.start, run.len)?.f_copy_(&written)?;
        }
        if let Some(steps) = &plan.steps {
            let mut states = layer.states(&steps.slots)?;
            let written = delta_rule::step(&inputs.select(&steps.rows)?, &mut states)?;
            layer.put_states(&steps.slots, &states)?;
            let _ = outputs.f_index_copy_(0, &steps.rows, &written)?;
        }

        let mut outputs = self.norm.forward(&outputs)?;
        let outputs = outputs.f_mul_(&gate.f_silu()?.f_reshape([len, value_heads, value_width])?)?;
        let outputs = outputs.f_view([len, self.shape.values()])?.f_to_kind(rows.f_kind()?)?;
        self.output.add_to(residual, &outputs)
    }

    /// Queries, keys and values after the convolution, float32 `[n, channels]`.
    fn convolve(&self, mixed: &Tensor, plan: &StatePlan, layer: &mut StateLayer) -> Result<Tensor> {
        let mut convolved = Tensor::f_empty(mixed.size(), (Kind::Float, mixed.device()))?;
        for run in &plan.runs {
            if run.fresh {
                layer.reset(run.slot)?;
            }
            let mut state = layer.conv(run.slot)?.f_unsqueeze(0)?;
            let rows = mixed.f_narrow(0, run.start, run.len)?.f_unsqueeze(0)?;
            let (outputs, after) = self.conv.forward(&state, &rows)?;
            state.f_copy_(&after)?;
            convolved
                .f_narrow(0, run.start, run.len)?
                .f_copy_(&outputs.f_squeeze_dim(0)?)?;
        }
        if let Some(steps) = &plan.steps {
            let states = layer.convs(&steps.slots)?;
            let rows = mixed.f_index_select(0, &steps.rows)?.f_unsqueeze(1)?;
            let (outputs, after) = self.conv.forward(&states, &rows)?;
            layer.put_convs(&steps.slots, &after)?;
            let _ = convolved.f_index_copy_(0, &steps.rows, &outputs.f_squeeze_dim(1)?)?;
        }
        Ok(convolved)
    }

    fn inputs(&self, convolved: &Tensor, decay: Tensor, strength: Tensor) -> Result<Inputs> {
        let DeltaShape {
            key_heads,
            value_heads,
            key_width,
            value_width,
            ..
        } = self.shape;
        let len = convolved.size2()?.0;
        let keys = self.shape.keys();
        // Each head of keys serves as many adjacent heads of values.
        let spread = |start: i64, factor: f64| -> Result<Tensor> {
            let heads = convolved
                .f_narrow(1, start, keys)?
                .f_reshape([len, key_heads, key_width])?;
            let squared = heads
                .f_square()?
                .f_sum_dim_intlist([-1].as_slice(), true, Kind::Float)?;
            let scale = squared.f_add_scalar(LENGTH_EPSILON)?.f_rsqrt()?.f_mul_scalar(factor)?;
            let shape = [len, key_heads, value_heads / key_heads, key_width];
            let heads = heads.f_mul(&scale)?.f_unsqueeze(2)?.f_expand(shape, false)?;
            Ok(heads.f_reshape([len, value_heads, key_width])?)
        };
        let values = convolved.f_narrow(1, 2 * keys, self.shape.values())?;
        Ok(Inputs {
            queries: spread(0, 1.0 / (key_width as f64).sqrt())?,
            keys: spread(keys, 1.0)?,
            values: values.f_reshape([len, value_heads, value_width])?,
            decay,
            strength,
        })
    }
}

impl Module for GatedDelta {
    fn parameters<'a>(&'a mut self, list: &mut Vec<&'a mut Parameter>) {
        self.input.parameters(list);
        self.conv.parameters(list);
        list.push(&mut self.decay);
        list.push(&mut self.step_bias);
        self.norm.parameters(list);
        self.output.parameters(list);
    }
}

/// The projections in the order of [`DeltaLayout::Separate`], picked out of those by key head.
fn by_key_head(name: &str, shape: DeltaShape) -> Vec<Projection> {
    let group = shape.value_heads / shape.key_heads;
    let pick = |ending: &str, widths: &[i64], part: usize| {
        let row = widths.iter().sum::<i64>();
        let start = widths.iter().take(part).sum::<i64>();
        let width = widths.get(part).copied().unwrap_or_default();
        let heads = shape.key_heads;
        Projection::picked(
            format!("{name}.{ending}"),
            heads * row,
            heads * width,
            Arc::new(move |tensor: &Tensor| Ok(tensor.f_reshape([heads, row, -1])?.f_narrow(1, start, width)?)),
        )
    };
    let qkvz = [
        shape.key_width,
        shape.key_width,
        group * shape.value_width,
        group * shape.value_width,
    ];
    let mut parts = (0..qkvz.len())
        .map(|part| pick("in_proj_qkvz", &qkvz, part))
        .collect::<Vec<_>>();
    parts.extend((0..2).map(|part| pick("in_proj_ba", &[group, group], part)));
    parts
}
