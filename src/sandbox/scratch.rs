//! Directories of jobs: made, removed whatever a program put into them, and swept when their owner died.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, chmodat, flock, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::SandboxError;

const LOCK: &str = "lock";

/// Back ends whose instances are swept together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Programs are processes of this machine.
    Processes,
    /// Programs are containers, which have to go before their directories.
    Containers,
}

impl Family {
    /// Directory of all instances of this user.
    fn directory(self, base: &Path) -> PathBuf {
        let name = match self {
            Self::Processes => "clade-sandbox",
            Self::Containers => "clade-containers",
        };
        base.join(format!("{name}-{}", rustix::process::geteuid().as_raw()))
    }

    /// Instances whose owners are dead, with their directories.
    pub(crate) fn dead(self, base: &Path) -> Vec<(String, PathBuf)> {
        let mut dead = Vec::new();
        for entry in fs::read_dir(self.directory(base)).into_iter().flatten().flatten() {
            let path = entry.path();
            // An instance is being made between its directory and its lock: leave the young ones alone.
            let is_old = entry
                .metadata()
                .and_then(|m| m.modified())
                .is_ok_and(|t| t.elapsed().is_ok_and(|age| age.as_secs() > 2));
            if let Ok(name) = entry.file_name().into_string()
                && !self.is_alive(base, &name)
                && (is_old || path.join(LOCK).exists())
            {
                dead.push((name, path));
            }
        }
        dead
    }

    /// Whether the owner of an instance lives: then it holds the lock.
    pub(crate) fn is_alive(self, base: &Path, instance: &str) -> bool {
        let Ok(file) = File::open(self.directory(base).join(instance).join(LOCK)) else {
            return false;
        };
        flock(&file, FlockOperation::NonBlockingLockExclusive).is_err()
    }

    /// Removes the directories of dead instances; gives how many.
    pub(crate) fn sweep(self, base: &Path) -> usize {
        let dead = self.dead(base);
        dead.iter().filter(|(_, path)| remove_tree(path).is_ok()).count()
    }
}

/// The directory of one executor: everything that its jobs leave lies below it. Its lock says that the owner lives.
#[derive(Debug)]
pub(crate) struct InstanceDir {
    path: PathBuf,
    name: String,
    _lock: File,
}

impl InstanceDir {
    /// Makes a new directory below `base`.
    pub(crate) fn create(family: Family, base: &Path) -> Result<Self, SandboxError> {
        let parent = family.directory(base);
        make_own_dir(&parent)?;
        let name = format!("{}-{:08x}", std::process::id(), rand::random::<u32>());
        let path = parent.join(&name);
        fs::create_dir(&path).map_err(SandboxError::io("make", &path))?;
        restrict(&path)?;
        let lock = path.join(LOCK);
        let file = File::create(&lock).map_err(SandboxError::io("make", &lock))?;
        flock(&file, FlockOperation::NonBlockingLockShared).map_err(|e| SandboxError::io("lock", &lock)(e.into()))?;
        Ok(Self {
            path,
            name,
            _lock: file,
        })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its name, which also names control groups.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Makes a directory for one job.
    pub(crate) fn job_dir(&self) -> Result<JobDir, SandboxError> {
        let path = self.path.join(format!("job-{:016x}", rand::random::<u64>()));
        fs::create_dir(&path).map_err(SandboxError::io("make", &path))?;
        Ok(JobDir { path })
    }
}

impl Drop for InstanceDir {
    fn drop(&mut self) {
        // What cannot be removed now is swept at the next start.
        let _ = remove_tree(&self.path);
    }
}

/// The directory of one job; removed when dropped.
#[derive(Debug)]
pub(crate) struct JobDir {
    path: PathBuf,
}

impl JobDir {
    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for JobDir {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a job directory is left; the next start removes it");
        }
    }
}

/// Makes a directory in a place that others may write too, such as `/tmp`: somebody else's directory or link under this
/// name is refused.
fn make_own_dir(path: &Path) -> Result<(), SandboxError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(SandboxError::io("make", parent))?;
    }
    match fs::create_dir(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(SandboxError::io("make", path)(e)),
        _ => {}
    }
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| SandboxError::io("examine", path)(e.into()))?;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if !is_directory || stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(SandboxError::Config(format!(
            "{} is in use by somebody else; choose another scratch directory",
            path.display()
        )));
    }
    restrict(path)
}

fn restrict(path: &Path) -> Result<(), SandboxError> {
    chmodat(CWD, path, Mode::from_raw_mode(0o700), AtFlags::empty())
        .map_err(|e| SandboxError::io("restrict", path)(e.into()))
}

/// Takes the lock too, so that an instance counts as alive while its helper cleans up.
pub(crate) fn share_lock(instance: &Path) -> io::Result<File> {
    let file = File::open(instance.join(LOCK))?;
    flock(&file, FlockOperation::NonBlockingLockShared)?;
    Ok(file)
}

/// Removes a tree that a hostile program has made: any depth, any permissions, never through a link.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    let Some(root) = open_directory(CWD, path)? else {
        return Ok(());
    };
    // Directories are lifted to the top before they are emptied, so no path and no recursion grows with the depth. The
    // names there are random: the program cannot have taken them.
    let mut lift = Lift {
        prefix: format!(".clade-{:016x}-", rand::random::<u64>()),
        count: 0,
        pending: VecDeque::new(),
    };
    empty(&root, &root, &mut lift)?;
    while let Some(name) = lift.pending.pop_front() {
        if let Some(directory) = open_directory(&root, Path::new(&name))? {
            empty(&directory, &root, &mut lift)?;
        }
        ignore_missing(unlinkat(&root, &*name, AtFlags::REMOVEDIR))?;
    }
    ignore_missing(unlinkat(CWD, path, AtFlags::REMOVEDIR))
}

/// Directories that wait at the top.
struct Lift {
    prefix: String,
    count: u64,
    pending: VecDeque<String>,
}

/// Opens a directory with all rights of its owner; `None` when it is not there.
fn open_directory(at: impl AsFd, path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(&at, path, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::ACCESS) => {}
        Ok(fd) => {
            // Without these rights an ordinary user could list it but not empty it.
            let _ = rustix::fs::fchmod(&fd, Mode::from_raw_mode(0o700));
            return Ok(Some(fd));
        }
        Err(e) => return Err(e.into()),
    }
    chmodat(&at, path, Mode::from_raw_mode(0o700), AtFlags::empty())?;
    Ok(Some(openat(&at, path, flags, Mode::empty())?))
}

fn empty(directory: &OwnedFd, root: &OwnedFd, lift: &mut Lift) -> io::Result<()> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." || name.to_bytes().starts_with(lift.prefix.as_bytes()) {
            continue;
        }
        let is_directory = match entry.file_type() {
            FileType::Unknown => statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
            kind => kind == FileType::Directory,
        };
        if !is_directory {
            ignore_missing(unlinkat(directory, name, AtFlags::empty()))?;
            continue;
        }
        match unlinkat(directory, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => continue,
            Err(_) => {}
        }
        // Moving a directory changes its link to the parent, which needs the right to write it.
        let _ = chmodat(directory, name, Mode::from_raw_mode(0o700), AtFlags::empty());
        lift.count += 1;
        let target = format!("{}{}", lift.prefix, lift.count);
        ignore_missing(renameat(directory, name, root, &*target))?;
        lift.pending.push_back(target);
    }
    Ok(())
}

fn ignore_missing(result: Result<(), Errno>) -> io::Result<()> {
    match result {
        Err(Errno::NOENT) | Ok(()) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_deep_tree_goes() {
        // In memory: some disks take milliseconds for each directory.
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        }
        .unwrap();
        let top = base.path().join("top");
        fs::create_dir(&top).unwrap();
        let mut fd = open_directory(CWD, &top).unwrap().unwrap();
        for _ in 0..20_000 {
            rustix::fs::mkdirat(&fd, "d", Mode::from_raw_mode(0o700)).unwrap();
            fd = openat(&fd, "d", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn links_are_not_followed_and_rights_do_not_matter() {
        let base = tempfile::tempdir().unwrap();
        let outside = base.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("keep"), "x").unwrap();
        let top = base.path().join("top");
        fs::create_dir_all(top.join("locked/inner")).unwrap();
        fs::write(top.join("locked/inner/file"), "x").unwrap();
        symlink(&outside, top.join("link")).unwrap();
        symlink(&outside, top.join("locked/link")).unwrap();
        for dir in ["locked/inner", "locked"] {
            chmodat(CWD, top.join(dir), Mode::empty(), AtFlags::empty()).unwrap();
        }
        remove_tree(&top).unwrap();
        assert!(!top.exists() && outside.join("keep").exists());
    }

    #[test]
    fn a_link_in_the_place_of_the_directory_is_refused() {
        let base = tempfile::tempdir().unwrap();
        symlink("/etc", Family::Processes.directory(base.path())).unwrap();
        let error = InstanceDir::create(Family::Processes, base.path()).unwrap_err();
        assert!(matches!(error, SandboxError::Config(_)), "{error}");
    }

    #[test]
    fn a_missing_tree_is_gone_already() {
        remove_tree(Path::new("/nonexistent/clade")).unwrap();
    }

    #[test]
    fn only_dead_instances_are_swept() {
        let base = tempfile::tempdir().unwrap();
        let alive = InstanceDir::create(Family::Processes, base.path()).unwrap();
        let dead = InstanceDir::create(Family::Processes, base.path()).unwrap();
        let kept = Family::Processes.directory(base.path()).join("4242-dead");
        fs::create_dir_all(kept.join("job-1/scratch")).unwrap();
        fs::write(kept.join(LOCK), "").unwrap();
        drop(dead);
        assert_eq!(Family::Processes.sweep(base.path()), 1);
        assert!(alive.path().exists() && !kept.exists());
    }
}
