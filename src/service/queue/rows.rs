//! A request as `sandbox.requests` keeps it: one version a change of its state.

use clade_catalog::{Rows, Value};

use super::record::JobRecord;
use super::request::{JobRequest, JobState};
use super::source::Claim;
use crate::sandbox::ResultState;
use crate::service::error::Result;

/// The table.
pub(super) const TABLE: &str = "sandbox.requests";

/// One version of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Version<'a> {
    pub(super) job_id: &'a str,
    pub(super) user: &'a str,
    pub(super) request: &'a JobRequest,
    pub(super) request_hash: &'a str,
    pub(super) code: &'a str,
    pub(super) state: JobState,
    pub(super) worker: Option<&'a str>,
    pub(super) attempts: u32,
    pub(super) result: Option<ResultState>,
    pub(super) detail: Option<&'a str>,
    pub(super) queued_at: i64,
    pub(super) started_at: Option<i64>,
    pub(super) finished_at: Option<i64>,
}

impl<'a> Version<'a> {
    /// A job that a worker has taken up.
    pub(super) fn of_claim(claim: &'a Claim) -> Self {
        Self {
            job_id: &claim.lease.job_id,
            user: &claim.user,
            request: &claim.request,
            request_hash: &claim.request_hash,
            code: &claim.code,
            state: JobState::Running,
            worker: Some(&claim.worker_id),
            attempts: claim.lease.attempt,
            result: None,
            detail: None,
            queued_at: claim.queued_at,
            started_at: Some(claim.started_at),
            finished_at: None,
        }
    }

    /// A job as the control database has it, with its hash and program.
    pub(super) fn of_record(record: &'a JobRecord, program: &'a (String, String)) -> Self {
        Self {
            job_id: &record.job_id,
            user: &record.user,
            request: &record.request,
            request_hash: &program.0,
            code: &program.1,
            state: record.state,
            worker: record.worker.as_deref(),
            attempts: record.attempts,
            result: None,
            detail: None,
            queued_at: record.queued_at,
            started_at: record.started_at,
            finished_at: record.finished_at,
        }
    }

    /// The same, waiting again.
    pub(super) fn queued(self, attempts: u32) -> Self {
        Self {
            state: JobState::Queued,
            worker: None,
            attempts,
            started_at: None,
            ..self
        }
    }

    /// The same, at its end.
    pub(super) fn ended(self, state: JobState, now: i64) -> Self {
        Self {
            state,
            finished_at: Some(now),
            ..self
        }
    }

    /// The row.
    pub(super) fn rows(self) -> Result<Rows> {
        let request = self.request;
        let time = |time: Option<i64>| time.map_or(Value::Null, Value::Timestamp);
        let mut rows = Rows::new(TABLE)?;
        rows.push([
            ("job_id", self.job_id.into()),
            ("user", self.user.into()),
            ("key_id", (&request.key_id).into()),
            ("name", (&request.name).into()),
            ("state", self.state.as_str().into()),
            ("data", request.data.name().into()),
            ("split", request.data.split().into()),
            ("resource_type", request.resource_type.as_str().into()),
            ("class", request.class.as_str().into()),
            ("priority", i64::from(request.priority).into()),
            ("timeout_seconds", request.timeout.into()),
            (
                "environment",
                request.environment.keys().cloned().collect::<Vec<_>>().into(),
            ),
            ("code", self.code.into()),
            ("code_hash", (&request.code_hash).into()),
            ("idempotency_key", request.idempotency_key.clone().into()),
            ("request_hash", self.request_hash.into()),
            ("trace_id", request.trace_id.clone().into()),
            ("worker_id", self.worker.map(str::to_owned).into()),
            ("attempts", i64::from(self.attempts).into()),
            ("result", self.result.map(|state| state.as_str().to_owned()).into()),
            ("detail", self.detail.map(str::to_owned).into()),
            ("queued_at", Value::Timestamp(self.queued_at)),
            ("started_at", time(self.started_at)),
            ("finished_at", time(self.finished_at)),
        ])?;
        Ok(rows)
    }
}
