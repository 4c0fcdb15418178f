//! A root tree that is kept as a folder, for jails.

use std::path::Path;

use tokio::process::Command;

use super::command;
use crate::sandbox::SandboxError;

/// File of the tree with the digest of what it was made of.
const INPUTS_FILE: &str = ".clade-inputs";

/// The folder, when it holds a tree that was made of these parts.
pub(super) fn current(folder: &Path, inputs: &str) -> Option<String> {
    let made_of = std::fs::read_to_string(folder.join(INPUTS_FILE)).ok()?;
    (made_of == inputs).then(|| folder.display().to_string())
}

/// Refuses a folder that is taken: what is there is replaced only on request, and only when it is such a tree.
pub(super) fn check(folder: &Path, replace: bool) -> Result<(), SandboxError> {
    if folder.symlink_metadata().is_err() || (replace && folder.join(INPUTS_FILE).is_file()) {
        return Ok(());
    }
    Err(SandboxError::Image {
        what: format!("keep the root tree in {}", folder.display()),
        reason: "there is something else already".to_owned(),
        advice: "name a folder that does not exist, or replace an older root tree with --force".to_owned(),
    })
}

/// Moves a tree to its folder, which [`check`] has allowed.
pub(super) async fn keep(root: &Path, folder: &Path, inputs: &str) -> Result<String, SandboxError> {
    let marker = root.join(INPUTS_FILE);
    std::fs::write(&marker, inputs).map_err(SandboxError::io("write", &marker))?;
    if folder.is_dir() {
        std::fs::remove_dir_all(folder).map_err(SandboxError::io("remove", folder))?;
    }
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent).map_err(SandboxError::io("make", parent))?;
    }
    // Also from one file system to another.
    let mut mv = Command::new("mv");
    mv.arg("--no-target-directory").arg(root).arg(folder);
    command::run("keep the root tree", &mut mv, "").await?;
    Ok(folder.display().to_string())
}
