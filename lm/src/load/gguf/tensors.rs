//! Tensors of the model, made from those of the file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use memmap2::Mmap;
use tch::{Device, Kind, Tensor};

use super::header::Entry;
use crate::error::Result;
use crate::load::files::format_error;
use crate::weights::{TensorInfo, Weights};

/// A tensor of the file, or the part of it that belongs to one expert.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub name: String,
    /// Index along the first dimension.
    pub expert: Option<i64>,
}

/// One thing that llama.cpp did to a tensor, undone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Undo {
    /// Rows of a head: pairs that are rotated together lie side by side in the file, half a head apart in the model.
    PairedRotary { heads: i64 },
    /// One was added.
    PlusOne,
    /// `-exp(x)` was taken.
    NegatedExponential,
    /// Heads of values, from `offset` on in the dimension `dim`: the file has the first of every key head, then the second of every
    /// one; the model has all of the first key head, then all of the second.
    TiledHeads {
        dim: i64,
        offset: i64,
        key_heads: i64,
        per_key_head: i64,
        head_size: i64,
    },
    /// A dimension of size 1 was dropped.
    Squeezed { dim: usize },
}

/// How a tensor of the model is made.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    /// Tensors of the file, joined along the dimension 1 where there are several.
    pub sources: Vec<Source>,
    pub undo: Vec<Undo>,
}

impl Recipe {
    /// A tensor as it is.
    pub(super) fn plain(name: &str) -> Self {
        Self {
            sources: vec![Source {
                name: name.to_owned(),
                expert: None,
            }],
            undo: Vec::new(),
        }
    }

    /// A tensor to which something was done.
    pub(super) fn undoing(name: &str, undo: impl Into<Vec<Undo>>) -> Self {
        Self {
            undo: undo.into(),
            ..Self::plain(name)
        }
    }

    /// One expert of a stack.
    pub(super) fn expert(name: &str, expert: i64) -> Self {
        Self {
            sources: vec![Source {
                name: name.to_owned(),
                expert: Some(expert),
            }],
            undo: Vec::new(),
        }
    }
}

/// Weights in a mapped file.
#[derive(Debug)]
pub(super) struct GgufWeights {
    path: PathBuf,
    file: Arc<Mmap>,
    entries: BTreeMap<String, Entry>,
    recipes: BTreeMap<String, (Recipe, TensorInfo)>,
}

impl GgufWeights {
    /// Weights of the file at `path`, which the recipes make.
    ///
    /// # Errors
    /// When a recipe needs a tensor that the file lacks.
    pub(super) fn new(
        path: PathBuf,
        file: Arc<Mmap>,
        entries: BTreeMap<String, Entry>,
        recipes: BTreeMap<String, Recipe>,
    ) -> Result<Self> {
        let mut weights = Self {
            path,
            file,
            entries,
            recipes: BTreeMap::new(),
        };
        for (name, recipe) in recipes {
            let info = weights.describe(&name, &recipe)?;
            weights.recipes.insert(name, (recipe, info));
        }
        Ok(weights)
    }

    fn entry(&self, name: &str) -> Result<&Entry> {
        self.entries
            .get(name)
            .ok_or_else(|| format_error(&self.path, format!("has no tensor '{name}'")))
    }

    fn describe(&self, name: &str, recipe: &Recipe) -> Result<TensorInfo> {
        let mut shape: Vec<i64> = Vec::new();
        let mut dtype = None;
        for (index, source) in recipe.sources.iter().enumerate() {
            let entry = self.entry(&source.name)?;
            let skipped = usize::from(source.expert.is_some());
            let part = entry.shape.get(skipped..).unwrap_or_default();
            if index == 0 {
                shape = part.to_vec();
                dtype = Some(entry.ggml_type.dtype());
            } else if let (Some(joined), Some(rows)) = (shape.get_mut(1), part.get(1)) {
                *joined += rows;
            }
        }
        for undo in &recipe.undo {
            if let Undo::Squeezed { dim } = undo {
                shape.insert((*dim).min(shape.len()), 1);
            }
        }
        let dtype = dtype.ok_or_else(|| format_error(&self.path, format!("has nothing for '{name}'")))?;
        Ok(TensorInfo {
            name: name.to_owned(),
            shape,
            dtype,
        })
    }

    /// A tensor of the file in 32-bit floats.
    fn read(&self, source: &Source) -> Result<Tensor> {
        let entry = self.entry(&source.name)?;
        let mut bytes = &self.file[entry.bytes.clone()];
        let mut shape = entry.shape.as_slice();
        if let (Some(expert), [experts, rest @ ..]) = (source.expert, shape) {
            let part = bytes.len() / *experts as usize;
            bytes = &bytes[part * expert as usize..][..part];
            shape = rest;
        }
        let tensor = Tensor::f_empty(shape, (Kind::Float, Device::Cpu))?;
        let elements = tensor.numel();
        // SAFETY: the tensor was just made, contiguous, with `elements` floats on the CPU, and nothing else refers to it. Its memory
        // is not read before it is written: `dequantize` only assigns.
        let values = unsafe { std::slice::from_raw_parts_mut(tensor.data_ptr().cast::<f32>(), elements) };
        entry.ggml_type.dequantize(bytes, values);
        Ok(tensor)
    }
}

impl Undo {
    fn apply(self, tensor: &Tensor) -> Result<Tensor> {
        let size = tensor.size();
        Ok(match self {
            Self::PairedRotary { heads } => {
                let rest: i64 = size.iter().skip(1).product();
                tensor
                    .f_reshape([heads, -1, 2, rest])?
                    .f_transpose(1, 2)?
                    .f_reshape(&size)?
            }
            Self::PlusOne => tensor.f_sub_scalar(1)?,
            Self::NegatedExponential => tensor.f_neg()?.f_log()?,
            Self::TiledHeads {
                dim,
                offset,
                key_heads,
                per_key_head,
                head_size,
            } => {
                let length = key_heads * per_key_head * head_size;
                let before = tensor.f_narrow(dim, 0, offset)?;
                let mut split = size.clone();
                split.splice(dim as usize..=dim as usize, [per_key_head, key_heads, head_size]);
                let mut joined = size.clone();
                joined[dim as usize] = length;
                let heads = tensor
                    .f_narrow(dim, offset, length)?
                    .f_reshape(&split)?
                    .f_transpose(dim, dim + 1)?
                    .f_reshape(&joined)?;
                if offset == 0 {
                    heads
                } else {
                    Tensor::f_cat(&[before, heads], dim)?
                }
            }
            Self::Squeezed { dim } => tensor.f_unsqueeze(dim as i64)?,
        })
    }
}

impl Weights for GgufWeights {
    fn tensors(&self) -> Vec<TensorInfo> {
        self.recipes.values().map(|(_, info)| info.clone()).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.recipes.contains_key(name)
    }

    fn get(&self, name: &str, kind: Kind, device: Device) -> Result<Tensor> {
        let (recipe, _) = self
            .recipes
            .get(name)
            .ok_or_else(|| format_error(&self.path, format!("has no tensor for '{name}'")))?;
        let mut parts = Vec::with_capacity(recipe.sources.len());
        for source in &recipe.sources {
            parts.push(self.read(source)?);
        }
        let mut tensor = if parts.len() == 1 {
            parts.remove(0)
        } else {
            Tensor::f_cat(&parts, 1)?
        };
        for undo in &recipe.undo {
            tensor = undo.apply(&tensor)?;
        }
        Ok(tensor.f_contiguous()?.f_to_kind(kind)?.f_to_device(device)?)
    }
}
