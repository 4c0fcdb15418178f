//! `[sandbox]`: how programs run, and their limits.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::docker::DockerConfig;
use super::native::NativeConfig;
use super::remote::RemoteConfig;
use super::{ByteSize, machine};

/// How programs run, and the limits of one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxConfig {
    /// Executor that is used where none is named.
    pub executor: String,
    /// Start programs from a pool of interpreters that have the usual packages imported.
    pub warm: bool,
    /// Jobs that run at once; none to derive it from cores and free memory.
    pub concurrency: Option<u32>,
    /// Wall time of one job, in seconds.
    pub wall_seconds: u64,
    /// CPU time of one job over all its processes, in seconds.
    pub cpu_seconds: Option<u64>,
    /// Cores of one job.
    pub cpus: u32,
    /// Memory of one job over all its processes.
    pub memory: ByteSize,
    /// Processes and threads of one job.
    pub processes: u64,
    /// Largest file a job may write.
    pub file_size: ByteSize,
    /// Bytes a job may hold in its scratch folder.
    pub scratch_size: ByteSize,
    /// Files a job may hold in its scratch folder.
    pub scratch_files: u64,
    /// Bytes kept of each output stream.
    pub log_size: ByteSize,
    /// Largest submission that is taken.
    pub submission_size: ByteSize,
    /// Wall time of one evaluation, in seconds.
    pub evaluation_seconds: u64,
    /// The back end of jails.
    pub native: NativeConfig,
    /// The container back end.
    pub docker: DockerConfig,
    /// The back end that hands programs to a job service.
    pub remote: RemoteConfig,
}

impl SandboxConfig {
    /// Wall time of one job.
    pub fn wall(&self) -> Duration {
        Duration::from_secs(self.wall_seconds)
    }

    /// Wall time of one evaluation.
    pub fn evaluation_wall(&self) -> Duration {
        Duration::from_secs(self.evaluation_seconds)
    }

    /// Jobs that may run at once: as configured, else what cores and free memory allow, at least one.
    pub fn effective_concurrency(&self) -> u32 {
        self.concurrency
            .unwrap_or_else(|| machine::concurrency(machine::cores(), machine::free_memory(), self.cpus, self.memory))
    }
}
