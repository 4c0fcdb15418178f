//! `[service]`: the HTTP job service of `clade serve`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ByteSize;

/// The HTTP job service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// Address and port.
    pub address: String,
    /// Jobs that run at once in the server itself; none for the concurrency of the sandbox, 0 where all run on other machines.
    pub workers: Option<u32>,
    /// More workers, which take the jobs that ask for a GPU.
    pub gpu_workers: u32,
    /// Take jobs that ask for a GPU as jobs for a CPU.
    pub gpu_as_cpu: bool,
    /// Folders with data that jobs may name, separated by `:`.
    pub data_roots: String,
    /// Jobs that may wait, all users together.
    pub queue_limit: u32,
    /// Times that a job is begun before it counts as failed.
    pub max_attempts: u32,
    /// Time after which a job is taken from a worker that gives no sign of life, in seconds.
    pub lease_seconds: u64,
    /// Suspicious ends in a row after which a worker on another machine gets no more jobs.
    pub quarantine_after: u32,
    /// Time between two probes of such a worker, in seconds.
    pub probe_seconds: u64,
    /// Longest run that a job may ask for, in seconds.
    pub max_job_seconds: u64,
    /// Days that the service answers for a job after its end.
    pub keep_days: u32,
    /// Jobs that one user may have waiting; a key may say otherwise.
    pub queued_per_user: u32,
    /// Jobs of one user that may run at once; a key may say otherwise.
    pub running_per_user: Option<u32>,
    /// Requests of one key in a minute; a key may say otherwise.
    pub requests_per_minute: u32,
    /// Largest body of a request that is no upload.
    pub body_size: ByteSize,
    /// Time for the head of a request, in seconds.
    pub head_seconds: u64,
    /// Time for the body of a request, in seconds.
    pub body_seconds: u64,
    /// Time for the body of an upload, in seconds.
    pub upload_seconds: u64,
    /// Largest upload, packed and unpacked.
    pub upload_size: ByteSize,
    /// Files and folders of one upload.
    pub upload_files: u64,
    /// Folders within folders of one upload.
    pub upload_depth: u32,
    /// All uploads together.
    pub uploads_size: ByteSize,
    /// Uploads that are received at the same time.
    pub uploads_at_once: u32,
    /// The same of one user.
    pub uploads_per_user: u32,
    /// Hours that a submission is kept after the end of its job; 0 to keep none.
    pub keep_submission_hours: u32,
    /// All submissions that are kept together; the oldest go first.
    pub submissions_bytes: ByteSize,
}

impl ServiceConfig {
    /// Folders with data that jobs may name.
    pub fn data_roots(&self) -> impl Iterator<Item = PathBuf> {
        self.data_roots
            .split(':')
            .filter(|root| !root.is_empty())
            .map(|root| Path::new(root).to_owned())
    }

    /// Time that the service answers for a job after its end.
    pub fn keep_time(&self) -> Duration {
        Duration::from_secs(u64::from(self.keep_days) * 24 * 3600)
    }

    /// Time that a submission is kept after the end of its job.
    pub fn keep_submission_time(&self) -> Duration {
        Duration::from_secs(u64::from(self.keep_submission_hours) * 3600)
    }

    /// Time after which a job is taken from a worker that gives no sign of life.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds)
    }

    /// Time between two probes of a worker in quarantine.
    pub fn probe_time(&self) -> Duration {
        Duration::from_secs(self.probe_seconds)
    }

    /// Time for the head of a request.
    pub fn head_time(&self) -> Duration {
        Duration::from_secs(self.head_seconds)
    }

    /// Time for the body of a request.
    pub fn body_time(&self) -> Duration {
        Duration::from_secs(self.body_seconds)
    }

    /// Time for the body of an upload.
    pub fn upload_time(&self) -> Duration {
        Duration::from_secs(self.upload_seconds)
    }
}
