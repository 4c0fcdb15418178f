//! New weights in the place of old ones, and whether some of them are there when they fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::channel::oneshot;
use tch::Tensor;

use crate::error::{LmError, Result};
use crate::model::CausalLm;
use crate::weights::{Observed, Weights};

/// New weights, and who waits for them.
#[derive(Debug)]
pub(super) struct Replacement {
    pub(super) weights: Arc<dyn Weights>,
    pub(super) reply: oneshot::Sender<Result<()>>,
}

/// Replaces the weights of a model.
///
/// # Errors
/// [`LmError::MixedWeights`] when it failed after the model got some of them; with any other error it has the old ones.
pub(super) fn replace(model: &mut dyn CausalLm, weights: &dyn Weights) -> Result<()> {
    let has_some = AtomicBool::new(false);
    let note = |_: &Tensor| has_some.store(true, Ordering::Relaxed);
    let outcome = model.replace_weights(&Observed::new(weights, &note));
    outcome.map_err(|error| match has_some.load(Ordering::Relaxed) {
        true => LmError::MixedWeights(error.to_string()),
        false => error,
    })
}
