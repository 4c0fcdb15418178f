//! Notes about jobs that are open at the service. A process that is killed leaves its notes, and the next one cancels what they name.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// A folder younger than this may be about to be locked.
const YOUNG: Duration = Duration::from_secs(2);
/// A job that is older has ended, whatever became of it.
const OLD: Duration = Duration::from_secs(7 * 24 * 3600);

/// An open job: under which name and key it was handed in. Its own id may not be known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenJob {
    pub(super) url: String,
    pub(super) name: String,
    pub(super) key: String,
}

/// Notes of this process, in a folder that is locked while it lives.
#[derive(Debug)]
pub(super) struct Notes {
    base: PathBuf,
    own: Mutex<Option<Own>>,
}

#[derive(Debug)]
struct Own {
    path: PathBuf,
    _lock: File,
}

impl Drop for Own {
    fn drop(&mut self) {
        // One with notes about jobs that could not be cancelled stays.
        let _ = fs::remove_dir(&self.path);
    }
}

impl Notes {
    pub(super) fn new(base: PathBuf) -> Self {
        Self {
            base,
            own: Mutex::default(),
        }
    }

    /// Notes a job that is about to be handed in; gives the file of the note.
    pub(super) fn add(&self, job: &OpenJob) -> io::Result<PathBuf> {
        let mut own = self.own.lock();
        let own = match &mut *own {
            Some(own) => own,
            none => none.insert(Own::create(&self.base)?),
        };
        let path = own.path.join(format!("{}.json", job.key));
        fs::write(&path, serde_json::to_vec(job)?)?;
        Ok(path)
    }

    /// Notes that dead processes have left.
    pub(super) fn left(&self) -> Vec<(PathBuf, OpenJob)> {
        let mut left = Vec::new();
        for folder in entries(&self.base).filter(|folder| is_older(folder, YOUNG) && is_free(folder)) {
            for note in entries(&folder) {
                let text = fs::read(&note).unwrap_or_default();
                match serde_json::from_slice(&text) {
                    Ok(job) if !is_older(&note, OLD) => left.push((note, job)),
                    // Nothing can be known of the job.
                    _ => remove(&note),
                }
            }
            // One with notes stays.
            let _ = fs::remove_dir(&folder);
        }
        left
    }
}

impl Own {
    fn create(base: &Path) -> io::Result<Self> {
        fs::create_dir_all(base)?;
        let path = base.join(format!("{}-{:08x}", std::process::id(), rand::random::<u32>()));
        fs::create_dir(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockShared)?;
        Ok(Self { path, _lock: lock })
    }
}

/// Removes a note of a dead process, and with the last one its folder.
pub(super) fn remove_left(note: &Path) {
    remove(note);
    if let Some(folder) = note.parent() {
        // One with other notes stays.
        let _ = fs::remove_dir(folder);
    }
}

/// Removes a note: its job has ended.
pub(super) fn remove(note: &Path) {
    if let Err(error) = fs::remove_file(note)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %note.display(), %error, "the note of a job that ended could not be removed");
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

fn is_older(path: &Path, than: Duration) -> bool {
    let changed = path.metadata().and_then(|meta| meta.modified());
    changed.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > than))
}

fn is_free(folder: &Path) -> bool {
    File::open(folder).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::SystemTime;

    use super::*;

    fn job(key: &str) -> OpenJob {
        OpenJob {
            url: "http://127.0.0.1:1".to_owned(),
            name: "j".to_owned(),
            key: key.to_owned(),
        }
    }

    #[test]
    fn only_notes_of_the_dead_are_left() {
        let base = tempfile::tempdir().unwrap();
        let (notes, other) = (Notes::new(base.path().to_owned()), Notes::new(base.path().to_owned()));
        let own = notes.add(&job("a")).unwrap();
        other.add(&job("b")).unwrap();
        let dead = base.path().join("1-dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("c.json"), serde_json::to_vec(&job("c")).unwrap()).unwrap();
        fs::write(dead.join("d.json"), "{").unwrap();
        assert_eq!(notes.left(), [], "they are young");
        let long_ago = SystemTime::now() - Duration::from_secs(60);
        for folder in entries(base.path()) {
            File::open(folder).unwrap().set_modified(long_ago).unwrap();
        }
        let left = notes.left();
        assert_eq!(left, [(dead.join("c.json"), job("c"))]);
        remove_left(&left[0].0);
        assert!(!dead.exists());
        assert_eq!(notes.left(), []);
        remove(&own);
        drop(notes);
        assert_eq!(entries(base.path()).count(), 1, "what the other process has");
    }
}
