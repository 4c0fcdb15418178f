//! Weights whose loading is watched.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use clade_lm_api::messages::Progress;
use tch::{Device, Kind, Tensor};

use crate::error::Result;
use crate::load::memory;
use crate::weights::{TensorInfo, Weights};

/// Tells of every tensor that is read.
pub(super) struct Watched<'a> {
    weights: &'a dyn Weights,
    done: AtomicU64,
    all: u64,
    tell: &'a (dyn Fn(Progress) + Sync),
}

impl<'a> Watched<'a> {
    pub(super) fn new(weights: &'a dyn Weights, kind: Kind, tell: &'a (dyn Fn(Progress) + Sync)) -> Self {
        Self {
            weights,
            done: AtomicU64::new(0),
            all: memory::needed(&weights.tensors(), kind),
            tell,
        }
    }
}

impl fmt::Debug for Watched<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watched").field(&self.weights).finish()
    }
}

impl Weights for Watched<'_> {
    fn tensors(&self) -> Vec<TensorInfo> {
        self.weights.tensors()
    }

    fn has(&self, name: &str) -> bool {
        self.weights.has(name)
    }

    fn get(&self, name: &str, kind: Kind, device: Device) -> Result<Tensor> {
        let tensor = self.weights.get(name, kind, device)?;
        let bytes = tensor.numel() as u64 * kind.elt_size_in_bytes() as u64;
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (self.tell)(Progress {
            done: done.min(self.all),
            all: self.all,
        });
        Ok(tensor)
    }
}
