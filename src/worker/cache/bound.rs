//! Keeps the cache within its size: what was not used for longest goes first, what is in use stays.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;
use tracing::{info, warn};

use super::entry::take_away;
use crate::scheduler::WorkDir;

/// Removes folders over a size.
#[derive(Debug)]
pub(super) struct Bound {
    limit: u64,
    /// Bytes of folders, which never change.
    sizes: Mutex<HashMap<PathBuf, u64>>,
}

/// A folder of the cache.
struct Folder {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Bound {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            sizes: Mutex::default(),
        }
    }

    /// Removes folders until the rest is within the size, or all of it is in use. What is removed is moved to `work` first, so that a
    /// killed worker leaves no half of a folder.
    pub(super) fn enforce(&self, data: &Path, work: &Path) -> io::Result<()> {
        let mut folders = self.folders(data)?;
        let mut bytes: u64 = folders.iter().map(|folder| folder.bytes).sum();
        folders.sort_by_key(|folder| folder.used);
        for folder in folders {
            if bytes <= self.limit {
                return Ok(());
            }
            let away = WorkDir::create(work, "evicted")?;
            if take_away(&folder.path, &away.path().join("data"))? {
                info!(path = %folder.path.display(), bytes = folder.bytes, "data that was not used for long was removed");
                bytes -= folder.bytes;
            }
        }
        if bytes > self.limit {
            warn!(
                bytes,
                limit = self.limit,
                "the data of running jobs is more than --cache-size"
            );
        }
        Ok(())
    }

    fn folders(&self, data: &Path) -> io::Result<Vec<Folder>> {
        let mut sizes = self.sizes.lock();
        let (mut found, mut known) = (Vec::new(), HashMap::new());
        for entry in fs::read_dir(data)? {
            let path = entry?.path();
            // Another worker of this machine may remove one at any time.
            let Ok(used) = fs::metadata(&path).and_then(|data| data.modified()) else {
                continue;
            };
            let bytes = match sizes.get(&path) {
                Some(bytes) => *bytes,
                None => size(&path)?,
            };
            known.insert(path.clone(), bytes);
            found.push(Folder { path, bytes, used });
        }
        *sizes = known;
        Ok(found)
    }
}

/// Bytes of the files below a folder.
fn size(path: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let facts = match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                facts => facts?,
            };
            if facts.is_dir() {
                open.push(entry.path());
            } else {
                bytes += facts.len();
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::{File, FileTimes};
    use std::time::Duration;

    use super::super::entry::CachedFolder;
    use super::*;

    fn folder(data: &Path, name: &str, minutes_ago: u64) -> PathBuf {
        let path = data.join(name);
        fs::create_dir_all(path.join("deep")).unwrap();
        fs::write(path.join("deep/train.csv"), [0; 100]).unwrap();
        let used = SystemTime::now() - Duration::from_secs(60 * minutes_ago);
        let times = FileTimes::new().set_modified(used);
        File::open(&path).unwrap().set_times(times).unwrap();
        path
    }

    #[test]
    fn what_was_not_used_for_longest_goes_and_what_is_in_use_stays() {
        let place = tempfile::tempdir().unwrap();
        let (data, work) = (place.path().join("data"), place.path().join("work"));
        let [oldest, held, newer, newest] =
            [("a", 40), ("b", 50), ("c", 30), ("d", 20)].map(|(name, ago)| folder(&data, name, ago));
        let lock = CachedFolder::open(held.clone()).unwrap().unwrap();
        let old = SystemTime::now() - Duration::from_secs(3600);
        File::open(&held)
            .unwrap()
            .set_times(FileTimes::new().set_modified(old))
            .unwrap();
        let bound = Bound::new(250);
        bound.enforce(&data, &work).unwrap();
        let left: Vec<bool> = [&oldest, &held, &newer, &newest].map(|path| path.exists()).into();
        assert_eq!(left, [false, true, false, true]);
        assert_eq!(fs::read_dir(&work).unwrap().count(), 0);
        drop(lock);
        Bound::new(0).enforce(&data, &work).unwrap();
        assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
        assert!(CachedFolder::open(held).unwrap().is_none());
    }

    #[test]
    fn a_use_makes_a_folder_new() {
        let place = tempfile::tempdir().unwrap();
        let (data, work) = (place.path().join("data"), place.path().join("work"));
        let used = folder(&data, "used", 60);
        let other = folder(&data, "other", 30);
        drop(CachedFolder::open(used.clone()).unwrap().unwrap());
        Bound::new(100).enforce(&data, &work).unwrap();
        assert!(used.exists() && !other.exists());
    }
}
