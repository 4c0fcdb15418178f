//! Events on their way to the caller.

use std::ffi::c_void;

use clade_lm_api::Sink;
use serde::Serialize;

/// Where the events of a call go. When a call that succeeded drops it, the caller is told that no more come.
pub(super) struct Events {
    sink: Sink,
    context: *mut c_void,
    has_begun: bool,
}

// SAFETY: the caller lets its sink be called from any one thread at a time, and there is one owner of this.
unsafe impl Send for Events {}

impl Events {
    pub(super) fn new(sink: Sink, context: *mut c_void) -> Self {
        Self {
            sink,
            context,
            has_begun: false,
        }
    }

    /// The call succeeds: from now on the end is told. A call that fails must not tell it, for its caller cleans up then.
    pub(super) fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Gives an event to the caller.
    pub(super) fn send(&self, event: &impl Serialize) {
        match serde_json::to_vec(event) {
            Ok(text) => (self.sink)(self.context, text.as_ptr(), text.len()),
            Err(error) => tracing::error!(%error, "an event could not be written"),
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if self.has_begun {
            (self.sink)(self.context, std::ptr::null(), 0);
        }
    }
}
