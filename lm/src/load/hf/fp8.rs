//! Checkpoints with 8-bit floats: each block of a weight has a scale beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tch::{Device, Kind, Tensor};

use crate::error::{LmError, Result};
use crate::load::files::format_error;
use crate::weights::{Dtype, TensorInfo, Weights};

/// The tensor of scales of `name` is called `name` and this.
const SCALE: &str = "_scale_inv";

/// Rows or columns of a block are no more than this.
const MAX_BLOCK: i64 = 1 << 16;

/// Weights of which those in 8 bits are multiplied by their scales when they are read.
#[derive(Debug)]
pub(super) struct Fp8 {
    folder: PathBuf,
    inner: Box<dyn Weights>,
    /// Rows and columns of a block.
    block: (i64, i64),
}

/// Wraps the weights where the configuration says that they are quantised.
///
/// # Errors
/// When it names a method that is not known, or a weight lacks its scales.
pub(super) fn wrap(folder: &Path, config: &Map<String, Value>, inner: Box<dyn Weights>) -> Result<Box<dyn Weights>> {
    let path = folder.join("config.json");
    let Some(Value::Object(quantization)) = config.get("quantization_config") else {
        let eight_bits = inner.tensors().into_iter().find(|tensor| tensor.dtype == Dtype::F8E4m3);
        return match eight_bits {
            Some(tensor) => Err(format_error(
                &path,
                format!(
                    "has no 'quantization_config', but '{}' is in 8 bits, whose scales it would tell",
                    tensor.name
                ),
            )),
            None => Ok(inner),
        };
    };
    let method = quantization
        .get("quant_method")
        .and_then(Value::as_str)
        .unwrap_or("unnamed");
    if method != "fp8" {
        return Err(LmError::Unsupported(format!(
            "{}: the weights are quantised by the method '{method}', which is not read; use the unquantised checkpoint, \
             one in FP8, or a GGUF file",
            path.display()
        )));
    }
    let size = |index: usize| {
        quantization
            .get("weight_block_size")
            .and_then(|sizes| sizes.get(index))
            .and_then(Value::as_i64)
            .filter(|size| (1..=MAX_BLOCK).contains(size))
            .ok_or_else(|| {
                format_error(
                    &path,
                    "'quantization_config.weight_block_size' is not two sizes of a block",
                )
            })
    };
    let fp8 = Fp8 {
        folder: folder.to_owned(),
        block: (size(0)?, size(1)?),
        inner,
    };
    fp8.check()?;
    Ok(Box::new(fp8))
}

impl Fp8 {
    /// Every weight in 8 bits has scales of the right shape.
    fn check(&self) -> Result<()> {
        let tensors: BTreeMap<String, TensorInfo> = self
            .inner
            .tensors()
            .into_iter()
            .map(|tensor| (tensor.name.clone(), tensor))
            .collect();
        for (name, tensor) in tensors.iter().filter(|(_, tensor)| tensor.dtype == Dtype::F8E4m3) {
            let scale = tensors.get(&format!("{name}{SCALE}")).ok_or_else(|| {
                format_error(
                    &self.folder,
                    format!("has '{name}' in 8 bits without its scales '{name}{SCALE}'"),
                )
            })?;
            let mut expected = tensor.shape.clone();
            let [.., rows, columns] = expected.as_mut_slice() else {
                return Err(format_error(
                    &self.folder,
                    format!("has '{name}' in 8 bits, which is not a matrix"),
                ));
            };
            *rows = (*rows + self.block.0 - 1) / self.block.0;
            *columns = (*columns + self.block.1 - 1) / self.block.1;
            if scale.shape != expected {
                return Err(LmError::Shape {
                    name: scale.name.clone(),
                    found: scale.shape.clone(),
                    expected,
                });
            }
        }
        Ok(())
    }

    fn is_eight_bits(&self, name: &str) -> bool {
        self.inner.has(&format!("{name}{SCALE}"))
    }
}

impl Weights for Fp8 {
    fn tensors(&self) -> Vec<TensorInfo> {
        let tensors = self.inner.tensors();
        let names: BTreeSet<String> = tensors.iter().map(|tensor| tensor.name.clone()).collect();
        let is_scale = |name: &str| name.strip_suffix(SCALE).is_some_and(|weight| names.contains(weight));
        tensors.into_iter().filter(|tensor| !is_scale(&tensor.name)).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.inner.has(name)
    }

    fn get(&self, name: &str, kind: Kind, device: Device) -> Result<Tensor> {
        if !self.is_eight_bits(name) {
            return self.inner.get(name, kind, device);
        }
        let weight = self.inner.get(name, Kind::Float, device)?;
        let scale = self.inner.get(&format!("{name}{SCALE}"), Kind::Float, device)?;
        let size = weight.size();
        let [.., rows, columns] = size.as_slice() else {
            return Err(format_error(
                &self.folder,
                format!("has '{name}' in 8 bits, which is not a matrix"),
            ));
        };
        let scale = scale
            .f_repeat_interleave_self_int(self.block.0, -2, None)?
            .f_repeat_interleave_self_int(self.block.1, -1, None)?
            .f_narrow(-2, 0, *rows)?
            .f_narrow(-1, 0, *columns)?;
        Ok(weight.f_mul(&scale)?.f_to_kind(kind)?)
    }
}
