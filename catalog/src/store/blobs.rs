//! Blobs: large texts and bytes, named by the SHA-256 of their content.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::layout::write_durably;
use super::{Inner, Store};
use crate::error::{Result, StoreError};

const LEVEL: i32 = 3;

impl Store {
    /// Keeps bytes and returns their hash; bytes that are kept already are not written again. Durable when it returns.
    pub async fn put_blob(&self, bytes: impl Into<Vec<u8>>) -> Result<String> {
        self.inner.writer()?;
        let (store, bytes) = (self.clone(), bytes.into());
        spawn_blocking(move || store.inner.put_blob(&bytes)).await?
    }

    /// The bytes of a blob, checked against their hash. A damaged blob is an error and noted in `system.problems`.
    pub async fn get_blob(&self, hash: &str) -> Result<Vec<u8>> {
        let (store, name) = (self.clone(), hash.to_owned());
        let outcome = spawn_blocking(move || store.inner.get_blob(&name)).await?;
        if let Err(error @ StoreError::Corrupt { .. }) = &outcome {
            self.note_problem("blob", hash, &error.to_string()).await;
        }
        outcome
    }
}

impl Inner {
    fn blob_path(&self, hash: &str) -> Result<PathBuf> {
        let plain = hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        match hash.get(..2) {
            Some(folder) if plain => Ok(self.layout.blobs().join(folder).join(format!("{hash}.zst"))),
            _ => Err(StoreError::NoBlob { hash: hash.into() }),
        }
    }

    fn put_blob(&self, bytes: &[u8]) -> Result<String> {
        let hash = content_hash(bytes);
        let path = self.blob_path(&hash)?;
        if self.get_blob(&hash).is_ok() {
            return Ok(hash);
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
            fs::create_dir_all(folder).map_err(StoreError::io(folder))?;
            super::layout::sync_folder(&self.layout.blobs())?;
        }
        let packed = zstd::bulk::compress(bytes, LEVEL).map_err(StoreError::io(&path))?;
        write_durably(&path, &packed)?;
        Ok(hash)
    }

    fn get_blob(&self, hash: &str) -> Result<Vec<u8>> {
        let path = self.blob_path(hash)?;
        let packed = match fs::read(&path) {
            Ok(packed) => packed,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(StoreError::NoBlob { hash: hash.into() }),
            Err(e) => return Err(StoreError::io(path)(e)),
        };
        let corrupt = |reason: String| StoreError::Corrupt {
            subject: path.display().to_string(),
            reason,
        };
        let mut bytes = Vec::new();
        zstd::stream::Decoder::new(packed.as_slice())
            .and_then(|mut decoder| decoder.read_to_end(&mut bytes))
            .map_err(|e| corrupt(e.to_string()))?;
        match content_hash(&bytes) == hash {
            true => Ok(bytes),
            false => Err(corrupt("its content does not match its name".into())),
        }
    }
}

/// Lower-case hexadecimal SHA-256.
pub(crate) fn content_hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
