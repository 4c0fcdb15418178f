//! What the engine's thread and its callers both see.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::stats::Stats;
use crate::error::LmError;

/// State of an engine that is read without asking its thread.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The last look at it.
    pub(super) stats: Mutex<Stats>,
    /// Requests that wait for their beginning, those on their way to the thread included.
    waiting: AtomicUsize,
    /// Whether it was told to end.
    is_closing: AtomicBool,
    /// Why it runs no more.
    end: Mutex<Option<String>>,
    /// Why its weights are mixed.
    mixed: Mutex<Option<String>>,
}

impl Shared {
    /// One more request waits; false where `most` wait already.
    pub(super) fn enter_queue(&self, most: usize) -> bool {
        let more = |waiting| (waiting < most).then_some(waiting + 1);
        self.waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .is_ok()
    }

    /// A request waits no more.
    pub(super) fn leave_queue(&self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }

    /// Requests that wait for their beginning.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// It runs no more. The first reason stays.
    pub(super) fn end(&self, reason: String) {
        self.end.lock().get_or_insert(reason);
    }

    /// Its weights are mixed for a reason, or whole again.
    pub(super) fn set_mixed(&self, reason: Option<String>) {
        *self.mixed.lock() = reason;
    }

    /// Why nothing is generated as long as the weights are mixed.
    pub(super) fn mixed(&self) -> Option<LmError> {
        self.mixed.lock().clone().map(LmError::MixedWeights)
    }

    /// It is to end after the current step.
    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
    }

    /// Whether it is to end.
    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Whether it takes no more requests.
    pub(super) fn has_ended(&self) -> bool {
        self.is_closing() || self.end.lock().is_some()
    }

    /// Why nothing is done any more.
    pub(super) fn stopped(&self) -> LmError {
        LmError::Stopped(
            self.end
                .lock()
                .clone()
                .unwrap_or_else(|| "the engine was shut down".to_owned()),
        )
    }
}
