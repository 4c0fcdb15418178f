//! Data on a worker, kept under the hash of its content: what is here is not fetched again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::spawn_blocking;

use super::error::{Fault, WorkerError};
use super::server::Server;
use crate::scheduler::{WorkDir, sha256_hex};
use crate::service::unpack_data;

/// The cache folder.
#[derive(Debug)]
pub(super) struct DataCache {
    data: PathBuf,
    work: PathBuf,
    /// One slot fetches what another waits for.
    fetching: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl DataCache {
    /// Opens a cache folder.
    pub(super) fn open(dir: &Path) -> Result<Self, WorkerError> {
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
            fetching: Mutex::default(),
        })
    }

    /// Folder for what comes and goes.
    pub(super) fn work_dir(&self) -> &Path {
        &self.work
    }

    /// The data of a job, which is fetched when it is not here.
    pub(super) async fn folder(&self, server: &Server, job_id: &str, hash: &str) -> Result<PathBuf, Fault> {
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hash {
            return Err(Fault::Nonsense(format!("'{hash}' is no hash")));
        }
        let target = self.data.join(hash);
        let turn = Arc::clone(self.fetching.lock().entry(hash.to_owned()).or_default());
        let _turn = turn.lock().await;
        if target.is_dir() {
            return Ok(target);
        }
        let local = |error: std::io::Error| Fault::Nonsense(format!("data cannot be kept: {error}"));
        let work = WorkDir::create(&self.work, hash).map_err(local)?;
        let (archive, folder) = (work.path().join("data.tar"), work.path().join("data"));
        if hash == sha256_hex(b"") {
            std::fs::create_dir(&folder).map_err(local)?;
        } else {
            server.data(job_id, hash, &archive).await?;
            let into = folder.clone();
            let unpacked = spawn_blocking(move || unpack_data(&archive, &into)).await;
            let unpacked = unpacked.map_err(|error| Fault::Nonsense(error.to_string()))?;
            let came = unpacked
                .map_err(|error| Fault::Nonsense(error.to_string()))?
                // It broke off, or the folder changed on the way.
                .map_err(|fault| Fault::Unreachable(format!("data did not come whole: {fault}")))?;
            if came != hash {
                return Err(Fault::Nonsense(format!(
                    "data with the hash {came} came instead of {hash}"
                )));
            }
        }
        match std::fs::rename(&folder, &target) {
            Err(_) if target.is_dir() => Ok(target),
            Err(error) => Err(local(error)),
            Ok(()) => Ok(target),
        }
    }
}
