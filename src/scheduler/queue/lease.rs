//! Leases of runs: one process conducts a run at a time; when it dies its lease lapses and another may resume the run.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::scheduler::error::{Result as SchedulerResult, SchedulerError};
use crate::scheduler::services::Services;

/// Seconds after which the lease of a silent process lapses.
pub const LEASE_SECONDS: i64 = 30;
/// Seconds between two heartbeats.
pub const HEARTBEAT_SECONDS: u64 = 5;

/// End of a lease that starts now, microseconds UTC.
pub fn lease_end(now_us: i64) -> i64 {
    now_us + LEASE_SECONDS * 1_000_000
}

/// What the id of a lease begins with that is of a suite; no id of a run has the character in it.
const SUITE: &str = "suite/";

/// Id of the lease of a suite.
pub fn suite_lease(suite_id: &str) -> String {
    format!("{SUITE}{suite_id}")
}

/// What a lease is of.
fn in_words(lease_id: &str) -> String {
    match lease_id.strip_prefix(SUITE) {
        Some(suite) => format!("suite {suite}"),
        None => format!("run {lease_id}"),
    }
}

/// A run that somebody else conducts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} is being conducted by process {owner}; it can be resumed when that process ends, or {seconds} s after it dies",
    in_words(.run_id)
)]
pub struct RunTaken {
    /// Run.
    pub run_id: String,
    /// Process that conducts it.
    pub owner: String,
    /// Seconds until its lease lapses.
    pub seconds: i64,
}

/// A run that this process conducted until another took it over: it was stopped for longer than its lease.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} was taken over by another process while this one did not answer for {} s; it goes on there, and this \
     process writes nothing more of it",
    in_words(.run_id),
    LEASE_SECONDS
)]
pub struct RunLost {
    /// Run.
    pub run_id: String,
}

/// Fault of taking or keeping a run's lease.
#[derive(Debug, thiserror::Error)]
pub enum RunLeaseError {
    /// Somebody else has it.
    #[error(transparent)]
    Taken(#[from] RunTaken),
    /// This process has it no longer.
    #[error(transparent)]
    Lost(#[from] RunLost),
    /// The control database failed.
    #[error("the run leases could not be read or written: {0}")]
    Control(#[from] rusqlite::Error),
}

/// Takes the lease of a run; a lapsed one, or one of a process of this machine that is no longer alive, may be taken over.
///
/// # Errors
/// `Taken` when a live process has it.
pub fn take_run(tx: &Transaction<'_>, run_id: &str, owner: &str, now: i64) -> Result<(), RunLeaseError> {
    let held: Option<(String, i64)> = tx
        .prepare_cached("SELECT owner, lease_until FROM run_leases WHERE run_id = ?1")?
        .query_row(params![run_id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((holder, lease_until)) = held
        && holder != owner
        && lease_until > now
        && owner_may_live(&holder)
    {
        let seconds = (lease_until - now + 999_999) / 1_000_000;
        return Err(RunTaken {
            run_id: run_id.to_owned(),
            owner: holder,
            seconds,
        }
        .into());
    }
    tx.prepare_cached("INSERT OR REPLACE INTO run_leases (run_id, owner, lease_until) VALUES (?1, ?2, ?3)")?
        .execute(params![run_id, owner, lease_end(now)])?;
    Ok(())
}

/// Checks that a process still has the lease of the run that it conducts.
///
/// # Errors
/// `Lost` when it has not.
pub fn keep_run(conn: &Connection, run_id: &str, owner: &str) -> Result<(), RunLeaseError> {
    let is_kept = conn
        .prepare_cached("SELECT 1 FROM run_leases WHERE run_id = ?1 AND owner = ?2")?
        .exists(params![run_id, owner])?;
    if is_kept {
        Ok(())
    } else {
        Err(RunLost {
            run_id: run_id.to_owned(),
        }
        .into())
    }
}

/// Gives the lease of a run up.
///
/// # Errors
/// When the control database fails.
pub fn give_up_run(tx: &Transaction<'_>, run_id: &str, owner: &str) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM run_leases WHERE run_id = ?1 AND owner = ?2")?
        .execute(params![run_id, owner])?;
    Ok(())
}

/// Takes the lease of a run for this process.
///
/// # Errors
/// When a live process has it, or the store fails.
pub async fn hold_run(services: &Services, run_id: &str) -> SchedulerResult<()> {
    let (run_id, owner, now) = (run_id.to_owned(), services.owner.clone(), services.now());
    Ok(services
        .store
        .control(move |tx| take_run(tx, &run_id, &owner, now))
        .await?)
}

/// Gives the lease of a run up that this process holds.
///
/// # Errors
/// When the store fails.
pub async fn release_run(services: &Services, run_id: &str) -> SchedulerResult<()> {
    let (run_id, owner) = (run_id.to_owned(), services.owner.clone());
    Ok(services
        .store
        .control(move |tx| give_up_run(tx, &run_id, &owner))
        .await?)
}

/// Gives the lease of a run up after a fault, which is what the user is told; a lease that cannot be given up lapses by itself.
pub async fn release_run_after(services: &Services, run_id: &str, fault: &SchedulerError) {
    if let Err(error) = release_run(services, run_id).await {
        tracing::warn!(run = run_id, %error, %fault, "the lease of the run could not be given up; it lapses");
    }
}

/// A lease, as `sandbox.leases` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRow {
    /// run, suite or attempt.
    pub kind: &'static str,
    /// Run, `suite/NAME` or attempt.
    pub id: String,
    /// Run of an attempt, or the run itself; none for a suite.
    pub run_id: Option<String>,
    /// conducted, planned or claimed.
    pub state: String,
    /// Process that holds it.
    pub owner: Option<String>,
    /// When it lapses, microseconds UTC.
    pub lease_until: Option<i64>,
    /// Times the attempt was taken up.
    pub tries: i64,
    /// The lease has not lapsed and its process may be alive.
    pub is_live: bool,
}

/// All leases and waiting attempts.
///
/// # Errors
/// When the control database fails.
pub fn leases(conn: &Connection) -> rusqlite::Result<Vec<LeaseRow>> {
    let now = chrono::Utc::now().timestamp_micros();
    let mut statement = conn.prepare_cached(
        "SELECT CASE WHEN run_id LIKE 'suite/%' THEN 'suite' ELSE 'run' END, run_id,
                CASE WHEN run_id NOT LIKE 'suite/%' THEN run_id END, 'conducted', owner, lease_until, 0
         FROM run_leases
         UNION ALL
         SELECT 'attempt', attempt_id, run_id, state, owner, lease_until, tries FROM attempt_queue",
    )?;
    let rows = statement.query_map([], |row| {
        let kind: String = row.get(0)?;
        let owner: Option<String> = row.get(4)?;
        let lease_until: Option<i64> = row.get(5)?;
        let is_live = lease_until.is_some_and(|until| until > now) && owner.as_deref().is_some_and(owner_may_live);
        Ok(LeaseRow {
            kind: match kind.as_str() {
                "run" => "run",
                "suite" => "suite",
                _ => "attempt",
            },
            id: row.get(1)?,
            run_id: row.get(2)?,
            state: row.get(3)?,
            owner,
            lease_until,
            tries: row.get(6)?,
            is_live,
        })
    })?;
    rows.collect()
}

/// Hands the claimed attempts of dead processes of this machine back at once, rather than when their leases lapse.
///
/// # Errors
/// When the control database fails.
pub fn free_attempts_of_the_dead(tx: &Transaction<'_>) -> rusqlite::Result<usize> {
    let owners: Vec<String> = tx
        .prepare_cached("SELECT DISTINCT owner FROM attempt_queue WHERE owner IS NOT NULL")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut freed = 0;
    for owner in owners.iter().filter(|owner| !owner_may_live(owner)) {
        freed += tx
            .prepare_cached(
                "UPDATE attempt_queue SET state = 'planned', owner = NULL, lease_until = NULL WHERE owner = ?1",
            )?
            .execute(params![owner])?;
    }
    Ok(freed)
}

/// Identity of this process: host, boot, pid and start time, so that a pid that is used again is not taken for its elder.
pub fn this_process() -> String {
    let pid = std::process::id();
    format!(
        "{}/{}/{pid}/{}",
        host_name(),
        boot_id(),
        start_time(pid).unwrap_or_default()
    )
}

/// Host name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim()[..8.min(id.trim().len())].to_owned())
        .unwrap_or_default()
}

/// Start time of a process in clock ticks since boot, from field 22 of `/proc/PID/stat`; none for one that is dead but still
/// listed because its parent has not asked for its end.
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field may hold spaces; the fields after its closing bracket do not.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Whether the process of an identity may still be alive. A process of another machine always may.
pub fn owner_may_live(owner: &str) -> bool {
    let parts: Vec<&str> = owner.split('/').collect();
    let [host, boot, pid, started] = parts.as_slice() else {
        return true;
    };
    if *host != host_name() {
        return true;
    }
    if *boot != boot_id() {
        return false;
    }
    let Ok(pid) = pid.parse::<u32>() else { return true };
    start_time(pid).is_some_and(|ticks| ticks.to_string() == *started)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn this_process_lives_and_a_made_up_one_does_not() {
        assert!(owner_may_live(&this_process()));
        let dead = format!("{}/{}/4194304/1", host_name(), boot_id());
        assert!(!owner_may_live(&dead));
        assert!(owner_may_live("elsewhere/boot/1/1"));
    }

    #[test]
    fn a_dead_process_that_nobody_waits_for_is_dead() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let identity = |pid| format!("{}/{}/{pid}/{}", host_name(), boot_id(), start_time(pid).unwrap());
        let owner = identity(child.id());
        assert!(owner_may_live(&owner));
        child.kill().unwrap();
        while owner_may_live(&owner) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
