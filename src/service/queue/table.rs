//! What the queue writes in the control database. Every change names the state that it starts from, so that two that meet do not
//! both happen.

use rusqlite::{Connection, OptionalExtension, Params, Transaction, params};

use super::order::Waiting;
use super::record::{newer, parse_request};
use super::request::{Class, JobRequest, JobState};
use super::source::Lease;
use crate::scheduler::owner_may_live;
use crate::service::error::{Result, ServiceError};

/// A new job.
#[derive(Debug, Clone)]
pub(super) struct NewJob {
    pub(super) job_id: String,
    pub(super) user: String,
    pub(super) request_hash: String,
    pub(super) request: JobRequest,
    pub(super) code: String,
    pub(super) queued_at: i64,
    pub(super) queue_limit: u32,
    pub(super) queued_limit: u32,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// It is a new job.
    New {
        /// Job.
        job_id: String,
    },
    /// The same request was made before, and this is its job.
    Replayed {
        /// Job.
        job_id: String,
        /// Its state now.
        state: JobState,
    },
    /// Another request was made under the same idempotency key.
    Conflict {
        /// The job of that request.
        job_id: String,
    },
    /// The queue is full.
    QueueFull {
        /// Jobs that may wait.
        limit: u32,
    },
    /// The user has too many jobs waiting.
    UserFull {
        /// Jobs of the user that may wait.
        limit: u32,
    },
}

/// Puts a job into the queue.
pub(super) fn insert(tx: &Transaction<'_>, job: &NewJob) -> Result<Submitted> {
    let request = &job.request;
    if let Some(key) = &request.idempotency_key {
        let known: Option<(String, String, String)> = tx
            .prepare_cached(
                "SELECT job_id, state, request_hash FROM job_requests WHERE user = ?1 AND idempotency_key = ?2",
            )?
            .query_row(params![job.user, key], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        if let Some((job_id, state, hash)) = known {
            if hash != job.request_hash {
                return Ok(Submitted::Conflict { job_id });
            }
            let state = JobState::parse(&state).ok_or_else(|| newer(&job_id, "state", &state))?;
            return Ok(Submitted::Replayed { job_id, state });
        }
    }
    let all = "SELECT count(*) FROM job_requests WHERE state = 'queued'";
    if count(tx, all, [])? >= job.queue_limit {
        return Ok(Submitted::QueueFull { limit: job.queue_limit });
    }
    let own = "SELECT count(*) FROM job_requests WHERE user = ?1 AND state = 'queued'";
    if count(tx, own, [&job.user])? >= job.queued_limit {
        return Ok(Submitted::UserFull {
            limit: job.queued_limit,
        });
    }
    let text = serde_json::to_string(request).map_err(|source| ServiceError::Stored {
        job_id: job.job_id.clone(),
        source,
    })?;
    tx.prepare_cached(
        "INSERT INTO job_requests (job_id, user, name, state, class, priority, idempotency_key, request_hash, queued_at, request, code)
         VALUES (?1, ?2, ?3, 'queued', ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        job.job_id,
        job.user,
        request.name,
        request.class.as_str(),
        request.priority,
        request.idempotency_key,
        job.request_hash,
        job.queued_at,
        text,
        job.code
    ])?;
    Ok(Submitted::New {
        job_id: job.job_id.clone(),
    })
}

fn count(connection: &Connection, sql: &str, parameters: impl Params) -> Result<u32> {
    Ok(connection
        .prepare_cached(sql)?
        .query_row(parameters, |row| row.get(0))?)
}

/// A job that was taken up.
#[derive(Debug, Clone)]
pub(super) struct Claimed {
    pub(super) attempts: u32,
    pub(super) queued_at: i64,
    pub(super) request: JobRequest,
    pub(super) code: String,
    pub(super) request_hash: String,
}

/// Takes a job up that waits; none when it does not wait any more.
pub(super) fn claim(
    tx: &Transaction<'_>,
    job_id: &str,
    owner: &str,
    worker: &str,
    now: i64,
    until: i64,
) -> Result<Option<Claimed>> {
    let row: Option<(u32, i64, String, String, String)> = tx
        .prepare_cached(
            "UPDATE job_requests SET state = 'running', owner = ?2, worker = ?3, started_at = ?4, lease_until = ?5, attempts = attempts + 1
             WHERE job_id = ?1 AND state = 'queued'
             RETURNING attempts, queued_at, request, coalesce(code, ''), request_hash",
        )?
        .query_row(params![job_id, owner, worker, now, until], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        })
        .optional()?;
    row.map(|(attempts, queued_at, request, code, request_hash)| {
        Ok(Claimed {
            attempts,
            queued_at,
            request: parse_request(job_id, &request)?,
            code,
            request_hash,
        })
    })
    .transpose()
}

/// Prolongs a lease; says whether the user wants the job to end.
pub(super) fn extend(tx: &Transaction<'_>, lease: &Lease, until: i64) -> Result<bool> {
    tx.prepare_cached(
        "UPDATE job_requests SET lease_until = ?4
         WHERE job_id = ?1 AND owner = ?2 AND attempts = ?3 AND state = 'running' RETURNING cancel_requested",
    )?
    .query_row(params![lease.job_id, lease.owner, lease.attempt, until], |row| {
        row.get(0)
    })
    .optional()?
    .ok_or_else(|| lost(lease))
}

/// Ends a job that is leased.
pub(super) fn end(tx: &Transaction<'_>, lease: &Lease, state: JobState, result: Option<&str>, now: i64) -> Result<()> {
    let changed = tx
        .prepare_cached(
            "UPDATE job_requests SET state = ?4, result = ?5, finished_at = ?6, code = NULL, owner = NULL, lease_until = NULL
             WHERE job_id = ?1 AND owner = ?2 AND attempts = ?3 AND state = 'running'",
        )?
        .execute(params![lease.job_id, lease.owner, lease.attempt, state.as_str(), result, now])?;
    if changed == 0 { Err(lost(lease)) } else { Ok(()) }
}

/// Puts a leased job back. An attempt that is broken off in good order is not counted.
pub(super) fn put_back(tx: &Transaction<'_>, lease: &Lease, counts: bool) -> Result<()> {
    let changed = tx
        .prepare_cached(
            "UPDATE job_requests SET state = 'queued', owner = NULL, worker = NULL, lease_until = NULL, started_at = NULL, attempts = attempts - ?4
             WHERE job_id = ?1 AND owner = ?2 AND attempts = ?3 AND state = 'running'",
        )?
        .execute(params![lease.job_id, lease.owner, lease.attempt, i32::from(!counts)])?;
    if changed == 0 { Err(lost(lease)) } else { Ok(()) }
}

fn lost(lease: &Lease) -> ServiceError {
    ServiceError::LeaseLost {
        job_id: lease.job_id.clone(),
        owner: lease.owner.clone(),
    }
}

/// Cancels a job that waits, or asks the worker of one that runs to end it. Gives its state from now on; none when there is no such
/// job.
pub(super) fn cancel(tx: &Transaction<'_>, job_id: &str, now: i64) -> Result<Option<JobState>> {
    let cancelled = tx
        .prepare_cached(
            "UPDATE job_requests SET state = 'cancelled', finished_at = ?2, code = NULL WHERE job_id = ?1 AND state = 'queued'",
        )?
        .execute(params![job_id, now])?;
    if cancelled > 0 {
        return Ok(Some(JobState::Cancelled));
    }
    tx.prepare_cached("UPDATE job_requests SET cancel_requested = 1 WHERE job_id = ?1 AND state = 'running'")?
        .execute(params![job_id])?;
    let state: Option<String> = tx
        .prepare_cached("SELECT state FROM job_requests WHERE job_id = ?1")?
        .query_row(params![job_id], |row| row.get(0))
        .optional()?;
    Ok(state.as_deref().and_then(JobState::parse))
}

/// A job whose worker is gone.
#[derive(Debug, Clone)]
pub(super) struct Lost {
    pub(super) lease: Lease,
    pub(super) cancel_requested: bool,
    owner_lives: bool,
}

/// Running jobs whose lease has lapsed, or whose process is dead.
pub(super) fn lost_jobs(connection: &Connection, now: i64) -> Result<Vec<Lost>> {
    let rows = connection
        .prepare_cached(
            "SELECT job_id, owner, attempts, cancel_requested, lease_until FROM job_requests WHERE state = 'running'",
        )?
        .query_map([], |row| {
            let owner: Option<String> = row.get(1)?;
            let until: Option<i64> = row.get(4)?;
            let owner = owner.unwrap_or_default();
            let lost = Lost {
                owner_lives: owner_may_live(&owner),
                lease: Lease {
                    job_id: row.get(0)?,
                    owner,
                    attempt: row.get(2)?,
                },
                cancel_requested: row.get(3)?,
            };
            Ok((lost, until))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let is_lost = |(lost, until): &(Lost, Option<i64>)| !lost.owner_lives || until.is_none_or(|until| until < now);
    Ok(rows.into_iter().filter(is_lost).map(|(lost, _)| lost).collect())
}

/// Request hash and program of a job that has not ended.
pub(super) fn program(connection: &Connection, job_id: &str) -> Result<(String, String)> {
    Ok(connection
        .prepare_cached("SELECT request_hash, coalesce(code, '') FROM job_requests WHERE job_id = ?1")?
        .query_row(params![job_id], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// Whether a lease still holds.
pub(super) fn is_held(connection: &Connection, lease: &Lease) -> Result<bool> {
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM job_requests WHERE job_id = ?1 AND owner = ?2 AND attempts = ?3 AND state = 'running')",
        )?
        .query_row(params![lease.job_id, lease.owner, lease.attempt], |row| row.get(0))?)
}

/// A job that waits, with what its user may have running.
pub(super) type WaitingRow = (Waiting, Option<u32>);

/// Jobs that wait, the oldest first.
pub(super) fn waiting(connection: &Connection) -> Result<Vec<WaitingRow>> {
    let rows = connection
        .prepare_cached(
            "SELECT job_id, user, class, priority, request ->> '$.running_limit' FROM job_requests WHERE state = 'queued' ORDER BY job_id",
        )?
        .query_map([], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        })?
        .collect::<rusqlite::Result<Vec<(String, String, String, u8, Option<u32>)>>>()?;
    rows.into_iter()
        .map(|(job_id, user, class, priority, running_limit)| {
            let class = Class::parse(&class).ok_or_else(|| newer(&job_id, "class", &class))?;
            let waiting = Waiting {
                job_id,
                user,
                class,
                priority,
            };
            Ok((waiting, running_limit))
        })
        .collect()
}

/// Users in the order in which they were served last.
pub(super) fn served(connection: &Connection) -> Result<Vec<String>> {
    let rows = connection
        .prepare_cached(
            "SELECT user FROM job_requests WHERE started_at IS NOT NULL GROUP BY user ORDER BY max(started_at)",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(rows)
}

/// Forgets jobs that ended before a time; gives how many.
pub(super) fn forget(tx: &Transaction<'_>, before: i64) -> Result<usize> {
    Ok(tx
        .prepare_cached("DELETE FROM job_requests WHERE finished_at < ?1")?
        .execute(params![before])?)
}

/// Whether a job that waits or runs reads an upload.
pub(super) fn needs_upload(connection: &Connection, hash: &str) -> Result<bool> {
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM job_requests
             WHERE state IN ('queued', 'running') AND request ->> '$.data.upload.hash' = ?1)",
        )?
        .query_row(params![hash], |row| row.get(0))?)
}

/// Jobs by state.
pub(super) fn by_state(connection: &Connection) -> Result<Vec<(String, i64)>> {
    let rows = connection
        .prepare_cached("SELECT state, count(*) FROM job_requests GROUP BY state")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(rows)
}
