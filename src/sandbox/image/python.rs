//! The Python packages of an image: fetched on the host, installed inside its root tree without a network.

use std::path::Path;

use tokio::process::Command;

use super::command;
use super::{ENVIRONMENT, ImageSpec};
use crate::sandbox::SandboxError;

/// Installs the packages; runs inside, where [`BUILD`] holds them.
pub(super) const SCRIPT: &str = include_str!("install.sh");
/// Where the parts are inside while the image is made.
const BUILD: &str = "/build";
/// Makes an interpreter print its version as pip wants it.
const VERSION: &str = "import sys; print('%d.%d' % sys.version_info[:2])";
/// What to do about a base in which nothing runs.
const OTHER_BASE: &str = "name a base with Python 3.11 or newer and its venv module with --from";
/// What programs never read.
const DROPPED: [&str; 5] = [
    "var/cache/apt/archives",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
];

/// Installs the packages of `spec` in the tree, and leaves nothing else behind.
///
/// # Errors
/// When the tree has no Python, pip cannot fetch a package, or the installation fails.
pub(super) async fn install(
    spec: &ImageSpec,
    root: &Path,
    tell: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), SandboxError> {
    let mut question = inside(root, "python3");
    question.args(["-c", VERSION]);
    let version = command::run("ask the image's Python", &mut question, OTHER_BASE).await?;
    let build = root.join(BUILD.trim_start_matches('/'));
    fetch(spec, version.trim(), &build, tell).await?;
    tell("installing the Python packages");
    let mut script = inside(root, "/bin/sh");
    script.args([&format!("{BUILD}/install.sh"), BUILD, ENVIRONMENT]);
    command::run("install the Python packages", &mut script, OTHER_BASE).await?;
    remove(&build)?;
    for place in DROPPED {
        empty(&root.join(place))?;
    }
    Ok(())
}

async fn fetch(
    spec: &ImageSpec,
    version: &str,
    build: &Path,
    tell: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), SandboxError> {
    tell(&format!("fetching the Python packages for Python {version}"));
    let wheels = build.join("wheels");
    std::fs::create_dir_all(&wheels).map_err(SandboxError::io("make", &wheels))?;
    let (lock, script) = (build.join("requirements.lock"), build.join("install.sh"));
    std::fs::write(&lock, &spec.requirements).map_err(SandboxError::io("write", &lock))?;
    std::fs::write(&script, SCRIPT).map_err(SandboxError::io("write", &script))?;
    let mut pip = Command::new(&spec.python);
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
    ])
    .args(["--only-binary", ":all:", "--python-version", version, "--dest"])
    .arg(&wheels)
    .arg("--requirement")
    .arg(&lock);
    let advice = "name an interpreter with pip in python.interpreter";
    command::run("fetch the Python packages", &mut pip, advice).await?;
    Ok(())
}

/// A command that runs in the tree, without the variables of this process.
fn inside(root: &Path, program: &str) -> Command {
    let mut command = Command::new("chroot");
    command
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LANG", "C.UTF-8")
        .arg(root)
        .arg(program);
    command
}

fn remove(folder: &Path) -> Result<(), SandboxError> {
    std::fs::remove_dir_all(folder).map_err(SandboxError::io("remove", folder))
}

/// Removes what is in a folder, where there is one.
fn empty(folder: &Path) -> Result<(), SandboxError> {
    if !folder.is_dir() {
        return Ok(());
    }
    remove(folder)?;
    std::fs::create_dir(folder).map_err(SandboxError::io("make", folder))
}
