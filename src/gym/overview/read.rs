//! Reading a bounded part of a public file.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

/// Bytes of one file that are read, after unpacking.
const MOST_OF_A_FILE: u64 = 64 << 20;
/// Bytes of all files that are read.
const MOST_OF_ALL: u64 = 512 << 20;
/// Bytes of a header.
pub(super) const HEADER: u64 = 256 << 10;

/// Reads files of one folder until it has read enough.
#[derive(Debug)]
pub(super) struct Reader {
    root: PathBuf,
    left: u64,
}

/// The beginning of a file, or all of it.
#[derive(Debug)]
pub(super) struct Part {
    /// The bytes, unpacked.
    pub bytes: Vec<u8>,
    /// It is the whole file.
    pub is_whole: bool,
}

impl Reader {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            left: MOST_OF_ALL,
        }
    }

    /// Opens a regular file; links are not followed, and what would block is not waited for.
    pub(super) fn open(&self, path: &str) -> Result<File, String> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(self.root.join(path))
            .map_err(|error| format!("not read: {error}"))?;
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(file),
            Ok(_) => Err("not read: no regular file".to_owned()),
            Err(error) => Err(format!("not read: {error}")),
        }
    }

    /// As much of a file as may be read. Files whose names end in `.gz` are unpacked.
    pub(super) fn part(&mut self, path: &str) -> Result<Part, String> {
        self.at_most(path, MOST_OF_A_FILE)
    }

    /// The first bytes of a file.
    pub(super) fn header(&mut self, path: &str) -> Result<Part, String> {
        self.at_most(path, HEADER)
    }

    fn at_most(&mut self, path: &str, most: u64) -> Result<Part, String> {
        let most = most.min(self.left);
        if most == 0 {
            return Err("not read: the files before it were large".to_owned());
        }
        let file = self.open(path)?;
        let mut bytes = Vec::new();
        let read = if path.ends_with(".gz") {
            MultiGzDecoder::new(file).take(most + 1).read_to_end(&mut bytes)
        } else {
            file.take(most + 1).read_to_end(&mut bytes)
        };
        read.map_err(|error| format!("not read: {error}"))?;
        let is_whole = bytes.len() as u64 <= most;
        bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        self.left -= bytes.len() as u64;
        Ok(Part { bytes, is_whole })
    }
}
