//! Submissions of jobs that ended, kept for their users for a while. A file is whole and durable before the end of its job is written;
//! one whose job did not end with it, because the server was killed in between, is removed later.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::task::spawn_blocking;
use tracing::warn;

use super::error::{Result, ServiceError};
use super::queue::{JobRecord, Lease, Queue};
use crate::sandbox::Collected;

/// How long and how much is kept.
#[derive(Debug, Clone, Copy)]
pub struct KeepLimits {
    /// Time after the end of a job; nothing is kept when it is zero.
    pub time: Duration,
    /// Bytes of all submissions.
    pub total: u64,
}

/// A file that is kept.
#[derive(Debug)]
struct Kept {
    name: String,
    bytes: u64,
    since: SystemTime,
}

/// The submissions of a store.
#[derive(Debug)]
pub struct Submissions {
    dir: PathBuf,
    limits: KeepLimits,
    /// The oldest first.
    kept: Mutex<VecDeque<Kept>>,
}

impl Submissions {
    /// Opens the submissions in a folder.
    ///
    /// # Errors
    /// When the folder cannot be used.
    pub async fn open(dir: PathBuf, limits: KeepLimits) -> Result<Self> {
        spawn_blocking(move || {
            fs::create_dir_all(&dir).map_err(ServiceError::io("make", &dir))?;
            let kept = list(&dir).map_err(ServiceError::io("read", &dir))?;
            Ok(Self {
                dir,
                limits,
                kept: Mutex::new(kept.into()),
            })
        })
        .await?
    }

    /// Whether anything is kept at all.
    pub fn is_kept(&self) -> bool {
        !self.limits.time.is_zero()
    }

    /// Takes the submission of an attempt over from the folder of its job. It is durable when this returns; the oldest go where all
    /// together would be too many bytes.
    ///
    /// # Errors
    /// When the file cannot be moved.
    pub async fn keep(&self, lease: &Lease, submission: &Collected) -> Result<()> {
        if !self.is_kept() || submission.bytes > self.limits.total {
            return Ok(());
        }
        let name = file_name(&lease.job_id, lease.attempt);
        let since = SystemTime::now();
        let (source, target) = (submission.path.clone(), self.dir.join(&name));
        spawn_blocking(move || take_over(&source, &target, since)).await??;
        let mut kept = self.kept.lock();
        kept.retain(|other| other.name != name);
        kept.push_back(Kept {
            name,
            bytes: submission.bytes,
            since,
        });
        let mut total: u64 = kept.iter().map(|kept| kept.bytes).sum();
        while total > self.limits.total
            && let Some(oldest) = kept.pop_front()
        {
            total -= oldest.bytes;
            self.remove(&oldest.name);
        }
        Ok(())
    }

    /// The submission of a job that ended; none when it is gone.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn of(&self, job: &JobRecord) -> Result<Option<tokio::fs::File>> {
        let path = self.dir.join(file_name(&job.job_id, job.attempts));
        match tokio::fs::File::open(&path).await {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ServiceError::io("open", path)(error)),
        }
    }

    /// Removes what was kept long enough.
    pub fn forget_old(&self) {
        let mut kept = self.kept.lock();
        let is_old = |kept: &Kept| kept.since.elapsed().is_ok_and(|age| age > self.limits.time);
        while kept.front().is_some_and(is_old)
            && let Some(oldest) = kept.pop_front()
        {
            self.remove(&oldest.name);
        }
    }

    /// Removes what no job ended with: its server was killed, or the job was another's by then.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn sweep(&self, queue: &Queue) -> Result<()> {
        let names: Vec<String> = self.kept.lock().iter().map(|kept| kept.name.clone()).collect();
        for name in names {
            let Some((job_id, attempt)) = name.rsplit_once('.') else {
                continue;
            };
            let is_wanted = queue.find(job_id).await?.is_some_and(|job| {
                let is_latest = attempt.parse() == Ok(job.attempts);
                // The end of one that runs may be written in a moment.
                is_latest && (job.state.is_end() || job.worker.is_some())
            });
            if !is_wanted {
                self.kept.lock().retain(|kept| kept.name != name);
                self.remove(&name);
            }
        }
        Ok(())
    }

    fn remove(&self, name: &str) {
        let path = self.dir.join(name);
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            warn!(path = %path.display(), %error, "a submission could not be removed");
        }
    }
}

fn file_name(job_id: &str, attempt: u32) -> String {
    format!("{job_id}.{attempt}")
}

/// Files of a folder, the oldest first.
fn list(dir: &Path) -> io::Result<Vec<Kept>> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        match entry.file_name().into_string() {
            Ok(name) if meta.is_file() => kept.push(Kept {
                name,
                bytes: meta.len(),
                since: meta.modified()?,
            }),
            _ => warn!(path = %entry.path().display(), "this is no submission; it is left alone"),
        }
    }
    kept.sort_by_key(|kept| kept.since);
    Ok(kept)
}

fn take_over(source: &Path, target: &Path, since: SystemTime) -> Result<()> {
    let file = File::open(source).map_err(ServiceError::io("open", source))?;
    file.set_modified(since).map_err(ServiceError::io("write", source))?;
    file.sync_all().map_err(ServiceError::io("write", source))?;
    fs::rename(source, target).map_err(ServiceError::io("make", target))?;
    let parent = target.parent().unwrap_or(target);
    let folder = File::open(parent).map_err(ServiceError::io("open", parent))?;
    folder.sync_all().map_err(ServiceError::io("write", parent))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    async fn submissions(dir: &Path, time: Duration, total: u64) -> Submissions {
        let limits = KeepLimits { time, total };
        Submissions::open(dir.join("kept"), limits).await.unwrap()
    }

    async fn keep(submissions: &Submissions, dir: &Path, job_id: &str, bytes: u64) {
        let path = dir.join("submission.csv");
        fs::write(&path, vec![b'x'; usize::try_from(bytes).unwrap()]).unwrap();
        let lease = Lease {
            job_id: job_id.to_owned(),
            owner: "o".to_owned(),
            attempt: 1,
        };
        let sha256 = String::new();
        let collected = Collected { path, bytes, sha256 };
        submissions.keep(&lease, &collected).await.unwrap();
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = list(&dir.join("kept"))
            .unwrap()
            .into_iter()
            .map(|kept| kept.name)
            .collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn the_oldest_go_when_all_are_too_many_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let kept = submissions(dir.path(), Duration::from_secs(60), 100).await;
        for (job_id, bytes) in [("a", 50), ("b", 40), ("c", 30), ("d", 101)] {
            keep(&kept, dir.path(), job_id, bytes).await;
        }
        assert_eq!(names(dir.path()), ["b.1", "c.1"]);
        // Also those of an earlier process.
        let kept = submissions(dir.path(), Duration::from_secs(60), 100).await;
        keep(&kept, dir.path(), "e", 60).await;
        assert_eq!(names(dir.path()), ["c.1", "e.1"]);
    }

    #[tokio::test]
    async fn what_is_old_goes_and_nothing_is_kept_for_no_time() {
        let dir = tempfile::tempdir().unwrap();
        let kept = submissions(dir.path(), Duration::ZERO, 100).await;
        keep(&kept, dir.path(), "a", 1).await;
        assert_eq!(names(dir.path()), [""; 0]);
        let kept = submissions(dir.path(), Duration::from_secs(60), 100).await;
        keep(&kept, dir.path(), "b", 1).await;
        keep(&kept, dir.path(), "c", 1).await;
        let long_ago = SystemTime::now() - Duration::from_secs(61);
        let file = File::open(dir.path().join("kept/b.1")).unwrap();
        file.set_modified(long_ago).unwrap();
        let kept = submissions(dir.path(), Duration::from_secs(60), 100).await;
        kept.forget_old();
        assert_eq!(names(dir.path()), ["c.1"]);
    }
}
