//! The wall clock of a run or statement: books its time while it is worked on, so that a budget of wall time outlives the process,
//! and says when the time is used up, somebody asked to cancel, or another process has taken the run over.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::scheduler::budget::{self, Resource};
use crate::scheduler::error::Result;
use crate::scheduler::queue::lease::{self, RunLeaseError};
use crate::scheduler::services::Services;

/// Longest time between two looks at requests and the wall budget.
const TICK: Duration = Duration::from_secs(1);

/// What the clock tells.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    /// Somebody asked to cancel.
    pub cancelled: CancellationToken,
    /// The wall budget is used up.
    pub used_up: CancellationToken,
    /// Another process conducts the run now.
    pub lost: CancellationToken,
}

impl Signals {
    /// Waits for one of them.
    pub async fn any(&self) {
        tokio::select! {
            () = self.cancelled.cancelled() => {}
            () = self.used_up.cancelled() => {}
            () = self.lost.cancelled() => {}
        }
    }
}

/// Whose time is booked.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Run or statement.
    pub id: String,
    /// The run, or the one that the statement adds to: time is booked only while this process has its lease, and requests
    /// to it are heard.
    pub run_id: Option<String>,
}

/// A clock that runs.
#[derive(Debug)]
pub struct WallClock {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl WallClock {
    /// Starts the clock of a budget scope.
    pub fn start(services: Arc<Services>, scope: Scope, signals: Signals) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(run(services, scope, signals, stop.clone()));
        Self { stop, task }
    }

    /// Stops the clock when the time up to now is booked.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            warn!(%error, "the wall clock of a run broke off");
        }
    }
}

async fn run(services: Arc<Services>, scope: Scope, signals: Signals, stop: CancellationToken) {
    let mut last = services.now();
    let mut pause = Duration::ZERO;
    loop {
        tokio::select! {
            () = services.clock.sleep(pause) => {}
            () = stop.cancelled() => {}
        }
        let now = services.now();
        let seconds = (now - last).max(0) as f64 / 1e6;
        match tick(&services, &scope, seconds).await {
            Ok(Tick::Lost) => {
                signals.lost.cancel();
                return;
            }
            Ok(Tick::Kept { cancel, wall_left }) => {
                last = now;
                if cancel {
                    signals.cancelled.cancel();
                }
                if wall_left <= 0.0 {
                    signals.used_up.cancel();
                }
                pause = Duration::try_from_secs_f64(wall_left).map_or(TICK, |left| left.clamp(SHORTEST, TICK));
            }
            Err(error) => {
                pause = TICK;
                warn!(scope = %scope.id, %error, "wall time could not be booked; it is tried again");
            }
        }
        if stop.is_cancelled() {
            return;
        }
    }
}

/// Shortest time between two looks, when the budget is nearly used up.
const SHORTEST: Duration = Duration::from_millis(20);

enum Tick {
    /// Another process has the run's lease.
    Lost,
    Kept {
        cancel: bool,
        wall_left: f64,
    },
}

async fn tick(services: &Services, scope: &Scope, seconds: f64) -> Result<Tick> {
    let (owner, Scope { id: scope, run_id }) = (services.owner.clone(), scope.clone());
    Ok(services
        .store
        .control(move |tx| {
            let mut cancel = false;
            if let Some(run_id) = &run_id {
                match lease::keep_run(tx, run_id, &owner) {
                    Err(RunLeaseError::Lost(_)) => return Ok(Tick::Lost),
                    kept => kept?,
                }
                cancel = tx
                    .prepare_cached("SELECT 1 FROM run_requests WHERE run_id = ?1 AND request = 'cancel'")?
                    .exists([run_id])?;
            }
            budget::spend(tx, &scope, Resource::WallSeconds, seconds)?;
            let wall_left = budget::balance(tx, &scope, Resource::WallSeconds)?.left();
            Ok::<_, RunLeaseError>(Tick::Kept { cancel, wall_left })
        })
        .await?)
}
