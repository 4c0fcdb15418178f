//! One product, checked.

// Without a kernel nothing reads what a product consists of.
#![cfg_attr(not(cpu_kernels), allow(dead_code))]

use std::marker::PhantomData;

use tch::Tensor;

use super::{PANEL, is_plain};
use crate::error::{LmError, Result};

/// What a product is added to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start<'a> {
    /// Nothing.
    Zero,
    /// A number for each column.
    Bias(&'a Tensor),
    /// What is in the output.
    Out,
}

/// What the sums of a product begin with.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// 0.
    Zero,
    /// A number for each column.
    Bias(*const f32),
    /// What is in the output.
    Out,
}

/// `out = start + rows * weight`, with `rows` as `[n, inputs]`, the weight as `[panels, inputs, PANEL]` and `out` as
/// `[n, panels * PANEL]`.
#[derive(Debug)]
pub(crate) struct Product<'a> {
    /// First number of the rows; each row has `inputs` that follow one another.
    pub(super) rows: *const f32,
    /// Numbers from a row to the next.
    pub(super) row_stride: usize,
    /// Rows.
    pub(super) count: usize,
    /// Columns of the rows.
    pub(super) inputs: usize,
    /// The panels, without gaps.
    pub(super) panels: *const f32,
    /// Panels.
    pub(super) panel_count: usize,
    /// First number of the output; each row has `panel_count * PANEL` that follow one another.
    pub(super) out: *mut f32,
    /// Numbers from a row of the output to the next.
    pub(super) out_stride: usize,
    /// What is added to.
    pub(super) origin: Origin,
    tensors: PhantomData<&'a Tensor>,
}

// SAFETY: the tensors are borrowed, so that what is pointed to lives; threads read rows and panels, and each writes another part of the
// output.
unsafe impl Sync for Product<'_> {}

impl<'a> Product<'a> {
    /// A product of tensors.
    ///
    /// # Errors
    ///
    /// Sizes, number formats, devices or strides do not fit, or this machine has no kernel.
    pub(crate) fn new(rows: &'a Tensor, panels: &'a Tensor, out: &'a Tensor, start: Start<'a>) -> Result<Self> {
        let (count, inputs) = rows.size2()?;
        let (panel_count, panel_inputs, width) = panels.size3()?;
        let outputs = panel_count * PANEL;
        let fits = inputs == panel_inputs
            && width == PANEL
            && panels.is_contiguous()
            && out.size() == [count, outputs]
            && has_rows(rows)
            && has_rows(out)
            && is_plain(panels);
        let bias_fits = match start {
            Start::Bias(bias) => bias.size() == [outputs] && bias.is_contiguous() && is_plain(bias),
            Start::Zero | Start::Out => true,
        };
        if !fits || !bias_fits {
            return Err(LmError::Model(format!(
                "rows {:?} with strides {:?}, panels {:?} and an output {:?} make no product",
                rows.size(),
                rows.stride(),
                panels.size(),
                out.size()
            )));
        }
        Ok(Self {
            rows: rows.data_ptr().cast(),
            row_stride: stride(rows)?,
            count: size(count)?,
            inputs: size(inputs)?,
            panels: panels.data_ptr().cast(),
            panel_count: size(panel_count)?,
            out: out.data_ptr().cast(),
            out_stride: stride(out)?,
            origin: match start {
                Start::Zero => Origin::Zero,
                Start::Bias(bias) => Origin::Bias(bias.data_ptr().cast_const().cast()),
                Start::Out => Origin::Out,
            },
            tensors: PhantomData,
        })
    }
}

/// Whether the numbers of each row follow one another, and rows do not overlap.
fn has_rows(tensor: &Tensor) -> bool {
    let [count, width] = tensor.size()[..] else {
        return false;
    };
    let [row, column] = tensor.stride()[..] else {
        return false;
    };
    is_plain(tensor) && (width <= 1 || column == 1) && (count <= 1 || row >= width)
}

/// A size or stride as kernels take it.
pub(super) fn size(number: i64) -> Result<usize> {
    usize::try_from(number).map_err(|_| LmError::Model(format!("{number} is no size")))
}

fn stride(tensor: &Tensor) -> Result<usize> {
    size(tensor.stride().first().copied().unwrap_or_default())
}
