//! The store's directory: its files, the marker `store.toml`, and durable writes.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Result, StoreError};

/// Paths inside a store's directory.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    dir: PathBuf,
}

impl Layout {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn marker(&self) -> PathBuf {
        self.dir.join("store.toml")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.dir.join("clade.sqlite")
    }

    pub(crate) fn tables(&self) -> PathBuf {
        self.dir.join("tables")
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.dir.join("blobs")
    }

    pub(crate) fn maintenance_lock(&self) -> PathBuf {
        self.dir.join("maintenance.lock")
    }

    /// Makes the directory and its folders.
    pub(crate) fn create_folders(&self) -> Result<()> {
        for folder in [
            self.dir.clone(),
            self.tables(),
            self.blobs(),
            self.dir.join("tasks"),
            self.dir.join("models"),
        ] {
            fs::create_dir_all(&folder).map_err(StoreError::io(&folder))?;
        }
        Ok(())
    }
}

/// What `store.toml` says. It is written last when a store is created: a directory without it is no store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Marker {
    /// Format of the store.
    pub(crate) format: i64,
    /// Id of the store.
    pub(crate) id: String,
    /// When it was created, RFC 3339.
    pub(crate) created_at: String,
    /// Address of the cold tier when it is not in the directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cold: Option<String>,
}

impl Marker {
    pub(crate) fn read(layout: &Layout) -> Result<Self> {
        let path = layout.marker();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e)
                if matches!(
                    e.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                return Err(StoreError::NotFound {
                    dir: layout.dir().to_owned(),
                });
            }
            Err(e) => return Err(StoreError::io(path)(e)),
        };
        toml::from_str(&text).map_err(|e| StoreError::Corrupt {
            subject: path.display().to_string(),
            reason: e.to_string(),
        })
    }

    /// Writes the marker of a new store; an error when another process was faster.
    pub(crate) fn create(&self, layout: &Layout) -> Result<()> {
        let candidate = layout
            .marker()
            .with_extension(format!("new-{}", uuid::Uuid::now_v7().simple()));
        write_durably(&candidate, self.text(layout)?.as_bytes())?;
        // Unlike a rename, a link does not replace what is there.
        let linked = fs::hard_link(&candidate, layout.marker());
        fs::remove_file(&candidate).map_err(StoreError::io(&candidate))?;
        match linked {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(StoreError::AlreadyExists {
                dir: layout.dir().to_owned(),
            }),
            linked => linked.map_err(StoreError::io(layout.marker())),
        }?;
        sync_folder(layout.dir())
    }

    /// Replaces the marker.
    pub(crate) fn write(&self, layout: &Layout) -> Result<()> {
        write_durably(&layout.marker(), self.text(layout)?.as_bytes())
    }

    fn text(&self, layout: &Layout) -> Result<String> {
        toml::to_string(self).map_err(|e| StoreError::Corrupt {
            subject: layout.marker().display().to_string(),
            reason: e.to_string(),
        })
    }
}

/// Writes a file so that after a crash it is whole or not there: temporary file, fsync, rename, fsync of the folder.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = path.with_extension(format!("tmp-{}", uuid::Uuid::now_v7().simple()));
    let written = File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // The write failed already; a leftover temporary file is harmless.
        let _ = fs::remove_file(&temporary);
        return Err(StoreError::io(path)(error));
    }
    path.parent().map_or(Ok(()), sync_folder)
}

/// Makes renames and new files in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)
        .and_then(|file| file.sync_all())
        .map_err(StoreError::io(folder))
}
