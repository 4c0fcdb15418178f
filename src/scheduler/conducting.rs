//! What this process conducts, so that it can be drained and killed, and so that nothing is conducted twice at once.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::conductor::RunControl;
use super::error::{Result, SchedulerError};

/// Runs and statements that this process conducts, by id.
#[derive(Debug, Clone, Default)]
pub struct Conducting(Arc<Mutex<HashMap<String, RunControl>>>);

/// An entry of what is conducted; it goes when this is dropped.
#[derive(Debug)]
pub struct Entry {
    conducting: Conducting,
    id: String,
    /// Requests to it.
    pub control: RunControl,
}

impl Conducting {
    /// Notes that a run, or a statement on it, is conducted from now on.
    ///
    /// # Errors
    /// When this process conducts it already: two conductors would plan the same steps.
    pub fn begin(&self, id: &str) -> Result<Entry> {
        let mut entries = self.0.lock();
        if entries.contains_key(id) {
            return Err(SchedulerError::Request(format!(
                "'{id}' is being conducted by this process already: wait for its end, or CANCEL RUN '{id}'"
            )));
        }
        let control = RunControl::default();
        entries.insert(id.to_owned(), control.clone());
        Ok(Entry {
            conducting: self.clone(),
            id: id.to_owned(),
            control,
        })
    }

    /// Requests of all that is conducted.
    pub fn controls(&self) -> Vec<RunControl> {
        self.0.lock().values().cloned().collect()
    }

    /// Whether anything is conducted.
    pub fn is_busy(&self) -> bool {
        !self.0.lock().is_empty()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.conducting.0.lock().remove(&self.id);
    }
}
