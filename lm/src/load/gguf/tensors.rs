//! Tensors of the model, made from those of the file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use memmap2::Mmap;
use tch::{Device, Kind, Tensor};

use super::header::Entry;
use crate::error::Result;
use crate::load::files::format_error;
use crate::weights::{TensorInfo, Weights};

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
    /// Tensor of the file.
    source: String,
    /// The expert whose part of it is taken: the index in the first dimension.
    expert: Option<i64>,
    /// The half of the rows that is taken, where two matrices are joined: 0 or 1.
    half: Option<i64>,
    undo: Vec<Undo>,
}

impl Recipe {
    /// A tensor as it is.
    pub(super) fn plain(source: &str) -> Self {
        Self::undoing(source, [])
    }

    /// A tensor to which something was done.
    pub(super) fn undoing(source: &str, undo: impl Into<Vec<Undo>>) -> Self {
        Self {
            source: source.to_owned(),
            expert: None,
            half: None,
            undo: undo.into(),
        }
    }

    /// One expert of a stack, or a half of it.
    pub(super) fn expert(source: &str, expert: i64, half: Option<i64>) -> Self {
        Self {
            expert: Some(expert),
            half,
            ..Self::plain(source)
        }
    }

    /// Shape and place in the bytes of the part of a tensor that is taken.
    fn part(&self, shape: &[i64], bytes: usize) -> Option<(Vec<i64>, Range<usize>)> {
        let mut shape = shape.to_vec();
        let mut range = 0..bytes;
        if let Some(expert) = self.expert {
            if shape.len() < 2 || expert >= shape[0] {
                return None;
            }
            range = nth(&range, shape.remove(0), expert);
        }
        if let Some(half) = self.half {
            let rows = shape.first_mut().filter(|rows| **rows % 2 == 0)?;
            *rows /= 2;
            range = nth(&range, 2, half);
        }
        Some((shape, range))
    }
}

/// One of `count` equal parts of a range.
fn nth(range: &Range<usize>, count: i64, index: i64) -> Range<usize> {
    let part = range.len() / count as usize;
    let start = range.start + part * index as usize;
    start..start + part
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

    /// A tensor of the file, and shape and place of the part of it that is taken.
    fn part(&self, recipe: &Recipe) -> Result<(&Entry, Vec<i64>, Range<usize>)> {
        let entry = self.entry(&recipe.source)?;
        let (shape, range) = recipe.part(&entry.shape, entry.bytes.len()).ok_or_else(|| {
            let problem = format!(
                "has the tensor '{}' with the shape {:?}, which is no stack",
                recipe.source, entry.shape
            );
            format_error(&self.path, problem)
        })?;
        Ok((
            entry,
            shape,
            entry.bytes.start + range.start..entry.bytes.start + range.end,
        ))
    }

    fn describe(&self, name: &str, recipe: &Recipe) -> Result<TensorInfo> {
        let (entry, mut shape, _) = self.part(recipe)?;
        for undo in &recipe.undo {
            if !undo.fits(&shape) {
                let problem = format!(
                    "has the tensor '{}' with the shape {:?}, which does not fit the numbers of heads",
                    recipe.source, entry.shape
                );
                return Err(format_error(&self.path, problem));
            }
            if let Undo::Squeezed { dim } = undo {
                shape.insert((*dim).min(shape.len()), 1);
            }
        }
        Ok(TensorInfo {
            name: name.to_owned(),
            shape,
            dtype: entry.ggml_type.dtype(),
        })
    }

    /// The part of a tensor of the file, in 32-bit floats.
    fn read(&self, recipe: &Recipe) -> Result<Tensor> {
        let (entry, shape, bytes) = self.part(recipe)?;
        let tensor = Tensor::f_zeros(&shape, (Kind::Float, Device::Cpu))?;
        let elements = tensor.numel();
        if elements > 0 {
            // SAFETY: the tensor was just made, contiguous, with `elements` floats on the CPU, and nothing else refers to it.
            let values = unsafe { std::slice::from_raw_parts_mut(tensor.data_ptr().cast::<f32>(), elements) };
            entry.ggml_type.dequantize(&self.file[bytes], values);
        }
        Ok(tensor)
    }
}

impl Undo {
    /// Whether it can have been done to a tensor of this shape.
    fn fits(self, shape: &[i64]) -> bool {
        match self {
            Self::PairedRotary { heads } => heads > 0 && shape.first().is_some_and(|rows| rows % (2 * heads) == 0),
            Self::TiledHeads {
                dim,
                offset,
                key_heads,
                per_key_head,
                head_size,
            } => shape.get(dim as usize) == Some(&(offset + key_heads * per_key_head * head_size)),
            Self::PlusOne | Self::NegatedExponential | Self::Squeezed { .. } => true,
        }
    }

    /// The tensor to which it had been done.
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
        let mut tensor = self.read(recipe)?;
        for undo in &recipe.undo {
            tensor = undo.apply(&tensor)?;
        }
        Ok(tensor.f_contiguous()?.f_to_kind(kind)?.f_to_device(device)?)
    }
}
