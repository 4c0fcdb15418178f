//! What the service is asked and what it answers, as far as it matters here.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::options::RemoteOptions;
use crate::sandbox::job::JobSpec;
use crate::sandbox::outcome::JobEnd;
use crate::sandbox::report::IsolationReport;

/// A request for a job.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Request<'a> {
    pub(super) name: &'a str,
    code: &'a str,
    data_dir: &'a str,
    timeout: f64,
    resource_type: &'a str,
    priority: u8,
    environment: &'a BTreeMap<String, String>,
    output_name: &'a str,
    output_is_folder: bool,
    /// The same job with the same content has the same key, so that it is run once however often it is handed in.
    pub(super) idempotency_key: String,
}

impl<'a> Request<'a> {
    /// The request for a job on data of the service. A job that cannot be had again from an earlier run of it gets another turn.
    pub(super) fn new(job: &'a JobSpec, options: &RemoteOptions, data: &'a str, turn: u32) -> Self {
        let mut request = Self {
            name: &job.job_id,
            code: &job.code,
            data_dir: data,
            timeout: job.limits.wall.as_secs_f64(),
            resource_type: options.resource_type.as_str(),
            priority: options.priority,
            environment: &job.env,
            output_name: &job.output_name,
            output_is_folder: job.output_is_folder,
            idempotency_key: String::new(),
        };
        let content = serde_json::json!([request, turn]).to_string();
        let hash = hex::encode(Sha256::digest(content.as_bytes()));
        request.idempotency_key = format!("clade-{}", &hash[..40]);
        request
    }
}

/// A job that was taken.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Accepted {
    pub(super) job_id: String,
    pub(super) status: Status,
}

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Queued,
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    pub(super) fn is_end(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// A job.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Job {
    pub(super) job_id: String,
    pub(super) status: Status,
    pub(super) idempotency_key: Option<String>,
    pub(super) result: Option<JobResult>,
}

/// What came out of it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct JobResult {
    pub(super) detail: Detail,
}

/// What is known of the run.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Detail {
    pub(super) reason: Option<String>,
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) oom: bool,
    pub(super) wall_seconds: Option<f64>,
    pub(super) cpu_seconds: Option<f64>,
    pub(super) peak_memory_bytes: Option<u64>,
    /// Missing in answers of servers that are too old.
    pub(super) end: Option<JobEnd>,
    pub(super) sandbox: Option<IsolationReport>,
    #[serde(default)]
    pub(super) warm: bool,
    pub(super) started_at: Option<DateTime<Utc>>,
    pub(super) finished_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub(super) stdout: LogFacts,
    #[serde(default)]
    pub(super) stderr: LogFacts,
    pub(super) submission: Option<SubmissionFacts>,
    pub(super) no_submission: Option<String>,
}

/// How much a program wrote to an output.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct LogFacts {
    pub(super) bytes: u64,
    pub(super) truncated: bool,
}

/// A submission.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct SubmissionFacts {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

/// A page of jobs.
#[derive(Debug, Deserialize)]
pub(super) struct Jobs {
    pub(super) jobs: Vec<Job>,
}

/// An upload.
#[derive(Debug, Deserialize)]
pub(super) struct Upload {
    pub(super) upload: String,
}

/// A service that works.
#[derive(Debug, Deserialize)]
pub(super) struct Health {
    pub(super) version: String,
}

/// The workers of a service.
#[derive(Debug, Deserialize)]
pub(super) struct Workers {
    pub(super) workers_show: Vec<WorkerAnswer>,
}

/// A worker.
#[derive(Debug, Deserialize)]
pub(super) struct WorkerAnswer {
    pub(super) status: String,
    pub(super) class: String,
    #[serde(default)]
    pub(super) executor: String,
    #[serde(default = "one")]
    pub(super) slots: u32,
}

fn one() -> u32 {
    1
}

/// Data of an event with a part of a log.
#[derive(Debug, Deserialize)]
pub(super) struct LogEvent {
    pub(super) offset: u64,
    pub(super) next_offset: u64,
    pub(super) text: String,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sandbox::Limits;

    fn key(job: &JobSpec, turn: u32) -> String {
        Request::new(job, &RemoteOptions::new("", ""), "sha256:00", turn).idempotency_key
    }

    #[test]
    fn a_job_has_one_key_and_another_has_another() {
        let job = JobSpec {
            job_id: "j1".to_owned(),
            code: "print(1)".to_owned(),
            data_dir: "/data".into(),
            env: [("CLADE_SEED".to_owned(), "1".to_owned())].into(),
            limits: Limits::default(),
            output_name: "submission.csv".to_owned(),
            output_is_folder: false,
            output_dir: "/out".into(),
            warm: false,
            observer: None,
        };
        let first = key(&job, 0);
        assert_eq!(first, key(&job.clone(), 0));
        let mut shorter = job.clone();
        shorter.limits.wall = Duration::from_secs(1);
        let mut other = job.clone();
        other.job_id = "j2".to_owned();
        for key in [key(&job, 1), key(&shorter, 0), key(&other, 0)] {
            assert_ne!(first, key);
        }
    }
}
