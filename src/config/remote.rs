//! `[sandbox.remote]`: the back end that hands programs to a job service.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::sandbox::ResourceType;

/// The job service, and how it is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteConfig {
    /// Address of a server, or of a router in front of several; empty for none.
    pub url: String,
    /// Name of the environment variable with an API key.
    pub key_env: String,
    /// Workers that run the jobs.
    pub resource_type: ResourceType,
    /// 1 is first, 9 last.
    pub priority: u8,
    /// Send the key over plain HTTP to another machine.
    pub insecure: bool,
    /// Time for a connection, in seconds.
    pub connect_seconds: u64,
    /// Time for an answer, in seconds.
    pub answer_seconds: u64,
    /// Time for a data folder or a submission on its way, in seconds.
    pub transfer_seconds: u64,
    /// Time that the service may not answer, or ask to come again, before a job counts as failed, in seconds.
    pub give_up_seconds: u64,
}

impl RemoteConfig {
    /// Time for a connection, for an answer, for a transfer, and until a job counts as failed.
    pub fn times(&self) -> [Duration; 4] {
        [
            self.connect_seconds,
            self.answer_seconds,
            self.transfer_seconds,
            self.give_up_seconds,
        ]
        .map(Duration::from_secs)
    }
}
