//! Options of the container back end.

use std::path::PathBuf;
use std::time::Duration;

/// GPUs that programs get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Gpus {
    /// None.
    #[default]
    None,
    /// All of the machine.
    All,
    /// So many.
    Count(u32),
}

/// Options of the back end for Docker and Podman.
#[derive(Debug, Clone)]
pub struct DockerOptions {
    /// Address of the engine, such as `unix:///run/podman/podman.sock`; `None` for `DOCKER_HOST` or the usual place. The engine must
    /// be on this machine: programs get directories of it.
    pub address: Option<String>,
    /// Image of candidates and metrics.
    pub image: String,
    /// Interpreter in the image.
    pub python: String,
    /// Directory below which job directories are made.
    pub scratch_root: PathBuf,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// User that programs get when this process is root; else they get our own.
    pub host_id: u32,
    /// Runtime of the engine, such as `runsc`; `None` for its default.
    pub runtime: Option<String>,
    /// GPUs of a program.
    pub gpus: Gpus,
    /// Containers that start at once: an engine gets slower, not faster, with many.
    pub starts: usize,
    /// Containers of the last kind that stand ready, made and not started.
    pub standby: usize,
}

impl DockerOptions {
    /// The default profile for an image.
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            address: None,
            image: image.into(),
            python: "python3".to_owned(),
            scratch_root: std::env::temp_dir(),
            grace: Duration::from_secs(5),
            host_id: 65_534,
            runtime: None,
            gpus: Gpus::None,
            starts: 4,
            standby: 1,
        }
    }
}
