//! A job as the service answers for it: its request, its state, and what came out.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::request::{JobRequest, JobState};
use crate::sandbox::{Cause, Grade, IsolationReport, JobEnd, Layer, Limits, ResultState};
use crate::service::error::{Result, ServiceError};

/// What is known of the run beyond its state and score.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDetail {
    /// Reason of the state in words.
    pub reason: Option<String>,
    /// Cause of the program's end.
    pub cause: Option<Cause>,
    /// Exit code of the program.
    pub exit_code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// The memory limit was hit.
    pub oom: bool,
    /// Seconds of the program.
    pub wall_seconds: Option<f64>,
    /// CPU seconds of all its processes.
    pub cpu_seconds: Option<f64>,
    /// Largest memory that was seen.
    pub peak_memory_bytes: Option<u64>,
    /// Seconds of the evaluation.
    pub evaluation_seconds: Option<f64>,
    /// Limits that it ran under.
    pub limits: Option<Limits>,
    /// How far it was shut in.
    pub isolation: Option<Grade>,
    /// Layers that were in force.
    pub layers: Vec<Layer>,
    /// How the program ended; none where none ran.
    #[serde(default)]
    pub end: Option<JobEnd>,
    /// The back end, and how each layer was enforced.
    #[serde(default)]
    pub sandbox: Option<IsolationReport>,
    /// It started from the warm pool.
    #[serde(default)]
    pub warm: bool,
    /// When the program started and ended, microseconds UTC.
    #[serde(default)]
    pub program_times: [Option<i64>; 2],
    /// Its standard output and its standard error.
    #[serde(default)]
    pub logs: [LogFacts; 2],
    /// What it handed in.
    #[serde(default)]
    pub submission: Option<SubmissionFacts>,
    /// Why there is no submission of a program that ended well.
    #[serde(default)]
    pub no_submission: Option<String>,
}

/// How much a program wrote to an output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogFacts {
    /// Bytes that it wrote.
    pub bytes: u64,
    /// The middle is not kept.
    pub truncated: bool,
}

/// A submission that was collected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubmissionFacts {
    /// Name of the file; that of a folder ends in .tar.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}

/// What came out of a job, without its logs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredResult {
    /// Result state.
    pub result: ResultState,
    /// The score.
    pub score: Option<f64>,
    /// Who says so: evaluator or self_reported.
    pub score_source: Option<String>,
    /// More about the run.
    pub detail: RunDetail,
}

/// A job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRecord {
    /// Job id.
    pub job_id: String,
    /// User.
    pub user: String,
    /// State.
    pub state: JobState,
    /// Worker that has or had it.
    pub worker: Option<String>,
    /// Times that it was begun.
    pub attempts: u32,
    /// The user wants it to end.
    pub cancel_requested: bool,
    /// When it came, microseconds UTC.
    pub queued_at: i64,
    /// When a worker took it up.
    pub started_at: Option<i64>,
    /// When it ended.
    pub finished_at: Option<i64>,
    /// What was asked for.
    pub request: JobRequest,
    /// What came out.
    pub result: Option<StoredResult>,
}

/// Columns of [`read`].
const COLUMNS: &str =
    "job_id, user, state, worker, attempts, cancel_requested, queued_at, started_at, finished_at, request, result";

/// A row whose texts are still to be read.
struct Stored {
    record: (String, String, String, Option<String>, u32, bool),
    times: (i64, Option<i64>, Option<i64>),
    request: String,
    result: Option<String>,
}

fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        record: (
            row.get(0)?,
            row.get(1)?,
            row.get(2)?,
            row.get(3)?,
            row.get(4)?,
            row.get(5)?,
        ),
        times: (row.get(6)?, row.get(7)?, row.get(8)?),
        request: row.get(9)?,
        result: row.get(10)?,
    })
}

/// Reads the request of a job.
pub(super) fn parse_request(job_id: &str, text: &str) -> Result<JobRequest> {
    serde_json::from_str(text).map_err(|source| ServiceError::Stored {
        job_id: job_id.to_owned(),
        source,
    })
}

/// What a newer version has written of a job.
pub(super) fn newer(job_id: &str, what: &str, value: &str) -> ServiceError {
    ServiceError::Config(format!(
        "job {job_id} has the {what} '{value}', which this version does not know: it was written by a newer one"
    ))
}

fn read(stored: Stored) -> Result<JobRecord> {
    let (job_id, user, state, worker, attempts, cancel_requested) = stored.record;
    let (queued_at, started_at, finished_at) = stored.times;
    let request = parse_request(&job_id, &stored.request)?;
    let result = stored.result.as_deref().map(serde_json::from_str).transpose();
    let result = result.map_err(|source| ServiceError::Stored {
        job_id: job_id.clone(),
        source,
    })?;
    let state = JobState::parse(&state).ok_or_else(|| newer(&job_id, "state", &state))?;
    Ok(JobRecord {
        job_id,
        user,
        state,
        worker,
        attempts,
        cancel_requested,
        queued_at,
        started_at,
        finished_at,
        request,
        result,
    })
}

/// The job of an id.
pub(super) fn find(connection: &Connection, job_id: &str) -> Result<Option<JobRecord>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM job_requests WHERE job_id = ?1"))?
        .query_row(params![job_id], stored)
        .optional()?
        .map(read)
        .transpose()
}

/// Which jobs are listed.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this user; none for all users.
    pub user: Option<String>,
    /// In this state.
    pub state: Option<JobState>,
    /// Of this name.
    pub name: Option<String>,
    /// Handed in with this idempotency key by the user, who must be named then.
    pub idempotency_key: Option<String>,
    /// Older than this one.
    pub before: Option<String>,
    /// At most so many.
    pub limit: u32,
}

/// Jobs, the newest first.
pub(super) fn list(connection: &Connection, filter: &Filter) -> Result<Vec<JobRecord>> {
    // A key is looked for through its index, which begins with the user.
    let whose = match filter.idempotency_key {
        Some(_) => "user = ?1 AND idempotency_key = ?6",
        None => "(?1 IS NULL OR user = ?1) AND ?6 IS NULL",
    };
    let rows = connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM job_requests
             WHERE {whose} AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR name = ?3)
               AND (?4 IS NULL OR job_id < ?4)
             ORDER BY job_id DESC LIMIT ?5"
        ))?
        .query_map(
            params![
                filter.user,
                filter.state.map(JobState::as_str),
                filter.name,
                filter.before,
                filter.limit,
                filter.idempotency_key
            ],
            stored,
        )?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    rows.into_iter().map(read).collect()
}
