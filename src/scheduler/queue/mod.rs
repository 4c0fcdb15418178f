//! The queue of attempts in flight: control SQL over `attempt_queue`. A row is there from planning to the outcome; a lease
//! says who works on it and until when.

pub mod conducted;
pub mod heartbeat;
pub mod hold;
pub mod lease;

use rusqlite::{Connection, Transaction, params};

use super::attempt::Attempt;

/// A lease that was lost: another process took the attempt up, or the run was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("attempt {attempt_id} is no longer leased to {owner}: its result came too late")]
pub struct LeaseLost {
    /// Attempt.
    pub attempt_id: String,
    /// Process that thought it held the lease.
    pub owner: String,
}

/// Fault of a queue operation.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// Another process holds the attempt.
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// The stored attempt cannot be read.
    #[error("attempt {attempt_id} in the queue cannot be read: {source}")]
    Payload {
        /// Attempt.
        attempt_id: String,
        /// Cause.
        source: serde_json::Error,
    },
    /// The control database failed.
    #[error("the attempt queue could not be read or written: {0}")]
    Control(#[from] rusqlite::Error),
}

/// Puts an attempt into the queue; one that is there already stays as it is.
///
/// # Errors
/// When the control database fails.
pub fn enqueue(tx: &Transaction<'_>, attempt: &Attempt) -> Result<(), QueueError> {
    let payload = serde_json::to_string(attempt).map_err(|source| QueueError::Payload {
        attempt_id: attempt.attempt_id.clone(),
        source,
    })?;
    tx.prepare_cached(
        "INSERT OR IGNORE INTO attempt_queue
             (attempt_id, run_id, statement_id, ordinal, sample, state, owner, lease_until, tries, not_before, priority, payload)
         VALUES (?1, ?2, ?3, ?4, ?5, 'planned', NULL, NULL, 0, 0, 0, ?6)",
    )?
    .execute(params![attempt.attempt_id, attempt.run_id, attempt.statement_id, attempt.ordinal, attempt.sample, payload])?;
    Ok(())
}

/// A try of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Try {
    /// Its number, from 1.
    pub number: i64,
    /// The generation that an earlier try has paid for.
    pub paid_generation: Option<String>,
}

/// Takes an attempt up: it must be planned, or its lease must have lapsed, or it is this owner's already.
///
/// # Errors
/// `LeaseLost` when somebody else holds it.
pub fn claim(
    tx: &Transaction<'_>,
    attempt_id: &str,
    owner: &str,
    now: i64,
    lease_until: i64,
) -> Result<Try, QueueError> {
    let changed = tx
        .prepare_cached(
            "UPDATE attempt_queue SET state = 'claimed', owner = ?2, lease_until = ?4, tries = tries + 1
             WHERE attempt_id = ?1 AND (state = 'planned' OR owner = ?2 OR lease_until <= ?3)",
        )?
        .execute(params![attempt_id, owner, now, lease_until])?;
    held(changed, attempt_id, owner)?;
    Ok(tx
        .prepare_cached("SELECT tries, payload ->> '$.paid_generation' FROM attempt_queue WHERE attempt_id = ?1")?
        .query_row(params![attempt_id], |row| {
            Ok(Try {
                number: row.get(0)?,
                paid_generation: row.get(1)?,
            })
        })?)
}

/// The one row of an attempt was found, or the lease is lost.
fn held(found: usize, attempt_id: &str, owner: &str) -> Result<(), LeaseLost> {
    if found > 0 {
        return Ok(());
    }
    Err(LeaseLost {
        attempt_id: attempt_id.to_owned(),
        owner: owner.to_owned(),
    })
}

/// Notes which generation an attempt has paid for, so that no later try pays again.
///
/// # Errors
/// When the control database fails.
pub fn note_paid(tx: &Transaction<'_>, attempt_id: &str, generation_id: &str) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "UPDATE attempt_queue SET payload = json_set(payload, '$.paid_generation', ?2) WHERE attempt_id = ?1",
    )?
    .execute(params![attempt_id, generation_id])?;
    Ok(())
}

/// Checks that a try still holds the lease.
///
/// # Errors
/// `LeaseLost` when it does not.
pub fn keep(conn: &Connection, attempt_id: &str, owner: &str, tries: i64) -> Result<(), QueueError> {
    let is_held = conn
        .prepare_cached("SELECT 1 FROM attempt_queue WHERE attempt_id = ?1 AND owner = ?2 AND tries = ?3")?
        .exists(params![attempt_id, owner, tries])?;
    Ok(held(usize::from(is_held), attempt_id, owner)?)
}

/// Whether a process works on an attempt.
///
/// # Errors
/// When the control database fails.
pub fn is_held(conn: &Connection, attempt_id: &str, owner: &str) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT 1 FROM attempt_queue WHERE attempt_id = ?1 AND owner = ?2")?
        .exists(params![attempt_id, owner])
}

/// Prolongs all leases of an owner.
///
/// # Errors
/// When the control database fails.
pub fn renew(tx: &Transaction<'_>, owner: &str, lease_until: i64) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE attempt_queue SET lease_until = ?2 WHERE owner = ?1 AND state = 'claimed'")?
        .execute(params![owner, lease_until])?;
    tx.prepare_cached("UPDATE run_leases SET lease_until = ?2 WHERE owner = ?1")?
        .execute(params![owner, lease_until])?;
    Ok(())
}

/// Takes an attempt out of the queue in the commit of its outcome; only the try that holds the lease may do so.
///
/// # Errors
/// `LeaseLost` when this try no longer holds the lease.
pub fn finish(tx: &Transaction<'_>, attempt_id: &str, owner: &str, tries: i64) -> Result<(), QueueError> {
    let changed = tx
        .prepare_cached("DELETE FROM attempt_queue WHERE attempt_id = ?1 AND owner = ?2 AND tries = ?3")?
        .execute(params![attempt_id, owner, tries])?;
    Ok(held(changed, attempt_id, owner)?)
}

/// Puts an attempt back, to be taken up again.
///
/// # Errors
/// `LeaseLost` when this try no longer holds the lease.
pub fn put_back(tx: &Transaction<'_>, attempt_id: &str, owner: &str, tries: i64) -> Result<(), QueueError> {
    let changed = tx
        .prepare_cached(
            "UPDATE attempt_queue SET state = 'planned', owner = NULL, lease_until = NULL
             WHERE attempt_id = ?1 AND owner = ?2 AND tries = ?3",
        )?
        .execute(params![attempt_id, owner, tries])?;
    Ok(held(changed, attempt_id, owner)?)
}

/// Puts all attempts of a statement back that an owner has claimed; gives their ids.
///
/// # Errors
/// When the control database fails.
pub fn put_back_all(tx: &Transaction<'_>, statement_id: &str, owner: &str) -> rusqlite::Result<Vec<String>> {
    tx.prepare_cached(
        "UPDATE attempt_queue SET state = 'planned', owner = NULL, lease_until = NULL
         WHERE statement_id = ?1 AND owner = ?2 RETURNING attempt_id",
    )?
    .query_map(params![statement_id, owner], |row| row.get(0))?
    .collect()
}

/// Attempts of a statement or run that are still in the queue, in plan order.
///
/// # Errors
/// When a stored attempt cannot be read.
pub fn pending(conn: &Connection, statement_id: &str) -> Result<Vec<Attempt>, QueueError> {
    let mut statement = conn.prepare_cached(
        "SELECT attempt_id, payload FROM attempt_queue WHERE statement_id = ?1 ORDER BY ordinal, sample",
    )?;
    let rows = statement
        .query_map(params![statement_id], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?
        .collect::<Result<Vec<_>, _>>()?;
    rows.into_iter()
        .map(|(attempt_id, payload)| {
            serde_json::from_str(&payload).map_err(|source| QueueError::Payload { attempt_id, source })
        })
        .collect()
}

/// Removes all attempts of a statement that nobody has finished; gives how many.
///
/// # Errors
/// When the control database fails.
pub fn drop_pending(tx: &Transaction<'_>, statement_id: &str) -> rusqlite::Result<usize> {
    tx.prepare_cached("DELETE FROM attempt_queue WHERE statement_id = ?1")?
        .execute(params![statement_id])
}
