//! One folder of the cache. Whoever reads it holds a shared lock, so that no process on this machine removes it meanwhile.

use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// A folder in use. It is kept as long as this lives.
#[derive(Debug)]
pub(in crate::worker) struct CachedFolder {
    path: PathBuf,
    _lock: File,
}

impl CachedFolder {
    /// Takes a folder into use; none when it is not there.
    pub(super) fn open(path: PathBuf) -> io::Result<Option<Self>> {
        let lock = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        flock(&lock, FlockOperation::LockShared)?;
        // It may have been removed, and made anew, before the lock was had.
        if !is_at(&lock, &path)? {
            return Ok(None);
        }
        // The time of the last use, by which folders are removed. Its owner may be somebody else.
        if let Err(error) = lock.set_times(FileTimes::new().set_modified(SystemTime::now())) {
            tracing::debug!(path = %path.display(), %error, "the last use could not be noted");
        }
        Ok(Some(Self { path, _lock: lock }))
    }

    /// Its path.
    pub(in crate::worker) fn path(&self) -> &Path {
        &self.path
    }
}

/// Moves a folder that nobody uses to another place; false when somebody does, or it is gone.
pub(super) fn take_away(path: &Path, to: &Path) -> io::Result<bool> {
    let lock = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(false),
        locked => locked?,
    }
    if !is_at(&lock, path)? {
        return Ok(false);
    }
    fs::rename(path, to)?;
    Ok(true)
}

fn is_at(opened: &File, path: &Path) -> io::Result<bool> {
    let there = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        found => found?,
    };
    let here = opened.metadata()?;
    Ok((here.dev(), here.ino()) == (there.dev(), there.ino()))
}
