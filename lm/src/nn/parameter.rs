//! Tensors of modules, and which tensors of a checkpoint they are made of.
//!
//! What one multiplication can do is stored as one tensor (queries, keys and values; gate and up), in the layout that is fastest to
//! multiply with. Because a parameter knows its pieces, loading and replacing weights are the same operation.

use std::collections::{HashMap, HashSet};
use std::fmt;

use tch::{Device, Kind, Tensor};

use crate::error::{LmError, Result};
use crate::weights::Weights;

/// Makes one tensor of another: the part of a source that is wanted, or the place in a parameter where it goes.
type View = Box<dyn Fn(Tensor) -> Result<Tensor> + Send + Sync>;

/// One tensor of a checkpoint, or a part of it, that goes to one place of a parameter.
pub(crate) struct Piece {
    name: String,
    shape: Vec<i64>,
    take: Option<View>,
    put: Option<View>,
}

impl Piece {
    /// A whole tensor that is the whole parameter.
    pub(crate) fn new(name: String, shape: impl Into<Vec<i64>>) -> Self {
        Self {
            name,
            shape: shape.into(),
            take: None,
            put: None,
        }
    }

    /// What is made of the tensor before it is copied.
    pub(crate) fn take(mut self, take: impl Fn(Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Self {
        self.take = Some(Box::new(take));
        self
    }

    /// Where in the parameter it goes.
    pub(crate) fn put(mut self, put: impl Fn(Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Self {
        self.put = Some(Box::new(put));
        self
    }
}

/// A tensor of a module.
pub(crate) struct Parameter {
    shape: Vec<i64>,
    kind: Kind,
    /// Ways that checkpoints store it; the first is what is reported as missing.
    layouts: Vec<Vec<Piece>>,
    tensor: Tensor,
}

impl fmt::Debug for Parameter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Parameter({:?} {:?})", self.shape, self.kind)
    }
}

impl Parameter {
    /// A parameter that is not loaded yet.
    pub(crate) fn new(shape: impl Into<Vec<i64>>, kind: Kind, pieces: Vec<Piece>) -> Self {
        Self {
            shape: shape.into(),
            kind,
            layouts: vec![pieces],
            tensor: Tensor::new(),
        }
    }

    /// Another way in which checkpoints store it.
    pub(crate) fn or(mut self, pieces: Vec<Piece>) -> Self {
        self.layouts.push(pieces);
        self
    }

    /// Its values.
    pub(crate) fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// Bytes that it takes.
    fn bytes(&self) -> u64 {
        self.shape.iter().product::<i64>().unsigned_abs() * self.kind.elt_size_in_bytes() as u64
    }

    /// The pieces as this checkpoint has them.
    fn pieces(&self, checkpoint: &Checkpoint<'_>) -> &[Piece] {
        let stored = |pieces: &&Vec<Piece>| {
            pieces
                .first()
                .is_some_and(|piece| checkpoint.shapes.contains_key(&piece.name))
        };
        self.layouts
            .iter()
            .find(stored)
            .or(self.layouts.first())
            .map_or(&[], Vec::as_slice)
    }

    fn check(&self, checkpoint: &Checkpoint<'_>) -> Result<()> {
        for piece in self.pieces(checkpoint) {
            let Some(found) = checkpoint.shapes.get(&piece.name) else {
                return Err(LmError::MissingTensor {
                    name: piece.name.clone(),
                    model_type: checkpoint.model_type.to_owned(),
                });
            };
            if *found != piece.shape {
                return Err(LmError::Shape {
                    name: piece.name.clone(),
                    found: found.clone(),
                    expected: piece.shape.clone(),
                });
            }
        }
        Ok(())
    }

    fn fill(&mut self, checkpoint: &Checkpoint<'_>, device: Device) -> Result<()> {
        if !self.tensor.defined() {
            self.tensor = Tensor::f_empty(&self.shape, (self.kind, device))?;
        }
        for piece in self.pieces(checkpoint) {
            let mut source = checkpoint.weights.get(&piece.name, self.kind, device)?;
            // A reader that is wrong about its own table must not write past the place of the piece.
            if source.size() != piece.shape {
                return Err(LmError::Shape {
                    name: piece.name.clone(),
                    found: source.size(),
                    expected: piece.shape.clone(),
                });
            }
            if let Some(take) = &piece.take {
                source = take(source)?;
            }
            let whole = self.tensor.shallow_clone();
            let mut place = match &piece.put {
                Some(put) => put(whole)?,
                None => whole,
            };
            place.f_copy_(&source)?;
        }
        Ok(())
    }
}

/// A checkpoint with its table of shapes.
#[derive(Debug)]
struct Checkpoint<'a> {
    weights: &'a dyn Weights,
    shapes: HashMap<String, Vec<i64>>,
    model_type: &'a str,
}

/// What the parameters of a model amount to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amount {
    /// Numbers in the checkpoint.
    pub(crate) parameters: u64,
    /// Bytes in memory.
    pub(crate) bytes: u64,
}

/// Something that has parameters.
pub(crate) trait Module {
    /// Adds its parameters to a list.
    fn parameters<'a>(&'a mut self, list: &mut Vec<&'a mut Parameter>);
}

/// Reads all parameters of a module from a checkpoint. Names and shapes are checked before the first is read; parameters that are
/// there already are overwritten in place.
pub(crate) fn load(module: &mut dyn Module, weights: &dyn Weights, model_type: &str, device: Device) -> Result<Amount> {
    let shapes = weights
        .tensors()
        .into_iter()
        .map(|tensor| (tensor.name, tensor.shape))
        .collect();
    let checkpoint = Checkpoint {
        weights,
        shapes,
        model_type,
    };
    let mut parameters = Vec::new();
    module.parameters(&mut parameters);
    for parameter in &parameters {
        parameter.check(&checkpoint)?;
    }
    let mut seen = HashSet::new();
    let mut amount = Amount {
        parameters: 0,
        bytes: 0,
    };
    for parameter in parameters {
        parameter.fill(&checkpoint, device)?;
        amount.bytes += parameter.bytes();
        for piece in parameter.pieces(&checkpoint) {
            if seen.insert(piece.name.clone()) {
                amount.parameters += piece.shape.iter().product::<i64>().unsigned_abs();
            }
        }
    }
    Ok(amount)
}
