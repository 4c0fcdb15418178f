//! What callers have, by number: models, tokenizers and running requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use crate::engine::Canceller;
use crate::error::{LmError, Result};
use crate::local::LocalModel;
use crate::text::Tokenizer;

type Kept<T> = LazyLock<Mutex<HashMap<u64, T>>>;

static NEXT: AtomicU64 = AtomicU64::new(1);
static MODELS: Kept<Arc<LocalModel>> = LazyLock::new(Mutex::default);
static TOKENIZERS: Kept<Arc<Tokenizer>> = LazyLock::new(Mutex::default);
static GENERATIONS: Kept<Canceller> = LazyLock::new(Mutex::default);

fn keep<T>(kept: &Kept<T>, value: T) -> u64 {
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    kept.lock().insert(handle, value);
    handle
}

fn find<T: Clone>(kept: &Kept<T>, handle: u64, what: &str) -> Result<T> {
    let found = kept.lock().get(&handle).cloned();
    found.ok_or_else(|| unknown(handle, what))
}

fn forget<T>(kept: &Kept<T>, handle: u64, what: &str) -> Result<()> {
    // What is forgotten may take its time to go; the lock is not held for it.
    let removed = kept.lock().remove(&handle);
    removed.map(drop).ok_or_else(|| unknown(handle, what))
}

fn unknown(handle: u64, what: &str) -> LmError {
    LmError::Request(format!("there is no loaded {what} {handle}"))
}

/// Keeps a model and gives its number.
pub(super) fn keep_model(model: LocalModel) -> u64 {
    keep(&MODELS, Arc::new(model))
}

/// The model of a number.
pub(super) fn model(handle: u64) -> Result<Arc<LocalModel>> {
    find(&MODELS, handle, "model")
}

/// Forgets a model.
pub(super) fn forget_model(handle: u64) -> Result<()> {
    forget(&MODELS, handle, "model")
}

/// Keeps a tokenizer and gives its number.
pub(super) fn keep_tokenizer(tokenizer: Tokenizer) -> u64 {
    keep(&TOKENIZERS, Arc::new(tokenizer))
}

/// The tokenizer of a number.
pub(super) fn tokenizer(handle: u64) -> Result<Arc<Tokenizer>> {
    find(&TOKENIZERS, handle, "tokenizer")
}

/// Forgets a tokenizer.
pub(super) fn forget_tokenizer(handle: u64) -> Result<()> {
    forget(&TOKENIZERS, handle, "tokenizer")
}

/// Keeps what cancels a request and gives its number.
pub(super) fn keep_generation(canceller: Canceller) -> u64 {
    keep(&GENERATIONS, canceller)
}

/// Cancels a request; one that ended is gone.
pub(super) fn cancel(handle: u64) {
    if let Some(canceller) = GENERATIONS.lock().get(&handle) {
        canceller.cancel();
    }
}

/// Forgets a request that ended.
pub(super) fn forget_generation(handle: u64) {
    GENERATIONS.lock().remove(&handle);
}
