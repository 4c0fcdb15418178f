//! A root tree of Debian packages.

use std::path::Path;

use tokio::process::Command;

use super::command;
use crate::sandbox::SandboxError;

/// Release that is installed.
pub(super) const SUITE: &str = "bookworm";
/// Packages beside the smallest system.
pub(super) const PACKAGES: &str = "python3,python3-venv,ca-certificates,libgomp1";

const GET_DEBOOTSTRAP: &str =
    "install it (Debian and Ubuntu: apt-get install debootstrap), or name an image to build on with --from";

/// Installs the packages in `root`.
pub(super) async fn install(
    mirror: &str,
    root: &Path,
    tell: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), SandboxError> {
    tell(&format!("installing Debian {SUITE} from {mirror}"));
    let mut debootstrap = Command::new("debootstrap");
    debootstrap
        .arg("--variant=minbase")
        .arg(format!("--include={PACKAGES}"))
        .arg(SUITE)
        .arg(root)
        .arg(mirror);
    command::run("install Debian packages", &mut debootstrap, GET_DEBOOTSTRAP).await?;
    Ok(())
}
