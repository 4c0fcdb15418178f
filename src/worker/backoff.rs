//! Pauses between tries that grow up to a bound.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(15);

/// The next pause.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Backoff {
    /// Something went well: the next pause is short again.
    pub(super) fn reset(&mut self) {
        self.0 = FIRST;
    }

    /// Waits, or until `stop`. Workers that lost the same server do not all come back at once.
    pub(super) async fn pause(&mut self, stop: &CancellationToken) {
        let pause = self.0.mul_f64(0.5 + 0.5 * rand::random::<f64>());
        self.0 = (self.0 * 2).min(LONGEST);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => {}
        }
    }
}
