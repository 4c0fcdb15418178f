//! New weights in the place of old ones, and whether some of them are there when they fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::channel::oneshot;
use tch::{Device, Kind, Tensor};

use crate::error::{LmError, Result};
use crate::model::CausalLm;
use crate::weights::{TensorInfo, Weights};

/// New weights, and who waits for them.
#[derive(Debug)]
pub(super) struct Replacement {
    pub(super) weights: Arc<dyn Weights>,
    pub(super) reply: oneshot::Sender<Result<()>>,
}

/// Weights that remember whether the model got any of them.
#[derive(Debug)]
struct Handed<'a> {
    weights: &'a dyn Weights,
    any: AtomicBool,
}

impl Weights for Handed<'_> {
    fn tensors(&self) -> Vec<TensorInfo> {
        self.weights.tensors()
    }

    fn has(&self, name: &str) -> bool {
        self.weights.has(name)
    }

    fn get(&self, name: &str, kind: Kind, device: Device) -> Result<Tensor> {
        let tensor = self.weights.get(name, kind, device)?;
        self.any.store(true, Ordering::Relaxed);
        Ok(tensor)
    }
}

/// Replaces the weights of a model.
///
/// # Errors
/// [`LmError::MixedWeights`] when it failed after the model got some of them; with any other error it has the old ones.
pub(super) fn replace(model: &mut dyn CausalLm, weights: &dyn Weights) -> Result<()> {
    let handed = Handed {
        weights,
        any: AtomicBool::new(false),
    };
    let outcome = model.replace_weights(&handed);
    outcome.map_err(|error| match handed.any.load(Ordering::Relaxed) {
        true => LmError::MixedWeights(error.to_string()),
        false => error,
    })
}
