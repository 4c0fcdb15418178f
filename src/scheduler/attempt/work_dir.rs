//! The folder of one job's collected files. It is locked while its process lives, so that what a killed process left can be
//! told from what a live one works on, and swept.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tracing::warn;

/// A folder younger than this may be about to be locked.
const YOUNG: Duration = Duration::from_secs(2);

/// A locked folder, removed when dropped.
#[derive(Debug)]
pub struct WorkDir {
    path: PathBuf,
    _lock: File,
}

impl WorkDir {
    /// Makes a folder that no other job has.
    ///
    /// # Errors
    /// When it cannot be made or locked.
    pub fn create(parent: &Path, job_id: &str) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        let path = parent.join(format!("{job_id}-{:08x}", rand::random::<u32>()));
        fs::create_dir(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockShared)?;
        Ok(Self { path, _lock: lock })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            warn!(path = %self.path.display(), %error, "a work folder is left; the next start removes it");
        }
    }
}

/// Removes the folders that killed processes have left.
pub fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_old = entry
            .metadata()
            .and_then(|data| data.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > YOUNG));
        let is_free =
            || File::open(&path).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok());
        if is_old
            && is_free()
            && let Err(error) = fs::remove_dir_all(&path)
        {
            warn!(path = %path.display(), %error, "the work folder of a killed process could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::SystemTime;

    use super::*;

    #[test]
    fn only_what_nobody_holds_is_swept() {
        let parent = tempfile::tempdir().unwrap();
        let held = WorkDir::create(parent.path(), "j1").unwrap();
        let left = parent.path().join("j2-dead");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("submission.csv"), "1").unwrap();
        for path in [held.path(), &left] {
            let long_ago = SystemTime::now() - Duration::from_secs(60);
            File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
        sweep(parent.path());
        assert!(held.path().exists() && !left.exists());
        drop(held);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
