//! Tensors of heads, as kernels read and write them.

use tch::Tensor;

use super::super::product::size;
use crate::error::Result;

/// Where a tensor is, and how far its rows, heads of keys and heads of a group are apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    numbers: *mut f32,
    /// Numbers from a row to the next.
    pub(super) row: usize,
    head: usize,
    member: usize,
}

impl Place {
    /// Of a tensor `[rows, heads]`, with what is behind that.
    pub(super) fn new(tensor: &Tensor) -> Result<Self> {
        let stride = tensor.stride();
        let number = |at: usize| stride.get(at).map_or(Ok(0), |stride| size(*stride));
        Ok(Self {
            numbers: tensor.data_ptr().cast(),
            row: number(0)?,
            head: number(1)?,
            member: number(2)?,
        })
    }

    /// The first number of one of them.
    ///
    /// # Safety
    ///
    /// They are there.
    pub(super) unsafe fn at(self, row: usize, head: usize, member: usize) -> *mut f32 {
        // SAFETY: as the caller says.
        unsafe {
            self.numbers
                .add(row * self.row + head * self.head + member * self.member)
        }
    }
}
