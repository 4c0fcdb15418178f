//! `[sandbox.native]`: the back end of jails.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What jails show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeConfig {
    /// Root tree that programs see in the place of this machine's files; none for those of this machine.
    pub rootfs: Option<PathBuf>,
    /// Interpreter in the root tree.
    pub rootfs_python: PathBuf,
}
