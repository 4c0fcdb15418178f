//! Data folders that clients send: kept in the store under the hash of their content, so that the same folder is kept once.

mod incoming;
mod pack;
mod places;
mod unpack;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::task::spawn_blocking;
use tracing::warn;

pub use self::incoming::Incoming;
pub use self::pack::{Packer, unpack_data};
pub(crate) use self::places::{NoPlace, Place, PlaceLimits, Places};

use self::unpack::unpack;
use super::error::{Result, ServiceError};

/// What stands before the hash in the id of an upload.
pub const UPLOAD_PREFIX: &str = "sha256:";

/// Folder of an upload that programs see.
const DATA: &str = "data";
/// What is known of an upload, beside its folder.
const FACTS: &str = "upload.json";
/// What the names of unfinished uploads begin with.
const INCOMING: &str = ".incoming-";

/// Limits of uploads.
#[derive(Debug, Clone, Copy)]
pub struct UploadLimits {
    /// Bytes of one, packed and unpacked.
    pub bytes: u64,
    /// Files and folders of one.
    pub files: u64,
    /// Folders within folders of one.
    pub depth: u32,
    /// Bytes of all.
    pub total: u64,
}

/// Why an upload is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UploadFault {
    /// It is over a limit.
    #[error("{0}")]
    TooLarge(String),
    /// All uploads together would be over their limit.
    #[error("the uploads of this server may have {0} bytes together, and with this one they would have more")]
    Full(u64),
    /// It is no archive that is taken.
    #[error("{0}")]
    Invalid(String),
}

/// Facts of an upload, as kept beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Facts {
    bytes: u64,
    files: u64,
    /// Microseconds UTC.
    created_at: i64,
}

/// An upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// Hash of its content, hexadecimal.
    pub hash: String,
    /// Folder that programs see.
    pub data: PathBuf,
    /// Bytes of its files.
    pub bytes: u64,
    /// Its files.
    pub files: u64,
    /// When it was first sent, microseconds UTC.
    pub created_at: i64,
}

impl Upload {
    /// Its id.
    pub fn id(&self) -> String {
        format!("{UPLOAD_PREFIX}{}", self.hash)
    }
}

/// All uploads of a store.
#[derive(Debug)]
pub struct Uploads {
    dir: PathBuf,
    limits: UploadLimits,
    /// Bytes of all of them.
    used: Mutex<u64>,
    /// Held together by those who name uploads in new jobs, alone by who removes one.
    naming: RwLock<()>,
}

impl Uploads {
    /// Opens the uploads in a folder and removes what was left unfinished.
    ///
    /// # Errors
    /// When the folder cannot be used.
    pub async fn open(dir: PathBuf, limits: UploadLimits) -> Result<Self> {
        spawn_blocking(move || {
            fs::create_dir_all(&dir).map_err(ServiceError::io("make", &dir))?;
            let mut used = 0;
            for entry in fs::read_dir(&dir).map_err(ServiceError::io("read", &dir))? {
                let path = entry.map_err(ServiceError::io("read", &dir))?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if name.starts_with(INCOMING) {
                    incoming::sweep(&path);
                } else if let Ok(facts) = facts(&path) {
                    used += facts.bytes;
                } else {
                    warn!(path = %path.display(), "this is no upload; it is left alone");
                }
            }
            Ok(Self {
                dir,
                limits,
                used: Mutex::new(used),
                naming: RwLock::default(),
            })
        })
        .await?
    }

    /// Limits of uploads.
    pub fn limits(&self) -> UploadLimits {
        self.limits
    }

    /// A folder for the body of a new upload.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn incoming(&self, place: Place) -> Result<Incoming> {
        Incoming::create(&self.dir, place).await
    }

    /// Unpacks a body that is here and keeps it; one that was kept before stays as it is.
    ///
    /// # Errors
    /// The outer error is a fault of ours, the inner one of the upload. Either way nothing of it stays.
    pub async fn keep(&self, incoming: Incoming, now: i64) -> Result<Result<Upload, UploadFault>> {
        let limits = self.limits;
        let unpacked = spawn_blocking(move || {
            let data = incoming.path().join(DATA);
            unpack(&incoming.body(), &data, limits).map(|unpacked| unpacked.map(|unpacked| (incoming, unpacked)))
        })
        .await??;
        let (incoming, unpacked) = match unpacked {
            Ok(unpacked) => unpacked,
            Err(fault) => return Ok(Err(fault)),
        };
        if let Some(known) = self.find(&unpacked.hash).await? {
            return Ok(Ok(known));
        }
        {
            let mut used = self.used.lock();
            if *used + unpacked.bytes > limits.total {
                return Ok(Err(UploadFault::Full(limits.total)));
            }
            *used += unpacked.bytes;
        }
        let (target, hash) = (self.dir.join(&unpacked.hash), unpacked.hash);
        let facts = Facts {
            bytes: unpacked.bytes,
            files: unpacked.files,
            created_at: now,
        };
        let placed = spawn_blocking(move || place(incoming, &facts, &target)).await?;
        if !matches!(placed, Ok(true)) {
            *self.used.lock() -= unpacked.bytes;
        }
        placed?;
        match self.find(&hash).await? {
            Some(upload) => Ok(Ok(upload)),
            None => Err(ServiceError::Config(format!(
                "the upload {UPLOAD_PREFIX}{hash} is gone right after it was kept: something else removes files in {}",
                self.dir.display()
            ))),
        }
    }

    /// While this is held, no upload is removed.
    pub async fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.naming.read().await
    }

    /// While this is held, nobody else names an upload in a new job.
    pub async fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.naming.write().await
    }

    /// Removes an upload. Where that is broken off, the next start goes on with it.
    ///
    /// # Errors
    /// When its folder cannot be removed.
    pub async fn remove(&self, upload: &Upload) -> Result<()> {
        let path = self.dir.join(&upload.hash);
        let away = self.dir.join(format!("{INCOMING}{:016x}", rand::random::<u64>()));
        spawn_blocking(move || {
            fs::rename(&path, &away).map_err(ServiceError::io("remove", &path))?;
            fs::remove_dir_all(&away).map_err(ServiceError::io("remove", &away))
        })
        .await??;
        let mut used = self.used.lock();
        *used = used.saturating_sub(upload.bytes);
        Ok(())
    }

    /// The upload of a hash.
    ///
    /// # Errors
    /// When what is known of it cannot be read.
    pub async fn find(&self, hash: &str) -> Result<Option<Upload>> {
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_hash {
            return Ok(None);
        }
        let (path, hash) = (self.dir.join(hash), hash.to_owned());
        spawn_blocking(move || {
            if !path.is_dir() {
                return Ok(None);
            }
            let facts = facts(&path)?;
            Ok(Some(Upload {
                hash,
                data: path.join(DATA),
                bytes: facts.bytes,
                files: facts.files,
                created_at: facts.created_at,
            }))
        })
        .await?
    }
}

fn facts(path: &Path) -> Result<Facts> {
    let file = path.join(FACTS);
    let text = fs::read_to_string(&file).map_err(ServiceError::io("read", &file))?;
    serde_json::from_str(&text).map_err(|error| ServiceError::io("read", &file)(error.into()))
}

/// Gives an unpacked upload its name; false when another of the same content was faster. It is durable before it has the name.
fn place(incoming: Incoming, facts: &Facts, target: &Path) -> Result<bool> {
    let path = incoming.path();
    incoming.remove_body()?;
    let file = path.join(FACTS);
    let text = serde_json::json!(facts).to_string();
    fs::write(&file, text).map_err(ServiceError::io("write", &file))?;
    let folder = File::open(path).map_err(ServiceError::io("open", path))?;
    rustix::fs::syncfs(&folder).map_err(|error| ServiceError::io("write", path)(error.into()))?;
    match fs::rename(path, target) {
        Ok(()) => {
            incoming.forget();
            let parent = target.parent().unwrap_or(target);
            let folder = File::open(parent).map_err(ServiceError::io("open", parent))?;
            folder.sync_all().map_err(ServiceError::io("write", parent))?;
            Ok(true)
        }
        Err(_) if target.join(FACTS).is_file() => Ok(false),
        Err(error) => Err(ServiceError::io("make", target)(error)),
    }
}
