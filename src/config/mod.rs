//! Configuration: embedded defaults < file < `CLADE_*` environment < command line; one of them may name a profile.
//!
//! Each section is a struct of its own module; a key that no struct knows is an error that names the key and where it
//! came from. [`Sources`] says what to read, [`Loaded`] is the result together with the origin of every value.

mod access;
mod docker;
mod entries;
mod environment;
mod error;
mod load;
mod log;
mod machine;
mod native;
mod place;
mod profile;
mod prompts;
mod python;
mod remote;
mod sandbox;
mod search;
mod service;
mod size;
mod store;
#[cfg(test)]
mod tests;
mod validate;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::ModelOptions;

pub use access::AccessConfig;
pub use docker::{All, DockerConfig, GpuShare};
pub use entries::Entry;
pub use error::ConfigError;
pub use load::{DEFAULT_ORIGIN, DEFAULTS, Loaded, Override, Sources};
pub use log::LogConfig;
pub use native::NativeConfig;
pub use prompts::PromptsConfig;
pub use python::PythonConfig;
pub use remote::RemoteConfig;
pub use sandbox::SandboxConfig;
pub use search::{PolicySettings, SearchConfig, SearchMode};
pub use service::ServiceConfig;
pub use size::{ByteSize, InvalidSize};
pub use store::{S3Config, StoreConfig};

/// The whole configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the store is and when its hot rows move.
    pub store: StoreConfig,
    /// The interpreter of candidates.
    pub python: PythonConfig,
    /// How programs run, and their limits.
    pub sandbox: SandboxConfig,
    /// Defaults of a search run.
    pub search: SearchConfig,
    /// What prompts are made of.
    pub prompts: PromptsConfig,
    /// The HTTP job service.
    pub service: ServiceConfig,
    /// What statements may reach.
    pub access: AccessConfig,
    /// Models by name, beyond the built-in ones.
    #[serde(default)]
    pub models: BTreeMap<String, ModelOptions>,
    /// What is logged to standard error.
    pub log: LogConfig,
}

impl Config {
    /// The embedded defaults alone.
    pub fn defaults() -> Result<Self, ConfigError> {
        Ok(Sources::default().load()?.config)
    }
}
