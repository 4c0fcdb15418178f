//! A job that a worker on another machine has: what the server keeps of it, and its submission as it comes.

use std::io::SeekFrom;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sha2::{Digest, Sha256};
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use super::refusal::Refusal;
use super::wire::Assignment;
use crate::sandbox::{Collected, Limits};
use crate::scheduler::WorkDir;
use crate::service::error::ServiceError;
use crate::service::queue::{Claim, Output};
use crate::service::run::{Found, LivePlace, environment};

/// A job that a worker has.
#[derive(Debug)]
pub(super) struct HeldJob {
    pub(super) claim: Claim,
    pub(super) found: Found,
    /// Hash of its data.
    pub(super) data: String,
    pub(super) metric_hash: Option<String>,
    pub(super) limits: Limits,
    /// Its output so far, and the wish to end it.
    pub(super) live: LivePlace,
    /// Folder of its submission.
    pub(super) work: WorkDir,
    /// When the worker got it.
    pub(super) since: Instant,
    /// One request at a time writes the submission.
    pub(super) writing: tokio::sync::Mutex<()>,
}

impl HeldJob {
    /// What the worker gets: nothing of the metric, the answers and the user.
    pub(super) fn assignment(&self) -> Assignment {
        Assignment {
            job_id: self.claim.lease.job_id.clone(),
            attempt: self.claim.lease.attempt,
            code: self.claim.code.clone(),
            data: self.data.clone(),
            environment: environment(&self.claim),
            limits: self.limits.clone(),
            output_name: self.found.output.name.clone(),
            output_is_folder: self.found.output.is_folder,
        }
    }

    /// Where its submission lies; the name tells the evaluator how to read it.
    fn submission_path(&self) -> PathBuf {
        let Output { name, is_folder } = &self.found.output;
        let end = if *is_folder { ".tar" } else { "" };
        self.work.path().join(format!("{name}{end}"))
    }

    /// Adds a part of the submission at its place; a part that comes again takes the place of what came before.
    pub(super) async fn write_submission(&self, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let _writing = self.writing.lock().await;
        let path = self.submission_path();
        if offset.saturating_add(bytes.len() as u64) > self.limits.submission_bytes {
            return Err(Refusal::Submission(format!(
                "it has more than {} bytes",
                self.limits.submission_bytes
            )));
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .await
            .map_err(ServiceError::io("open", &path))?;
        let length = file.metadata().await.map_err(ServiceError::io("read", &path))?.len();
        if offset > length {
            return Err(Refusal::Submission(format!(
                "the part at {offset} came before what lies between it and {length}"
            )));
        }
        let write = async {
            file.set_len(offset).await?;
            file.seek(SeekFrom::Start(offset)).await?;
            file.write_all(bytes).await?;
            file.flush().await
        };
        Ok(write.await.map_err(ServiceError::io("write", &path))?)
    }

    /// The submission as it lies here, if it is what the worker says of it.
    pub(super) async fn check_submission(&self, said: &Collected) -> Result<Collected, Refusal> {
        let _writing = self.writing.lock().await;
        let path = self.submission_path();
        let (bytes, sha256) = digest(&path).await.map_err(ServiceError::io("read", &path))?;
        if bytes != said.bytes || sha256 != said.sha256 {
            return Err(Refusal::Submission(format!(
                "{bytes} bytes with the hash {sha256} came, not {} with {}",
                said.bytes, said.sha256
            )));
        }
        Ok(Collected { path, bytes, sha256 })
    }
}

/// Size and SHA-256 of a file; one that is not there is empty.
async fn digest(path: &Path) -> std::io::Result<(u64, String)> {
    let mut hasher = Sha256::new();
    let mut bytes = 0;
    match File::open(path).await {
        Ok(mut file) => {
            let mut buffer = vec![0; 256 << 10];
            loop {
                let n = file.read(&mut buffer).await?;
                if n == 0 {
                    break;
                }
                bytes += n as u64;
                hasher.update(&buffer[..n]);
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok((bytes, hex::encode(hasher.finalize())))
}
