//! What the machine offers and what was in force for one job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One layer of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Own user, process, mount, network, IPC, host name and cgroup namespaces.
    Namespaces,
    /// A new root with only the needed paths, read-only throughout.
    Filesystem,
    /// No capabilities and no way to gain privileges.
    Privileges,
    /// Landlock.
    Landlock,
    /// Filters on system calls.
    Seccomp,
    /// Limits a process carries itself.
    Rlimits,
    /// Memory of the process tree.
    Memory,
    /// Number of processes and threads.
    Processes,
    /// Share of the CPUs.
    Cpus,
    /// Size of the scratch directory.
    Disk,
    /// Preloaded interpreters.
    WarmPool,
}

impl Layer {
    /// Layers that the default profile of jails wants.
    pub const REQUIRED: [Self; 6] = [
        Self::Namespaces,
        Self::Filesystem,
        Self::Privileges,
        Self::Landlock,
        Self::Seccomp,
        Self::Rlimits,
    ];

    /// Name as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Filesystem => "filesystem",
            Self::Privileges => "privileges",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Rlimits => "rlimits",
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::Cpus => "cpus",
            Self::Disk => "disk",
            Self::WarmPool => "warm_pool",
        }
    }
}

/// What the machine offers for one layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// The layer can be put in force.
    pub available: bool,
    /// Version or kind, such as `ABI 7` or `v1`.
    pub version: Option<String>,
    /// How the layer is enforced here.
    pub enforced_by: String,
    /// What the user can do where it is missing or weaker than it could be.
    pub advice: Option<String>,
}

/// What this machine offers to a back end, one entry a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityReport {
    /// Name of the back end.
    pub backend: String,
    /// Every wanted layer is available.
    pub usable: bool,
    /// What there is to say in the place of layers, by a back end that has none of its own.
    pub summary: Option<String>,
    /// The layers.
    pub layers: BTreeMap<Layer, Capability>,
}

impl CapabilityReport {
    /// First wanted layer that is not available.
    pub fn first_missing(&self, wanted: &[Layer]) -> Option<(Layer, &Capability)> {
        wanted
            .iter()
            .find_map(|layer| self.layers.get(layer).filter(|c| !c.available).map(|c| (*layer, c)))
    }
}

/// How far a job was shut in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Every layer of the default profile.
    Isolated,
    /// Some layers are missing, and the configuration allows it.
    Partial,
    /// No isolation at all.
    Unsandboxed,
}

impl Grade {
    /// Name as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Isolated => "isolated",
            Self::Partial => "partial",
            Self::Unsandboxed => "unsandboxed",
        }
    }
}

/// Layers in force for one job; stored as JSON in `sandbox.jobs.isolation`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationReport {
    /// Name of the back end.
    pub backend: String,
    /// The sum of it.
    pub grade: Grade,
    /// How each layer in force is enforced.
    pub layers: BTreeMap<Layer, String>,
}

impl IsolationReport {
    /// Report of a job without isolation.
    pub fn unsandboxed(backend: &str) -> Self {
        Self {
            backend: backend.to_owned(),
            grade: Grade::Unsandboxed,
            layers: BTreeMap::new(),
        }
    }

    /// Report of a job in the given layers, of which the back end's default profile wants `required`.
    pub fn new(backend: &str, required: &[Layer], layers: BTreeMap<Layer, String>) -> Self {
        let all = required.iter().all(|layer| layers.contains_key(layer));
        let grade = if all { Grade::Isolated } else { Grade::Partial };
        Self {
            backend: backend.to_owned(),
            grade,
            layers,
        }
    }
}
