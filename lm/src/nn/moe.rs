//! Mixture of experts: each token goes through the few experts that a router picks for it.

use tch::{Kind, Tensor};

use crate::error::{LmError, Result};
use crate::nn::cpu::Start;
use crate::nn::layout::{Factors, Format, Layout};
use crate::nn::linear::{Linear, Projection};
use crate::nn::mlp::{Mlp, gated};
use crate::nn::parameter::{Module, Parameter, Piece};

/// Sizes of a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MoeShape {
    /// Width of the residual stream.
    pub(crate) hidden: i64,
    /// Inner units of an expert.
    pub(crate) width: i64,
    /// Experts.
    pub(crate) experts: i64,
    /// Experts that a token goes through.
    pub(crate) chosen: i64,
    /// Whether the weights of the chosen experts are scaled to sum to one.
    pub(crate) normalised: bool,
    /// Inner units of the expert that all tokens go through, if there is one.
    pub(crate) shared: Option<i64>,
}

/// The block.
#[derive(Debug)]
pub(crate) struct Moe {
    shape: MoeShape,
    /// Of the experts.
    layout: Layout,
    router: Linear,
    gate_up: Parameter,
    down: Parameter,
    shared: Option<(Mlp, Linear)>,
}

impl Moe {
    /// The block `name`.
    pub(crate) fn new(name: &str, shape: MoeShape, format: Format) -> Self {
        let MoeShape {
            hidden, width, experts, ..
        } = shape;
        let kind = format.kind;
        let layout = Layout::of(format, [width, hidden]);
        let mut gate_up = Vec::new();
        let mut down = Vec::new();
        for expert in 0..experts {
            let of = |part: &str, offset: i64, outputs: i64, inputs: i64| {
                let name = format!("{name}.experts.{expert}.{part}.weight");
                let find = move |whole: Tensor| Ok(whole.f_select(0, expert)?);
                layout.piece(Piece::new(name, [outputs, inputs]), offset, outputs, Ok, find)
            };
            gate_up.push(of("gate_proj", 0, width, hidden));
            gate_up.push(of("up_proj", width, width, hidden));
            down.push(of("down_proj", 0, hidden, width));
        }
        let fused = |part: &str, outputs: i64, inputs: i64| {
            let piece = Piece::new(format!("{name}.experts.{part}"), [experts, outputs, inputs]);
            vec![layout.piece(piece, 0, outputs, Ok, Ok)]
        };
        let parameter = |inputs: i64, outputs: i64, pieces: Vec<Piece>| {
            let mut shape = vec![experts];
            shape.extend(layout.shape(inputs, outputs));
            Parameter::new(shape, kind, pieces)
        };
        Self {
            shape,
            layout,
            router: Linear::new(
                hidden,
                &[Projection::new(format!("{name}.gate"), experts)],
                false,
                format,
            ),
            gate_up: parameter(hidden, 2 * width, gate_up).or(fused("gate_up_proj", 2 * width, hidden)),
            down: parameter(width, hidden, down).or(fused("down_proj", hidden, width)),
            shared: shape.shared.map(|units| {
                let gate = Projection::new(format!("{name}.shared_expert_gate"), 1);
                (
                    Mlp::new(&format!("{name}.shared_expert"), hidden, units, false, format),
                    Linear::new(hidden, &[gate], false, format),
                )
            }),
        }
    }

    /// Adds the output of rows `[n, hidden]` to a residual stream, in place.
    pub(crate) fn add_to(&self, residual: &mut Tensor, rows: &Tensor) -> Result<()> {
        let (weights, experts) = self.route(rows)?;
        let routed = self.experts(rows, &weights, &experts)?;
        let _ = residual.f_add_(&routed)?;
        if let Some((shared, gate)) = &self.shared {
            let openness = gate.forward(rows)?.f_sigmoid()?;
            let _ = residual.f_addcmul_(&shared.forward(rows)?, &openness)?;
        }
        Ok(())
    }

    /// Weights, in the format of the rows, and numbers of the experts of each token, both `[n, chosen]`.
    fn route(&self, rows: &Tensor) -> Result<(Tensor, Tensor)> {
        let shares = self.router.forward(rows)?.f_softmax(-1, Kind::Float)?;
        let (mut weights, experts) = shares.f_topk(self.shape.chosen, -1, true, true)?;
        if self.shape.normalised {
            let sum = weights.f_sum_dim_intlist([-1].as_slice(), true, Kind::Float)?;
            weights = weights.f_div(&sum)?;
        }
        Ok((weights.f_to_kind(rows.f_kind()?)?, experts))
    }

    /// The weighted sum of the chosen experts. Tokens are sorted by expert, and every expert that is hit multiplies its tokens at
    /// once; no weight is copied.
    fn experts(&self, rows: &Tensor, weights: &Tensor, experts: &Tensor) -> Result<Tensor> {
        let MoeShape {
            hidden, width, chosen, ..
        } = self.shape;
        let (device, kind) = (rows.device(), rows.f_kind()?);
        let tokens = rows.size2()?.0;
        let order = Order::new(&experts.f_flatten(0, -1)?.f_to_device(tch::Device::Cpu)?, self.shape)?;
        let source = Tensor::f_from_slice(&order.sources)?.f_to_device(device)?;
        let inputs = rows.f_index_select(0, &source)?;
        let inner = Tensor::f_empty([tokens * chosen, 2 * width], (kind, device))?;
        self.multiply(&order, &inputs, &self.gate_up, &inner)?;
        let inner = gated(&inner, width)?;
        let outputs = Tensor::f_empty([tokens * chosen, hidden], (kind, device))?;
        self.multiply(&order, &inner, &self.down, &outputs)?;
        let places = Tensor::f_from_slice(&order.places)?.f_to_device(device)?;
        let outputs = outputs.f_index_select(0, &places)?.f_view([tokens, chosen, hidden])?;
        Ok(weights.f_unsqueeze(1)?.f_bmm(&outputs)?.f_squeeze_dim(1)?)
    }

    /// Multiplies the rows of each expert with its weight.
    fn multiply(&self, order: &Order, rows: &Tensor, weights: &Parameter, out: &Tensor) -> Result<()> {
        let tensors = order.groups.iter().map(|group| -> Result<_> {
            let part = |tensor: &Tensor| tensor.f_narrow(0, group.start, group.len);
            Ok((part(rows)?, weights.tensor().f_select(0, group.expert)?, part(out)?))
        });
        let tensors = tensors.collect::<Result<Vec<_>>>()?;
        let factors = tensors.iter().map(|(rows, weight, out)| Factors {
            rows,
            weight,
            out,
            start: Start::Zero,
        });
        self.layout.multiply(&factors.collect::<Vec<_>>())
    }
}

impl Module for Moe {
    fn parameters<'a>(&'a mut self, list: &mut Vec<&'a mut Parameter>) {
        self.router.parameters(list);
        list.push(&mut self.gate_up);
        list.push(&mut self.down);
        if let Some((shared, gate)) = &mut self.shared {
            shared.parameters(list);
            gate.parameters(list);
        }
    }
}

/// Rows of one expert.
struct Group {
    expert: i64,
    start: i64,
    len: i64,
}

/// The order of (token, expert) pairs sorted by expert.
struct Order {
    /// Token of each sorted pair.
    sources: Vec<i64>,
    /// Place of each pair in the sorted order.
    places: Vec<i64>,
    /// Experts that are hit.
    groups: Vec<Group>,
}

impl Order {
    fn new(experts: &Tensor, shape: MoeShape) -> Result<Self> {
        let experts = Vec::<i64>::try_from(experts)?;
        let unknown =
            || LmError::Request("the router picked an expert that does not exist: its weights are not finite".into());
        let mut counts = vec![0_i64; usize::try_from(shape.experts).unwrap_or_default()];
        for &expert in &experts {
            *usize::try_from(expert)
                .ok()
                .and_then(|at| counts.get_mut(at))
                .ok_or_else(unknown)? += 1;
        }
        let mut groups = Vec::new();
        let mut next = Vec::with_capacity(counts.len());
        let mut start = 0;
        for (expert, len) in (0..).zip(counts) {
            next.push(start);
            if len > 0 {
                groups.push(Group { expert, start, len });
            }
            start += len;
        }
        let mut sources = vec![0; experts.len()];
        let mut places = Vec::with_capacity(experts.len());
        for (pair, &expert) in (0..).zip(&experts) {
            let place = usize::try_from(expert)
                .ok()
                .and_then(|at| next.get_mut(at))
                .ok_or_else(unknown)?;
            if let Some(source) = usize::try_from(*place).ok().and_then(|at| sources.get_mut(at)) {
                *source = pair / shape.chosen;
            }
            places.push(*place);
            *place += 1;
        }
        Ok(Self {
            sources,
            places,
            groups,
        })
    }
}
