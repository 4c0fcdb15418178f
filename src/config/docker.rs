//! `[sandbox.docker]`: the container back end.

use serde::{Deserialize, Serialize};

use crate::sandbox::Gpus;

/// The container engine, its image, and how containers are started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DockerConfig {
    /// Address of the engine; none for `DOCKER_HOST` or the usual place.
    pub address: Option<String>,
    /// Image of programs and metrics.
    pub image: String,
    /// Interpreter in the image.
    pub python: String,
    /// Runtime of the engine; none for its default.
    pub runtime: Option<String>,
    /// GPUs of a program.
    pub gpus: GpuShare,
    /// Containers that start at once.
    pub starts: u32,
    /// Containers that stand ready, made and not started.
    pub standby: u32,
}

/// GPUs of a program: a number, or `"all"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GpuShare {
    /// So many.
    Count(u32),
    /// All of the machine.
    All(All),
}

/// The word `all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum All {
    /// All.
    All,
}

impl From<GpuShare> for Gpus {
    fn from(share: GpuShare) -> Self {
        match share {
            GpuShare::Count(0) => Self::None,
            GpuShare::Count(count) => Self::Count(count),
            GpuShare::All(All::All) => Self::All,
        }
    }
}
