//! Options of the back end for a job service.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Workers of a job service that run a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceType {
    /// Without a GPU.
    #[default]
    Cpu,
    /// With a GPU.
    Gpu,
}

impl ResourceType {
    /// Name as the service knows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        }
    }
}

/// Options of the back end for a job service. The key itself is only in the environment.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// Address of a server, or of a router in front of several.
    pub url: String,
    /// Environment variable with an API key of the role `submit`.
    pub key_env: String,
    /// Workers that run the jobs.
    pub resource_type: ResourceType,
    /// Priority of jobs: 1 is first, 9 last.
    pub priority: u8,
    /// Send the key over plain HTTP to another machine.
    pub insecure: bool,
    /// Time for a connection.
    pub connect: Duration,
    /// Time for an answer.
    pub answer: Duration,
    /// Time for a data folder or a submission on its way.
    pub transfer: Duration,
    /// Time that the service may not answer, or ask to come again, before a job counts as failed.
    pub give_up: Duration,
    /// Folder of notes about jobs that are open, so that those of a killed process are cancelled.
    pub notes: PathBuf,
}

impl RemoteOptions {
    /// The defaults for a service, with notes in a folder.
    pub fn new(url: impl Into<String>, notes: impl Into<PathBuf>) -> Self {
        Self {
            url: url.into(),
            key_env: "CLADE_REMOTE_KEY".to_owned(),
            resource_type: ResourceType::Cpu,
            priority: 2,
            insecure: false,
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            transfer: Duration::from_secs(600),
            give_up: Duration::from_secs(300),
            notes: notes.into(),
        }
    }
}
