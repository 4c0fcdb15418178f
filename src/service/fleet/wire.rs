//! What a worker on another machine and its server tell each other, as JSON. Both are of the same major and minor version.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::sandbox::{JobOutcome, Limits};
use crate::scheduler::ENGINE_VERSION;
use crate::service::queue::{Class, Lease};

/// Largest part of a submission in one request.
pub const PART_BYTES: usize = 4 << 20;
/// Largest part of live output in one request.
pub const OUTPUT_BYTES: usize = 256 << 10;

/// Jobs that a worker runs at once, by class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// Without a GPU.
    pub cpu: u32,
    /// With a GPU.
    pub gpu: u32,
}

impl Slots {
    /// Slots of a class.
    pub fn of(self, class: Class) -> u32 {
        match class {
            Class::Cpu => self.cpu,
            Class::Gpu => self.gpu,
        }
    }
}

/// One attempt at a job, as its worker names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Job.
    pub job_id: String,
    /// Number of the attempt.
    pub attempt: u32,
}

impl Attempt {
    /// The lease of this attempt.
    pub fn lease(&self, worker_id: &str) -> Lease {
        Lease {
            job_id: self.job_id.clone(),
            owner: owner(worker_id),
            attempt: self.attempt,
        }
    }
}

/// Name of a worker in leases. It is none of a process, so it is never taken for a dead one of this machine.
pub fn owner(worker_id: &str) -> String {
    format!("worker/{worker_id}")
}

/// A worker comes, or comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// Its id, which it chose itself.
    pub worker_id: String,
    /// Host name of its machine.
    pub host: String,
    /// Version of its engine.
    pub version: String,
    /// Jobs that it runs at once.
    pub slots: Slots,
    /// Name of its back end.
    pub backend: String,
    /// Layers of its sandbox.
    pub capabilities: Vec<String>,
    /// Jobs that it runs now.
    pub jobs: Vec<Attempt>,
}

/// A worker was taken in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Joined {
    /// Time between two signs of life.
    pub heartbeat_seconds: f64,
    /// Of the jobs that it runs, those that are no longer its own.
    pub lost: Vec<String>,
}

/// A sign of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Jobs that the worker has.
    pub jobs: Vec<Attempt>,
}

/// What a worker is to do about its jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// Jobs that their users cancelled.
    pub cancel: Vec<String>,
    /// Jobs that are no longer the worker's own.
    pub lost: Vec<String>,
    /// It gets no more jobs.
    pub drain: bool,
}

/// A worker asks for a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimRequest {
    /// Class of its free slot.
    pub class: Class,
    /// How long it waits.
    pub wait_seconds: f64,
}

/// What it gets; nothing when there was no job in time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Claimed {
    /// A job.
    pub job: Option<Assignment>,
    /// A probe, for a worker in quarantine.
    pub probe: Option<ProbeOrder>,
}

/// A job as its worker sees it: what runs, and nothing of how it is scored or whose it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// Job.
    pub job_id: String,
    /// Number of the attempt.
    pub attempt: u32,
    /// The program.
    pub code: String,
    /// Hash of its data.
    pub data: String,
    /// Its variables.
    pub environment: BTreeMap<String, String>,
    /// Its limits.
    pub limits: Limits,
    /// What it must write.
    pub output_name: String,
    /// That is a folder.
    pub output_is_folder: bool,
}

/// A program that shows whether a worker works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeOrder {
    /// Its id.
    pub probe_id: String,
    /// Class of the slot that it is for.
    pub class: Class,
    /// The program.
    pub code: String,
    /// Its limits.
    pub limits: Limits,
}

/// What a probe printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// Its id.
    pub probe_id: String,
    /// Standard output.
    pub output: String,
    /// Why it did not run well.
    pub problem: Option<String>,
}

/// How a job ended on a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Finish {
    /// Number of the attempt.
    pub attempt: u32,
    /// How it ended.
    pub end: End,
}

/// How a job ended on a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The program ran. Its submission was sent before.
    Ran(Box<RemoteRun>),
    /// The worker could not run it.
    Failed {
        /// Why.
        reason: String,
    },
    /// It was cancelled, as the server wished.
    Cancelled,
}

/// A program that ran on a worker. JSON has no bytes, so the outputs are apart from the rest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemoteRun {
    outcome: JobOutcome,
    stdout: String,
    stderr: String,
}

impl RemoteRun {
    /// What is sent of an outcome.
    pub fn pack(mut outcome: JobOutcome) -> Self {
        let [stdout, stderr] =
            [&mut outcome.stdout.kept, &mut outcome.stderr.kept].map(|kept| STANDARD.encode(std::mem::take(kept)));
        Self {
            outcome,
            stdout,
            stderr,
        }
    }

    /// The outcome that was sent.
    ///
    /// # Errors
    /// When an output is not Base64.
    pub fn unpack(self) -> Result<JobOutcome, base64::DecodeError> {
        let mut outcome = self.outcome;
        outcome.stdout.kept = STANDARD.decode(self.stdout)?;
        outcome.stderr.kept = STANDARD.decode(self.stderr)?;
        Ok(outcome)
    }
}

/// Whether a worker of a version and this server understand each other: the first two numbers are the same.
pub fn suits(version: &str) -> bool {
    let start = |version: &str| {
        let mut parts = version.split('.').map(str::to_owned);
        (parts.next(), parts.next())
    };
    start(version) == start(ENGINE_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_suit_by_their_first_two_numbers() {
        assert!(suits(ENGINE_VERSION));
        let (start, _) = ENGINE_VERSION.rsplit_once('.').unwrap_or_default();
        assert!(suits(&format!("{start}.99")));
        for other in ["", "0", "99.0.0", "x"] {
            assert!(!suits(other), "{other}");
        }
    }
}
