//! Ctrl-C: the first drains what runs, the second ends it now; a query that only reads ends at once.

use std::future::Future;

use tokio::signal::ctrl_c;

use super::error::CliError;
use super::terminal::note;
use crate::engine::Engine;

/// Runs work to its end under Ctrl-C.
pub async fn guard<T>(engine: &Engine, work: impl Future<Output = T>) -> Result<T, CliError> {
    tokio::pin!(work);
    let mut presses = 0;
    loop {
        tokio::select! {
            result = &mut work => return Ok(result),
            pressed = ctrl_c() => {
                // Without a handler the signal has its usual effect.
                if pressed.is_err() {
                    return Ok(work.await);
                }
                presses += 1;
            }
        }
        if !engine.scheduler().is_busy() {
            return Err(CliError::Interrupted);
        }
        match presses {
            1 => {
                note("stopping: programs in flight are finished first; press Ctrl-C again to stop them now");
                engine.scheduler().drain();
            }
            2 => {
                note("stopping now: what was in flight goes back into the queue");
                engine.scheduler().kill();
            }
            _ => return Err(CliError::Interrupted),
        }
    }
}
