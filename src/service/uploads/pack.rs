//! Data folders on their way to other machines, workers or job services: named by their content, sent as one archive, unpacked there as an
//! upload is here.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use axum::body::Bytes;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::unpack::{content_hash, unpack};
use super::{UploadFault, UploadLimits};
use crate::service::error::Result;

/// Limits of a folder that a server of ours sends: it has been let in there.
const NO_LIMITS: UploadLimits = UploadLimits {
    bytes: u64::MAX,
    files: u64::MAX,
    depth: u32::MAX,
    total: u64::MAX,
};
/// Parts of an archive that wait to be sent, and their size.
const PARTS: usize = 4;
const PART_BYTES: usize = 256 << 10;

/// One entry of a folder.
#[derive(Debug)]
struct Item {
    /// Where its content is; none for a folder.
    file: Option<PathBuf>,
    meta: Metadata,
}

/// Names folders by their content. What did not change since is not read again.
#[derive(Debug, Default)]
pub struct Packer {
    known: Mutex<HashMap<PathBuf, Known>>,
}

#[derive(Debug, Clone)]
struct Known {
    fingerprint: String,
    hash: String,
}

impl Packer {
    /// Hash of the content of a folder, as an upload of it would have.
    ///
    /// # Errors
    /// When it holds what cannot be sent; the text says what.
    pub async fn hash(&self, root: &Path) -> Result<Result<String, String>> {
        let known = self.known.lock().get(root).cloned();
        let folder = root.to_owned();
        let found = spawn_blocking(move || {
            let items = list(&folder)?;
            let fingerprint = fingerprint(&items);
            if let Some(known) = known.filter(|known| known.fingerprint == fingerprint) {
                return Ok(known);
            }
            let mut entries = BTreeMap::new();
            for (path, item) in &items {
                let hash = item.file.as_deref().map(hash_of).transpose()?;
                entries.insert(path.clone(), hash);
            }
            Ok(Known {
                hash: content_hash(&entries),
                fingerprint,
            })
        })
        .await?;
        Ok(found.map(|found: Known| {
            let hash = found.hash.clone();
            self.known.lock().insert(root.to_owned(), found);
            hash
        }))
    }

    /// Sends a folder as a tar file, part by part. A folder that cannot be read ends it early.
    pub fn archive(root: PathBuf) -> mpsc::Receiver<io::Result<Bytes>> {
        let (parts, received) = mpsc::channel(PARTS);
        spawn_blocking(move || {
            let out = BufWriter::with_capacity(PART_BYTES, Parts(parts.clone()));
            if let Err(error) = write_archive(&root, out) {
                tracing::warn!(folder = %root.display(), %error, "a data folder could not be sent");
                // The reader sees an archive without its end otherwise.
                let _ = parts.blocking_send(Err(error));
            }
        });
        received
    }
}

/// Unpacks a folder that a server sent into a new folder; gives the hash of its content.
///
/// # Errors
/// The outer error is a fault of this machine, the inner one of the archive.
pub fn unpack_data(archive: &Path, target: &Path) -> Result<Result<String, UploadFault>> {
    Ok(unpack(archive, target, NO_LIMITS)?.map(|unpacked| unpacked.hash))
}

/// Everything below a folder by its path. A link is followed to a file inside of the folder and nowhere else.
fn list(root: &Path) -> Result<BTreeMap<String, Item>, String> {
    let real = root.canonicalize().map_err(unreadable(root))?;
    let mut items = BTreeMap::new();
    let mut folders = vec![(real.clone(), String::new())];
    while let Some((folder, inside)) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(unreadable(&folder))? {
            let path = entry.map_err(unreadable(&folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.filter(|name| !name.chars().any(char::is_control));
            let Some(name) = name else {
                return Err(format!(
                    "the name of {} cannot be sent to another machine: it is not UTF-8, or holds a control character",
                    path.display()
                ));
            };
            let inside = match inside.as_str() {
                "" => name.to_owned(),
                inside => format!("{inside}/{name}"),
            };
            let target = path.canonicalize().map_err(unreadable(&path))?;
            let is_link = path.is_symlink();
            let meta = target.metadata().map_err(unreadable(&path))?;
            if !target.starts_with(&real) || (is_link && !meta.is_file()) {
                return Err(format!(
                    "{} is a link that is not followed on the way to another machine: only links to files of the same folder are",
                    path.display()
                ));
            }
            let file = if meta.is_dir() {
                folders.push((path, inside.clone()));
                None
            } else if meta.is_file() {
                Some(target)
            } else {
                return Err(format!(
                    "{} is neither a file nor a folder, so it cannot be sent to another machine",
                    path.display()
                ));
            };
            items.insert(inside, Item { file, meta });
        }
    }
    Ok(items)
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> String {
    move |error| format!("{} cannot be read: {error}", path.display())
}

/// What changes when a folder changes.
fn fingerprint(items: &BTreeMap<String, Item>) -> String {
    let mut hasher = Sha256::new();
    for (path, Item { meta, .. }) in items {
        let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
        let line = format!("{path} {} {} {} {times:?}\n", meta.len(), meta.dev(), meta.ino());
        hasher.update(line.as_bytes());
    }
    hex::encode(hasher.finalize())
}

fn hash_of(path: &Path) -> Result<String, String> {
    let mut file = File::open(path).map_err(unreadable(path))?;
    let mut hasher = Sha256::new();
    io::copy(&mut file, &mut hasher).map_err(unreadable(path))?;
    Ok(hex::encode(hasher.finalize()))
}

fn write_archive(root: &Path, out: impl Write) -> io::Result<()> {
    // First: an archive that is begun writes its end also when it is given up. The other side compares the hash of what arrived.
    let items = list(root).map_err(io::Error::other)?;
    let mut archive = Builder::new(out);
    for (path, item) in items {
        let mut header = Header::new_gnu();
        header.set_mtime(0);
        match item.file {
            Some(file) => {
                let file = File::open(file)?;
                let size = file.metadata()?.len();
                header.set_entry_type(EntryType::Regular);
                header.set_mode(0o644);
                header.set_size(size);
                archive.append_data(&mut header, path, file.take(size))?;
            }
            None => {
                header.set_entry_type(EntryType::Directory);
                header.set_mode(0o755);
                header.set_size(0);
                archive.append_data(&mut header, path, io::empty())?;
            }
        }
    }
    archive.into_inner()?.flush()
}

/// Sends what is written to it.
struct Parts(mpsc::Sender<io::Result<Bytes>>);

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = Bytes::copy_from_slice(bytes);
        let gone = |_| io::Error::other("the reader is gone");
        self.0.blocking_send(Ok(part)).map_err(gone)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("data");
        fs::create_dir_all(root.join("images/deep")).unwrap();
        fs::write(root.join("train.csv"), "id,y\n1,2\n").unwrap();
        fs::write(root.join("images/deep").join("x".repeat(150)), [0, 1, 2]).unwrap();
        fs::write(dir.path().join("answers.csv"), "secret").unwrap();
        symlink("train.csv", root.join("same.csv")).unwrap();
        dir
    }

    #[tokio::test]
    async fn a_folder_arrives_under_its_hash() {
        let dir = folder();
        let root = dir.path().join("data");
        let packer = Packer::default();
        let hash = packer.hash(&root).await.unwrap().unwrap();
        assert_eq!(packer.hash(&root).await.unwrap().unwrap(), hash);
        let (mut parts, mut bytes) = (Packer::archive(root.clone()), Vec::new());
        while let Some(part) = parts.recv().await {
            bytes.extend_from_slice(&part.unwrap());
        }
        let archive = dir.path().join("data.tar");
        fs::write(&archive, bytes).unwrap();
        let target = dir.path().join("there");
        assert_eq!(unpack_data(&archive, &target).unwrap().unwrap(), hash);
        assert_eq!(fs::read_to_string(target.join("same.csv")).unwrap(), "id,y\n1,2\n");
        assert_eq!(
            fs::read(target.join("images/deep").join("x".repeat(150)))
                .unwrap()
                .len(),
            3
        );
        fs::write(root.join("train.csv"), "id,y\n1,3\n").unwrap();
        assert_ne!(packer.hash(&root).await.unwrap().unwrap(), hash, "it changed");
    }

    #[tokio::test]
    async fn a_link_that_leads_out_is_not_followed() {
        let dir = folder();
        let root = dir.path().join("data");
        symlink("../answers.csv", root.join("hidden.csv")).unwrap();
        let reason = Packer::default().hash(&root).await.unwrap().unwrap_err();
        assert!(reason.contains("hidden.csv is a link"), "{reason}");
        let mut parts = Packer::archive(root);
        while let Some(part) = parts.recv().await {
            assert!(part.is_err(), "nothing of it is sent");
        }
    }
}
