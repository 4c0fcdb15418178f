//! An upload that is being received. Its folder is locked while its process works on it, and goes with it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tokio::io::AsyncWriteExt;
use tracing::warn;

use super::{INCOMING, Place};
use crate::service::error::{Result, ServiceError};

/// A folder for one upload; it is removed when this is dropped.
#[derive(Debug)]
pub struct Incoming {
    path: PathBuf,
    file: Option<tokio::fs::File>,
    is_placed: bool,
    _lock: File,
    _place: Place,
}

impl Incoming {
    pub(super) async fn create(parent: &Path, place: Place) -> Result<Self> {
        let path = parent.join(format!("{INCOMING}{:016x}", rand::random::<u64>()));
        fs::create_dir(&path).map_err(ServiceError::io("make", &path))?;
        let lock = File::open(&path).map_err(ServiceError::io("open", &path))?;
        flock(&lock, FlockOperation::NonBlockingLockShared)
            .map_err(|error| ServiceError::io("lock", &path)(error.into()))?;
        let mut incoming = Self {
            path,
            file: None,
            is_placed: false,
            _lock: lock,
            _place: place,
        };
        let body = incoming.body();
        let file = tokio::fs::File::create(&body).await;
        incoming.file = Some(file.map_err(ServiceError::io("make", &body))?);
        Ok(incoming)
    }

    /// Adds a part of the body.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let body = self.body();
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(bytes).await.map_err(ServiceError::io("write", &body))
    }

    /// Says that the body is whole.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn end(&mut self) -> Result<()> {
        let body = self.body();
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        file.flush().await.map_err(ServiceError::io("write", &body))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn body(&self) -> PathBuf {
        self.path.join("body")
    }

    pub(super) fn remove_body(&self) -> Result<()> {
        let body = self.body();
        fs::remove_file(&body).map_err(ServiceError::io("remove", &body))
    }

    /// The folder has another name by now and stays.
    pub(super) fn forget(mut self) {
        self.is_placed = true;
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.is_placed
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            warn!(path = %self.path.display(), %error, "an unfinished upload is left; the next start removes it");
        }
    }
}

/// Removes what a dead process has left.
pub(super) fn sweep(path: &Path) {
    let is_free = File::open(path).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok());
    if is_free && let Err(error) = fs::remove_dir_all(path) {
        warn!(path = %path.display(), %error, "an unfinished upload could not be removed");
    }
}
