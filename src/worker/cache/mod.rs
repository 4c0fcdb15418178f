//! Data on a worker, kept under the hash of its content: what is here is not fetched again. Workers of one machine may share it.

mod bound;
mod entry;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::spawn_blocking;

use self::bound::Bound;
pub(super) use self::entry::CachedFolder;
use super::error::{Fault, WorkerError};
use super::server::Server;
use crate::scheduler::{WorkDir, sha256_hex};
use crate::service::unpack_data;
use crate::turns::Turns;

/// The cache folder.
#[derive(Debug)]
pub(super) struct DataCache {
    data: PathBuf,
    work: PathBuf,
    bound: Arc<Bound>,
    /// One slot fetches what another waits for.
    fetching: Turns<String>,
}

impl DataCache {
    /// Opens a cache folder that may hold so many bytes.
    pub(super) fn open(dir: &Path, limit: u64) -> Result<Self, WorkerError> {
        let (data, work) = (dir.join("data"), dir.join("work"));
        for path in [&data, &work] {
            std::fs::create_dir_all(path).map_err(|source| WorkerError::Io {
                action: "make",
                path: path.clone(),
                source,
            })?;
        }
        Ok(Self {
            data,
            work,
            bound: Arc::new(Bound::new(limit)),
            fetching: Turns::default(),
        })
    }

    /// Folder for what comes and goes.
    pub(super) fn work_dir(&self) -> &Path {
        &self.work
    }

    /// The data of a job, which is fetched when it is not here.
    pub(super) async fn folder(&self, server: &Server, job_id: &str, hash: &str) -> Result<CachedFolder, Fault> {
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hash {
            return Err(Fault::Nonsense(format!("'{hash}' is no hash")));
        }
        let _turn = self.fetching.take(hash.to_owned()).await;
        // Another worker of this machine may remove what was just fetched.
        loop {
            let target = self.data.join(hash);
            if let Some(folder) = blocking(move || CachedFolder::open(target)).await? {
                return Ok(folder);
            }
            self.fetch(server, job_id, hash).await?;
            self.make_room(hash).await?;
        }
    }

    async fn fetch(&self, server: &Server, job_id: &str, hash: &str) -> Result<(), Fault> {
        let target = self.data.join(hash);
        let work = WorkDir::create(&self.work, hash).map_err(not_kept)?;
        let (archive, folder) = (work.path().join("data.tar"), work.path().join("data"));
        if hash == sha256_hex(b"") {
            std::fs::create_dir(&folder).map_err(not_kept)?;
        } else {
            server.data(job_id, hash, &archive).await?;
            let into = folder.clone();
            let unpacked = spawn_blocking(move || unpack_data(&archive, &into)).await;
            let unpacked = unpacked.map_err(|error| Fault::Local(error.to_string()))?;
            let came = unpacked
                .map_err(|error| Fault::Local(error.to_string()))?
                // It broke off, or the folder changed on the way.
                .map_err(|fault| Fault::Unreachable(format!("data did not come whole: {fault}")))?;
            if came != hash {
                return Err(Fault::Nonsense(format!(
                    "data with the hash {came} came instead of {hash}"
                )));
            }
        }
        match std::fs::rename(&folder, &target) {
            Err(_) if target.is_dir() => Ok(()),
            Err(error) => Err(not_kept(error)),
            Ok(()) => Ok(()),
        }
    }

    /// Removes old data, and none of what was just fetched.
    async fn make_room(&self, fetched: &str) -> Result<(), Fault> {
        let (bound, data, work) = (Arc::clone(&self.bound), self.data.clone(), self.work.clone());
        let fetched = data.join(fetched);
        blocking(move || {
            let _held = CachedFolder::open(fetched)?;
            bound.enforce(&data, &work)
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(call: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, Fault> {
    let done = spawn_blocking(call).await;
    done.map_err(|error| Fault::Local(error.to_string()))?.map_err(not_kept)
}

fn not_kept(error: io::Error) -> Fault {
    Fault::Local(format!("data cannot be kept in the folder of --cache: {error}"))
}
