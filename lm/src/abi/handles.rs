//! What callers have: models and running requests, by number.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::engine::Canceller;
use crate::error::{LmError, Result};
use crate::local::LocalModel;

static NEXT: AtomicU64 = AtomicU64::new(1);
static MODELS: Mutex<Option<HashMap<u64, Arc<LocalModel>>>> = Mutex::new(None);
static GENERATIONS: Mutex<Option<HashMap<u64, Canceller>>> = Mutex::new(None);

fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Keeps a model and gives its number.
pub(super) fn keep_model(model: LocalModel) -> u64 {
    let handle = next();
    MODELS.lock().get_or_insert_default().insert(handle, Arc::new(model));
    handle
}

/// The model of a number.
pub(super) fn model(handle: u64) -> Result<Arc<LocalModel>> {
    let models = MODELS.lock();
    let known = models.as_ref().and_then(|models| models.get(&handle));
    known
        .cloned()
        .ok_or_else(|| LmError::Request(format!("there is no loaded model {handle}")))
}

/// Forgets a model.
pub(super) fn forget_model(handle: u64) -> Result<()> {
    let removed = MODELS.lock().as_mut().and_then(|models| models.remove(&handle));
    match removed {
        Some(model) => {
            drop(model);
            Ok(())
        }
        None => Err(LmError::Request(format!("there is no loaded model {handle}"))),
    }
}

/// Keeps what cancels a request and gives its number.
pub(super) fn keep_generation(canceller: Canceller) -> u64 {
    let handle = next();
    GENERATIONS.lock().get_or_insert_default().insert(handle, canceller);
    handle
}

/// Cancels a request; one that ended is gone.
pub(super) fn cancel(handle: u64) {
    if let Some(canceller) = GENERATIONS.lock().as_ref().and_then(|known| known.get(&handle)) {
        canceller.cancel();
    }
}

/// Forgets a request that ended.
pub(super) fn forget_generation(handle: u64) {
    if let Some(known) = GENERATIONS.lock().as_mut() {
        known.remove(&handle);
    }
}
