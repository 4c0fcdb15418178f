//! A small file system, so that a disk can be full or read-only.

use std::path::Path;
use std::process::Command;

/// A small file system of its own, unmounted at the end. `None` when `CLADE_SKIP_MOUNT=1`.
pub struct Mount(tempfile::TempDir);

impl Mount {
    pub fn new(size: &str) -> Option<Self> {
        if std::env::var("CLADE_SKIP_MOUNT").is_ok_and(|skip| skip == "1") {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let option = format!("size={size}");
        run(&[
            "mount",
            "-t",
            "tmpfs",
            "-o",
            &option,
            "tmpfs",
            dir.path().to_str().unwrap(),
        ]);
        Some(Self(dir))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Mounts it anew with other options.
    pub fn remount(&self, mode: &str) {
        run(&["mount", "-o", &format!("remount,{mode}"), self.path().to_str().unwrap()]);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// Runs a command that must succeed.
pub fn run(command: &[&str]) {
    let done = Command::new(command[0]).args(&command[1..]).status().unwrap().success();
    assert!(
        done,
        "{command:?} failed; these tests mount a small tmpfs: run them as root or set CLADE_SKIP_MOUNT=1"
    );
}
