//! What this process conducts now: runs and statements by id, with the means to stop them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::scheduler::error::{Result, SchedulerError};

/// Requests to a run or statement.
#[derive(Debug, Clone, Default)]
pub struct RunControl {
    /// Draw no more attempts, end what is in flight.
    pub drain: CancellationToken,
    /// End what is in flight now; it goes back into the queue.
    pub kill: CancellationToken,
}

impl RunControl {
    /// The same for what is in flight, which can be told to drain or to end without the run being told.
    pub fn flying(&self) -> Self {
        Self {
            drain: self.drain.child_token(),
            kill: self.kill.child_token(),
        }
    }
}

/// Everything that this process conducts.
#[derive(Debug, Clone, Default)]
pub struct Conducted(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    controls: Mutex<HashMap<String, RunControl>>,
    left: Notify,
}

/// The place of one run or statement; dropping it gives the place up, also when its work has panicked.
#[derive(Debug)]
pub struct Place {
    shared: Arc<Shared>,
    id: String,
}

impl Conducted {
    /// Takes the place of a run or statement.
    ///
    /// # Errors
    /// When this process conducts it already.
    pub fn enter(&self, id: &str, control: &RunControl) -> Result<Place> {
        let mut controls = self.0.controls.lock();
        if controls.contains_key(id) {
            return Err(SchedulerError::Request(format!(
                "'{id}' is being conducted by this process already: wait for its end, or cancel it"
            )));
        }
        controls.insert(id.to_owned(), control.clone());
        Ok(Place {
            shared: Arc::clone(&self.0),
            id: id.to_owned(),
        })
    }

    /// Asks everything to draw no more attempts.
    pub fn drain(&self) {
        self.0
            .controls
            .lock()
            .values()
            .for_each(|control| control.drain.cancel());
    }

    /// Ends everything in flight now; it goes back into the queue.
    pub fn kill(&self) {
        self.0
            .controls
            .lock()
            .values()
            .for_each(|control| control.kill.cancel());
    }

    /// Nothing is conducted.
    pub fn is_empty(&self) -> bool {
        self.0.controls.lock().is_empty()
    }

    /// Waits until nothing is conducted.
    pub async fn idle(&self) {
        loop {
            let left = self.0.left.notified();
            if self.is_empty() {
                return;
            }
            left.await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.controls.lock().remove(&self.id);
        self.shared.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn a_place_is_taken_once_and_free_when_it_is_left() {
        let conducted = Conducted::default();
        let control = RunControl::default();
        let place = conducted.enter("r", &control).unwrap();
        assert!(
            conducted
                .enter("r", &control)
                .unwrap_err()
                .to_string()
                .contains("'r' is being conducted")
        );
        let waiter = tokio::spawn({
            let conducted = conducted.clone();
            async move { conducted.idle().await }
        });
        conducted.kill();
        assert!(control.kill.is_cancelled());
        drop(place);
        waiter.await.unwrap();
        conducted.enter("r", &control).unwrap();
    }
}
