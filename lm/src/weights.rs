//! Tensors of a checkpoint by name.

use std::fmt;

use tch::{Device, Kind, Tensor};

use crate::error::Result;

/// Number format of a tensor in a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// 32-bit float.
    F32,
    /// 16-bit float.
    F16,
    /// bfloat16.
    Bf16,
    /// 8-bit float with 4 bits of exponent.
    F8E4m3,
    /// A block format of GGUF, by its name there.
    Quantized(&'static str),
}

/// What a checkpoint says of a tensor without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name in the convention of Hugging Face, whatever the file calls it.
    pub name: String,
    /// Shape.
    pub shape: Vec<i64>,
    /// Format in the file.
    pub dtype: Dtype,
}

/// A checkpoint. Names follow Hugging Face (`model.layers.0.self_attn.q_proj.weight`); a file that names or lays out tensors in
/// another way is translated by its reader.
pub trait Weights: Send + Sync + fmt::Debug {
    /// All tensors, sorted by name.
    fn tensors(&self) -> Vec<TensorInfo>;

    /// Whether there is a tensor of a name.
    fn has(&self, name: &str) -> bool;

    /// A tensor, converted to a number format and put on a device.
    ///
    /// # Errors
    /// When there is none of this name, or it cannot be read.
    fn get(&self, name: &str, kind: Kind, device: Device) -> Result<Tensor>;
}

/// Weights of which every tensor that is read is told.
pub(crate) struct Observed<'a> {
    weights: &'a dyn Weights,
    tell: &'a (dyn Fn(&Tensor) + Sync),
}

impl<'a> Observed<'a> {
    /// `tell` is called with a tensor before whoever asked gets it.
    pub(crate) fn new(weights: &'a dyn Weights, tell: &'a (dyn Fn(&Tensor) + Sync)) -> Self {
        Self { weights, tell }
    }
}

impl fmt::Debug for Observed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Observed").field(&self.weights).finish()
    }
}

impl Weights for Observed<'_> {
    fn tensors(&self) -> Vec<TensorInfo> {
        self.weights.tensors()
    }

    fn has(&self, name: &str) -> bool {
        self.weights.has(name)
    }

    fn get(&self, name: &str, kind: Kind, device: Device) -> Result<Tensor> {
        let tensor = self.weights.get(name, kind, device)?;
        (self.tell)(&tensor);
        Ok(tensor)
    }
}
