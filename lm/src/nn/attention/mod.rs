//! Attention over a cache of blocks, for any mixture of prompts and single tokens.

mod kernel;
pub(crate) mod plan;

use std::sync::Arc;

use tch::{Kind, Tensor};

use self::kernel::attend;
use self::plan::{AttentionPlan, Destination, Keys, Part, Rows, Sight};
use crate::cache::AttentionLayer;
use crate::error::Result;
use crate::nn::cpu::{self, Seen};
use crate::nn::layout::Format;
use crate::nn::linear::{Linear, Projection};
use crate::nn::norm::{HeadNorm, NormWeight};
use crate::nn::parameter::{Module, Parameter};
use crate::nn::rotary::Angles;

/// Sizes and features of an attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AttentionShape {
    /// Width of the residual stream.
    pub(crate) hidden: i64,
    /// Heads of queries.
    pub(crate) query_heads: i64,
    /// Heads of keys and values, of which the heads of queries are a multiple.
    pub(crate) key_heads: i64,
    /// Width of a head.
    pub(crate) head_width: i64,
    /// Whether queries, keys and values have a bias.
    pub(crate) input_bias: bool,
    /// Whether the output has a bias.
    pub(crate) output_bias: bool,
    /// Norm of queries and keys: its epsilon and how its weight is stored.
    pub(crate) norm: Option<(f64, NormWeight)>,
    /// Whether the output is multiplied with a gate that is computed beside the queries.
    pub(crate) gated: bool,
}

/// The block.
#[derive(Debug)]
pub(crate) struct Attention {
    shape: AttentionShape,
    /// Queries, keys, values, and the gate if there is one.
    input: Linear,
    norm: Option<HeadNorm>,
    output: Linear,
}

impl Attention {
    /// The block `name`.
    pub(crate) fn new(name: &str, shape: AttentionShape, format: Format) -> Self {
        let AttentionShape {
            hidden,
            query_heads,
            key_heads,
            head_width,
            ..
        } = shape;
        let (queries, keys) = (query_heads * head_width, key_heads * head_width);
        // A gated projection holds queries and gate of each head side by side.
        let half = |part: i64| {
            let pick = move |tensor: &Tensor| {
                Ok(tensor
                    .f_reshape([query_heads, 2, head_width, -1])?
                    .f_select(1, part)?
                    .f_flatten(0, 1)?)
            };
            Projection::picked(format!("{name}.q_proj"), 2 * queries, queries, Arc::new(pick))
        };
        let mut parts = vec![
            if shape.gated {
                half(0)
            } else {
                Projection::new(format!("{name}.q_proj"), queries)
            },
            Projection::new(format!("{name}.k_proj"), keys),
            Projection::new(format!("{name}.v_proj"), keys),
        ];
        parts.extend(shape.gated.then(|| half(1)));
        Self {
            shape,
            input: Linear::new(hidden, &parts, shape.input_bias, format),
            norm: shape.norm.map(|(epsilon, weight_is)| {
                HeadNorm::new(name, query_heads, key_heads, head_width, epsilon, weight_is)
            }),
            output: Linear::new(
                queries,
                &[Projection::new(format!("{name}.o_proj"), hidden)],
                shape.output_bias,
                format,
            ),
        }
    }

    /// Adds the output of the rows of a step to a residual stream, in place, and writes their keys and values into the cache.
    pub(crate) fn add_to(
        &self,
        residual: &mut Tensor,
        rows: &Tensor,
        angles: &Angles,
        plan: &AttentionPlan,
        destination: &Destination,
        layer: &mut AttentionLayer,
    ) -> Result<()> {
        let AttentionShape {
            query_heads,
            key_heads,
            head_width,
            ..
        } = self.shape;
        let len = rows.size2()?.0;
        let (queries, keys) = (query_heads * head_width, key_heads * head_width);
        let projected = self.input.forward(rows)?;
        let mut rotated =
            projected
                .f_narrow(1, 0, queries + keys)?
                .f_view([len, query_heads + key_heads, head_width])?;
        if let Some(norm) = &self.norm {
            norm.apply(&mut rotated)?;
        }
        angles.apply(&rotated)?;
        let written = projected.f_narrow(1, queries, 2 * keys)?;
        match destination {
            Destination::Run(start) => layer.write_run(*start, &written)?,
            Destination::Slots(slots) => layer.write(slots, &written)?,
        }
        let group = query_heads / key_heads;
        let heads = Heads {
            queries: projected
                .f_narrow(1, 0, queries)?
                .f_view([len, key_heads, group, head_width])?,
            fresh: written.f_view([len, 2, key_heads, head_width])?,
            scale: 1.0 / (head_width as f64).sqrt(),
        };
        let mut output = heads.attend(plan, layer)?.f_reshape([len, queries])?;
        if self.shape.gated {
            let gate = projected.f_narrow(1, queries + 2 * keys, queries)?.f_sigmoid()?;
            output = output.f_mul(&gate)?;
        }
        self.output.add_to(residual, &output)
    }
}

impl Module for Attention {
    fn parameters<'a>(&'a mut self, list: &mut Vec<&'a mut Parameter>) {
        self.input.parameters(list);
        if let Some(norm) = &mut self.norm {
            norm.parameters(list);
        }
        self.output.parameters(list);
    }
}

/// Queries, keys and values of the rows of a step in one layer.
struct Heads {
    /// `[rows, key heads, group, width]`: the heads of queries that share a head of keys are a group.
    queries: Tensor,
    /// Keys and values, `[rows, 2, key heads, width]`.
    fresh: Tensor,
    scale: f64,
}

impl Heads {
    /// `[rows, key heads, group, width]`.
    fn attend(&self, plan: &AttentionPlan, layer: &AttentionLayer) -> Result<Tensor> {
        if let [part] = plan.parts.as_slice()
            && matches!(part.rows, Rows::All)
        {
            return Ok(self.part(part, layer)?.0);
        }
        let (rows, key_heads, group, _) = self.queries.size4()?;
        let device = self.queries.device();
        let mut output = Tensor::f_empty(self.queries.size(), (self.queries.f_kind()?, device))?;
        let mut sums = Tensor::f_empty([rows, key_heads, group], (Kind::Float, device))?;
        for part in &plan.parts {
            let (new, sum) = self.part(part, layer)?;
            if part.first {
                put(&mut output, &part.rows, &new)?;
                put(&mut sums, &part.rows, &sum)?;
            } else {
                merge(&mut output, &mut sums, &part.rows, &new, &sum)?;
            }
        }
        Ok(output)
    }

    /// Output `[rows, key heads, group, width]` and log-sum-exp `[rows, key heads, group]` of a part.
    fn part(&self, part: &Part, layer: &AttentionLayer) -> Result<(Tensor, Tensor)> {
        let queries = pick(&self.queries, &part.rows)?;
        let (rows, key_heads, group, width) = queries.size4()?;
        let cached = match &part.keys {
            Keys::Pages(pages) => return cpu::attend_pages(&queries, layer.rows(), pages, self.scale),
            Keys::Step(start, len) => self.fresh.f_narrow(0, *start, *len)?,
            Keys::Slots(start, len) => layer.run(*start, *len)?,
            Keys::Blocks { blocks, skip, len } => layer.gather(blocks)?.f_narrow(0, *skip, *len)?,
            Keys::Each(blocks) => layer.gather(blocks)?,
        };
        // [tokens, key heads, width] each
        let (keys, values) = (cached.f_select(1, 0)?, cached.f_select(1, 1)?);
        let seen = match &part.sight {
            Sight::All => Some(Seen::All),
            Sight::Causal => Some(Seen::UpToItself),
            Sight::Mask(_) | Sight::Each(_) => None,
        };
        if let Some(seen) = seen
            && cpu::can_attend(&queries)?
        {
            return cpu::attend(&queries, &keys, &values, seen, self.scale);
        }
        match &part.sight {
            Sight::All => {
                // All queries of a head of keys are rows of one multiplication.
                let flat = |tensor: &Tensor| -> Result<Tensor> { Ok(tensor.f_transpose(0, 1)?.f_unsqueeze(0)?) };
                let shape = [1, key_heads, rows * group, width];
                let stacked = queries.f_transpose(0, 1)?.f_reshape(shape)?;
                let (output, sum) = attend(&stacked, &flat(&keys)?, &flat(&values)?, None, false, self.scale)?;
                let output = output.f_view([key_heads, rows, group, width])?.f_transpose(0, 1)?;
                Ok((output, sum.f_reshape([key_heads, rows, group])?.f_transpose(0, 1)?))
            }
            Sight::Causal => self.spread(&queries, &keys, &values, None),
            Sight::Mask(mask) => self.spread(&queries, &keys, &values, Some(mask)),
            Sight::Each(mask) => {
                let own =
                    |tensor: &Tensor| -> Result<Tensor> { Ok(tensor.f_unflatten(0, [rows, -1])?.f_transpose(1, 2)?) };
                attend(&queries, &own(&keys)?, &own(&values)?, Some(mask), false, self.scale)
            }
        }
    }

    /// Rows of one sequence that do not see all keys; without a mask they see those up to themselves.
    fn spread(
        &self,
        queries: &Tensor,
        keys: &Tensor,
        values: &Tensor,
        mask: Option<&Tensor>,
    ) -> Result<(Tensor, Tensor)> {
        let (_, key_heads, group, width) = queries.size4()?;
        let tokens = keys.size3()?.0;
        let every = |tensor: &Tensor| -> Result<Tensor> {
            let heads = tensor.f_transpose(0, 1)?.f_unsqueeze(1)?;
            Ok(heads.f_expand([key_heads, group, tokens, width], false)?)
        };
        let queries = queries.f_permute([1, 2, 0, 3])?;
        let (output, sum) = attend(
            &queries,
            &every(keys)?,
            &every(values)?,
            mask,
            mask.is_none(),
            self.scale,
        )?;
        Ok((output.f_permute([2, 0, 1, 3])?, sum.f_permute([2, 0, 1])?))
    }
}

/// Some rows of a tensor.
fn pick(tensor: &Tensor, rows: &Rows) -> Result<Tensor> {
    Ok(match rows {
        Rows::All => tensor.shallow_clone(),
        Rows::Run(start, len) => tensor.f_narrow(0, *start, *len)?,
        Rows::List(list) => tensor.f_index_select(0, list)?,
    })
}

/// Writes some rows of a tensor.
fn put(tensor: &mut Tensor, rows: &Rows, values: &Tensor) -> Result<()> {
    match rows {
        Rows::All => tensor.f_copy_(values)?,
        Rows::Run(start, len) => tensor.f_narrow(0, *start, *len)?.f_copy_(values)?,
        Rows::List(list) => {
            let _ = tensor.f_index_copy_(0, list, values)?;
        }
    }
    Ok(())
}

/// Puts two parts of the same rows together: outputs are weighted by the share of their scores in all scores.
fn merge(output: &mut Tensor, sums: &mut Tensor, rows: &Rows, new: &Tensor, sum: &Tensor) -> Result<()> {
    let (mut old, old_sum) = (pick(output, rows)?, pick(sums, rows)?);
    let share = sum
        .f_sub(&old_sum)?
        .f_sigmoid()?
        .f_unsqueeze(3)?
        .f_to_kind(old.f_kind()?)?;
    let merged = old.f_lerp_tensor_(new, &share)?;
    let total = old_sum.f_logaddexp(sum)?;
    if matches!(rows, Rows::List(_)) {
        put(output, rows, &merged)?;
    }
    put(sums, rows, &total)
}
