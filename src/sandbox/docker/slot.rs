//! A container that is made and not started, with the directories that it shows: its job is written into them just before it starts.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bollard::Docker;
use bollard::query_parameters::CreateContainerOptions;
use rustix::fs::{Gid, Mode, OFlags, Uid};
use serde::Serialize;

use super::cleaner::Remover;
use super::container::{self, BASE_LABEL, INSTANCE_LABEL, Kind, USER_LABEL};
use super::engine::fault;
use super::options::DockerOptions;
use crate::sandbox::SandboxError;
use crate::sandbox::launch::{Launch, SCRATCH, TextFile};
use crate::sandbox::scratch::{InstanceDir, JobDir};

const START: &str = include_str!("../python/container_start.py");

/// What the start script reads.
#[derive(Serialize)]
struct Job<'a> {
    directory: &'a str,
    arguments: Vec<&'a str>,
    environment: &'a BTreeMap<String, String>,
    /// Filters on system calls, as hexadecimal text.
    filters: &'a [String],
}

/// A container that waits for its job. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Slot {
    remover: Remover,
    id: String,
    pub(super) kind: Kind,
    /// `None` once it is on its way to be removed.
    directory: Option<JobDir>,
    path: PathBuf,
    owner: Option<(Uid, Gid)>,
}

/// Makes containers.
pub(super) struct Maker {
    pub(super) docker: Docker,
    pub(super) options: DockerOptions,
    pub(super) instance: Arc<InstanceDir>,
    pub(super) remover: Remover,
}

/// Host paths that a program is shown, and where; files with given content lie in the slot's own directory.
fn inputs(launch: &Launch, files: &Path) -> Result<Vec<(String, String)>, SandboxError> {
    let mut inputs = Vec::new();
    for input in &launch.inputs {
        let source = input
            .source
            .canonicalize()
            .map_err(SandboxError::io("find", &input.source))?;
        inputs.push((text(&source)?, input.target.clone()));
    }
    for (index, file) in launch.files.iter().enumerate() {
        inputs.push((text(&files.join(index.to_string()))?, file.path.clone()));
    }
    Ok(inputs)
}

fn text(path: &Path) -> Result<String, SandboxError> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| SandboxError::Config(format!("the path {} is not valid UTF-8", path.display())))
}

/// Refuses inputs that only root can read: to a container, which has another user, they would be there and could not be opened.
fn check_readable(path: &Path) -> Result<(), SandboxError> {
    let is_readable = |path: &Path| {
        fs::metadata(path).map(|found| {
            let wanted = if found.is_dir() { 0o005 } else { 0o004 };
            found.permissions().mode() & wanted == wanted
        })
    };
    let refuse = |path: &Path| {
        SandboxError::Config(format!(
            "containers run as another user, who cannot read {}; make it readable (chmod -R a+rX), or use the native executor",
            path.display()
        ))
    };
    if !is_readable(path).map_err(SandboxError::io("examine", path))? {
        return Err(refuse(path));
    }
    if !path.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(SandboxError::io("list", path))? {
        let inside = entry.map_err(SandboxError::io("list", path))?.path();
        // A link that leads nowhere is nothing that could be read.
        if matches!(is_readable(&inside), Ok(false)) {
            return Err(refuse(&inside));
        }
    }
    Ok(())
}

impl Maker {
    /// Makes the directories and the container for a launch.
    pub(super) async fn make(&self, launch: &Launch) -> Result<Slot, SandboxError> {
        let options = &self.options;
        let directory = self.instance.job_dir()?;
        let (control, scratch) = (directory.path().join("control"), directory.path().join("scratch"));
        for path in [&control, &scratch] {
            fs::create_dir(path).map_err(SandboxError::io("make", path))?;
        }
        let is_root = rustix::process::geteuid().is_root();
        let owner = is_root.then(|| (Uid::from_raw(options.host_id), Gid::from_raw(options.host_id)));
        let (uid, gid) = owner.unwrap_or((rustix::process::geteuid(), rustix::process::getegid()));
        write(&control.join("start.py"), START, None)?;
        for (index, file) in launch.files.iter().enumerate() {
            write(&control.join(index.to_string()), &file.content, None)?;
        }
        give(&scratch, owner)?;
        let kind = Kind {
            inputs: inputs(launch, &control)?,
            limits: launch.limits.clone(),
        };
        if is_root {
            kind.inputs
                .iter()
                .try_for_each(|(source, _)| check_readable(Path::new(source)))?;
        }
        let labels = HashMap::from([
            (INSTANCE_LABEL.to_owned(), self.instance.name().to_owned()),
            (BASE_LABEL.to_owned(), text(&options.scratch_root)?),
            (USER_LABEL.to_owned(), rustix::process::geteuid().as_raw().to_string()),
        ]);
        let user = format!("{}:{}", uid.as_raw(), gid.as_raw());
        let body = container::describe(options, &kind, labels, user, &control, &scratch);
        let made = self
            .docker
            .create_container(None::<CreateContainerOptions>, body)
            .await
            .map_err(|error| fault("make a container", &error))?;
        Ok(Slot {
            remover: self.remover.clone(),
            id: made.id,
            kind,
            path: directory.path().to_owned(),
            directory: Some(directory),
            owner,
        })
    }
}

impl Slot {
    /// The kind of container that a launch without files of its own needs; one with such files has a container to itself.
    pub(super) fn kind(launch: &Launch) -> Result<Option<Kind>, SandboxError> {
        if !launch.files.is_empty() {
            return Ok(None);
        }
        Ok(Some(Kind {
            inputs: inputs(launch, Path::new(""))?,
            limits: launch.limits.clone(),
        }))
    }

    /// The container's id.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Writes the job; gives the scratch directory.
    pub(super) fn load(&self, launch: &Launch, filters: &[String]) -> Result<OwnedFd, SandboxError> {
        let scratch = self.scratch();
        for TextFile { path, content } in &launch.scratch_files {
            write(&scratch.join(path), content, self.owner)?;
        }
        let arguments = launch.flags.iter().chain([&launch.script]).chain(&launch.arguments);
        let job = Job {
            directory: SCRATCH,
            arguments: arguments.map(String::as_str).collect(),
            environment: &launch.env,
            filters,
        };
        let job = serde_json::to_string(&job).map_err(|error| SandboxError::Config(error.to_string()))?;
        write(&self.path.join("control/job.json"), &job, None)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(&scratch, flags, Mode::empty())
            .map_err(|errno| SandboxError::io("open", &scratch)(errno.into()))
    }

    fn scratch(&self) -> PathBuf {
        self.path.join("scratch")
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.remover.remove(std::mem::take(&mut self.id), self.directory.take());
    }
}

fn write(path: &Path, content: &str, owner: Option<(Uid, Gid)>) -> Result<(), SandboxError> {
    fs::write(path, content).map_err(SandboxError::io("write", path))?;
    give(path, owner)
}

fn give(path: &Path, owner: Option<(Uid, Gid)>) -> Result<(), SandboxError> {
    match owner {
        Some((uid, gid)) => rustix::fs::chown(path, Some(uid), Some(gid))
            .map_err(|errno| SandboxError::io("give away", path)(errno.into())),
        None => Ok(()),
    }
}
