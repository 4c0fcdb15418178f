//! An attempt whose model is paused waits without a try, a step, money or time of a budget; everybody can see until when.

use std::time::Duration;

use rusqlite::{Connection, params};

use crate::model::Pause;
use crate::scheduler::error::Result;
use crate::scheduler::queue::conducted::RunControl;
use crate::scheduler::services::Services;

/// Shortest wait; a pause that is over still holds while its first request is on its way.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// How long an attempt waits for a pause.
pub fn time_left(pause: &Pause) -> Duration {
    let left = pause.until - chrono::Utc::now();
    left.to_std()
        .ok()
        .filter(|left| !left.is_zero())
        .unwrap_or(SHORTEST_WAIT)
}

/// Notes in the store that a model is paused, for `system.models` in every process.
///
/// # Errors
/// When the store fails.
pub async fn note(services: &Services, model: &str, pause: &Pause) -> Result<()> {
    let (model, until, reason) = (model.to_owned(), pause.until.timestamp_micros(), pause.reason.clone());
    services
        .store
        .control(move |tx| {
            tx.prepare_cached(
                "INSERT INTO model_pauses (model, paused_until, reason) VALUES (?1, ?2, ?3)
                 ON CONFLICT (model) DO UPDATE SET paused_until = excluded.paused_until, reason = excluded.reason
                 WHERE excluded.paused_until <> model_pauses.paused_until",
            )?
            .execute(params![model, until, reason])
            .map(|_| ())
        })
        .await?;
    Ok(())
}

/// Models that are paused now: name, end of the pause in microseconds UTC, reason.
///
/// # Errors
/// When the control database fails.
pub fn model_pauses(conn: &Connection, now: i64) -> rusqlite::Result<Vec<(String, i64, String)>> {
    conn.prepare_cached("SELECT model, paused_until, reason FROM model_pauses WHERE paused_until > ?1")?
        .query_map([now], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

/// Waits for so long; false when somebody asked to drain or kill before. What waits is not in flight, so draining ends it.
pub async fn wait(time: Duration, control: &RunControl) -> bool {
    tokio::select! {
        biased;
        () = control.kill.cancelled() => false,
        () = control.drain.cancelled() => false,
        () = tokio::time::sleep(time) => true,
    }
}
