//! Ctrl-C: the first drains what runs, the second ends it now; a query that only reads ends at once.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::error::CliError;
use super::terminal::note;
use crate::engine::Engine;

/// What work under Ctrl-C gave.
#[derive(Debug)]
pub struct Guarded<T> {
    value: T,
    is_killed: bool,
}

impl<T> Guarded<T> {
    /// The result, whatever was broken off, and what to return once it is shown: an error when work was broken off.
    pub fn split(self) -> (T, Result<(), CliError>) {
        let ended = if self.is_killed {
            Err(CliError::Interrupted)
        } else {
            Ok(())
        };
        (self.value, ended)
    }
}

/// Runs work to its end under Ctrl-C; work that was broken off is an error.
pub async fn guard<T>(engine: &Engine, work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let (result, ended) = watch(engine, work).await?.split();
    match result {
        Ok(value) => ended.map(|()| value),
        Err(error) => Err(ended.err().unwrap_or(error)),
    }
}

/// Runs work to its end under Ctrl-C and says how it ended.
pub async fn watch<T>(engine: &Engine, work: impl Future<Output = T>) -> Result<Guarded<T>, CliError> {
    tokio::pin!(work);
    // One listener for all presses: a press between two listeners would be lost. Without one the signal has its usual effect.
    let Ok(mut interrupts) = signal(SignalKind::interrupt()) else {
        return Ok(Guarded {
            value: work.await,
            is_killed: false,
        });
    };
    let mut presses = 0;
    loop {
        tokio::select! {
            value = &mut work => {
                return Ok(Guarded {
                    value,
                    is_killed: presses > 1,
                });
            }
            _ = interrupts.recv() => presses += 1,
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

/// Runs a server to its end: the first Ctrl-C or SIGTERM says `stopping` and cancels `stop`, the second breaks the server off. Signals are
/// listened for before the server is begun, so what it says first can be answered with one.
pub async fn until_stopped<T>(
    stop: &CancellationToken,
    stopping: &str,
    work: impl Future<Output = T>,
) -> Result<T, CliError> {
    tokio::pin!(work);
    let failed = |error| CliError::Failed(format!("cannot listen for signals: {error}"));
    let mut interrupts = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminations = signal(SignalKind::terminate()).map_err(failed)?;
    loop {
        tokio::select! {
            value = &mut work => return Ok(value),
            _ = interrupts.recv() => {}
            _ = terminations.recv() => {}
        }
        if stop.is_cancelled() {
            return Err(CliError::Interrupted);
        }
        note(stopping);
        stop.cancel();
    }
}
