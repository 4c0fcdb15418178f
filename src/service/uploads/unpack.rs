//! Unpacking an archive that a stranger made. Every entry is looked at before anything of it is written: regular files and folders,
//! plain names, and no more of anything than allowed. Names and types are read from the headers themselves, never left to a library
//! that follows links.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};
use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::{UploadFault, UploadLimits};
use crate::service::error::{Result, ServiceError};

/// Most bytes of a header that extends another.
const EXTENSION_BYTES: u64 = 64 << 10;
/// Most bytes of one name.
const NAME_BYTES: usize = 255;
/// Most bytes of a path.
const PATH_BYTES: usize = 2048;
/// What an archive may have beside its files: headers, padding.
const HEADER_BYTES: u64 = 4096;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// An archive that was unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unpacked {
    /// Hash of paths and contents; times, owners and the order in the archive do not matter.
    pub(super) hash: String,
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// Unpacks an archive into a new folder.
pub(super) fn unpack(body: &Path, target: &Path, limits: UploadLimits) -> Result<Result<Unpacked, UploadFault>> {
    let mut file = File::open(body).map_err(ServiceError::io("open", body))?;
    let mut start = [0; 2];
    let is_gzip = file.read_exact(&mut start).is_ok() && start == GZIP;
    let file = File::open(body).map_err(ServiceError::io("open", body))?;
    // A bomb ends here, whatever its headers say.
    let most = limits
        .bytes
        .saturating_add(limits.files.saturating_add(1).saturating_mul(HEADER_BYTES));
    let archive: Box<dyn Read> = match is_gzip {
        true => Box::new(MultiGzDecoder::new(BufReader::new(file)).take(most)),
        false => Box::new(BufReader::new(file).take(most)),
    };
    make_folder(target)?;
    let mut unpacking = Unpacking {
        target,
        limits,
        bytes: 0,
        entries: BTreeMap::new(),
    };
    match unpacking.all(archive) {
        Ok(()) => Ok(Ok(unpacking.finish())),
        Err(Stop::Refused(fault)) => Ok(Err(fault)),
        Err(Stop::Broken(error)) => Err(error),
    }
}

/// Why unpacking stops.
enum Stop {
    Refused(UploadFault),
    Broken(ServiceError),
}

impl From<ServiceError> for Stop {
    fn from(error: ServiceError) -> Self {
        Self::Broken(error)
    }
}

fn invalid(reason: impl Into<String>) -> Stop {
    Stop::Refused(UploadFault::Invalid(reason.into()))
}

fn unreadable(error: io::Error) -> Stop {
    invalid(format!(
        "the archive cannot be read: {error}. Send a tar file, plain or packed with gzip"
    ))
}

struct Unpacking<'a> {
    target: &'a Path,
    limits: UploadLimits,
    bytes: u64,
    /// Hash of each file by path; none for folders.
    entries: BTreeMap<String, Option<String>>,
}

impl Unpacking<'_> {
    fn all(&mut self, archive: impl Read) -> Result<(), Stop> {
        let mut archive = Archive::new(archive);
        // A name that a header of its own gives to the entry after it.
        let mut long_name: Option<Vec<u8>> = None;
        for entry in archive.entries().map_err(unreadable)?.raw(true) {
            let mut entry = entry.map_err(unreadable)?;
            match entry.header().entry_type() {
                EntryType::GNULongName => {
                    let mut name = extension(&mut entry)?;
                    while name.last() == Some(&0) {
                        name.pop();
                    }
                    long_name = Some(name);
                }
                EntryType::XHeader => {
                    if let Some(name) = name_of_extension(&extension(&mut entry)?)? {
                        long_name = Some(name);
                    }
                }
                EntryType::XGlobalHeader => {
                    extension(&mut entry)?;
                }
                _ => {
                    let name = long_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
                    self.one(&mut entry, &name)?;
                }
            }
        }
        if self.entries.is_empty() {
            return Err(invalid("the archive is empty: pack at least one file"));
        }
        Ok(())
    }

    fn one(&mut self, entry: &mut Entry<'_, impl Read>, name: &[u8]) -> Result<(), Stop> {
        let path = self.plain_path(name)?;
        let kind = entry.header().entry_type();
        let is_folder = match kind {
            EntryType::Directory => true,
            EntryType::Regular => name.ends_with(b"/"),
            other => {
                return Err(invalid(format!(
                    "'{}' is {}: only regular files and folders are taken",
                    shown(name),
                    in_words(other)
                )));
            }
        };
        // The root of the archive itself.
        if path.is_empty() {
            return if is_folder {
                Ok(())
            } else {
                Err(invalid("a file has no name"))
            };
        }
        for (end, _) in path.match_indices('/') {
            self.add_folder(&path[..end])?;
        }
        if is_folder {
            return self.add_folder(&path);
        }
        let size = entry.size();
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > self.limits.bytes {
            return Err(Stop::Refused(UploadFault::TooLarge(format!(
                "the files of the archive have more than {} bytes together",
                self.limits.bytes
            ))));
        }
        self.count()?;
        if self.entries.contains_key(&path) {
            return Err(invalid(format!("'{path}' is in the archive twice")));
        }
        let hash = write_file(entry, &self.target.join(&path), size, &path)?;
        self.entries.insert(path, Some(hash));
        Ok(())
    }

    fn count(&self) -> Result<(), Stop> {
        if self.entries.len() as u64 >= self.limits.files {
            return Err(Stop::Refused(UploadFault::TooLarge(format!(
                "the archive has more than {} files and folders",
                self.limits.files
            ))));
        }
        Ok(())
    }

    fn add_folder(&mut self, path: &str) -> Result<(), Stop> {
        match self.entries.get(path) {
            Some(None) => return Ok(()),
            Some(Some(_)) => return Err(invalid(format!("'{path}' is both a file and a folder"))),
            None => {}
        }
        self.count()?;
        make_folder(&self.target.join(path))?;
        self.entries.insert(path.to_owned(), None);
        Ok(())
    }

    /// A path below the target without anything that leads elsewhere.
    fn plain_path(&self, name: &[u8]) -> Result<String, Stop> {
        let text = std::str::from_utf8(name).map_err(|_| invalid(format!("'{}' is not UTF-8", shown(name))))?;
        if text.len() > PATH_BYTES {
            return Err(invalid(format!("a path has more than {PATH_BYTES} bytes")));
        }
        if text.chars().any(char::is_control) {
            return Err(invalid(format!("'{}' holds a control character", shown(name))));
        }
        if text.starts_with('/') {
            return Err(invalid(format!("'{text}' is an absolute path")));
        }
        let mut parts = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => return Err(invalid(format!("'{text}' leads out of the folder"))),
                part if part.len() > NAME_BYTES => {
                    return Err(invalid(format!("a name in '{text}' has more than {NAME_BYTES} bytes")));
                }
                part => parts.push(part),
            }
        }
        if parts.len() > self.limits.depth as usize + 1 {
            return Err(Stop::Refused(UploadFault::TooLarge(format!(
                "'{text}' lies deeper than {} folders",
                self.limits.depth
            ))));
        }
        Ok(parts.join("/"))
    }

    fn finish(self) -> Unpacked {
        Unpacked {
            hash: content_hash(&self.entries),
            bytes: self.bytes,
            files: self.entries.values().flatten().count() as u64,
        }
    }
}

/// Hash of a folder: of the hash of each file by path, none for folders.
pub(super) fn content_hash(entries: &BTreeMap<String, Option<String>>) -> String {
    let mut hasher = Sha256::new();
    for (path, hash) in entries {
        // A path holds no control characters, so lines do not run into each other.
        let line = format!("{} {path}\n", hash.as_deref().unwrap_or("folder"));
        hasher.update(line.as_bytes());
    }
    hex::encode(hasher.finalize())
}

/// The content of a header that extends another.
fn extension(entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>, Stop> {
    if entry.size() > EXTENSION_BYTES {
        return Err(invalid(format!(
            "a header of the archive has more than {EXTENSION_BYTES} bytes"
        )));
    }
    let mut content = Vec::new();
    entry.read_to_end(&mut content).map_err(unreadable)?;
    Ok(content)
}

/// The name that an extended header gives. Sizes and sparse files are refused: they would change what the next entry is.
fn name_of_extension(content: &[u8]) -> Result<Option<Vec<u8>>, Stop> {
    let mut name = None;
    for pair in PaxExtensions::new(content) {
        let pair = pair.map_err(unreadable)?;
        match pair.key_bytes() {
            b"path" => name = Some(pair.value_bytes().to_owned()),
            b"size" => return Err(invalid("a file of the archive is too large for its header")),
            key if key.starts_with(b"GNU.sparse") => return Err(invalid("the archive has sparse files")),
            _ => {}
        }
    }
    Ok(name)
}

fn write_file(entry: &mut Entry<'_, impl Read>, target: &Path, size: u64, path: &str) -> Result<String, Stop> {
    let mut file = File::create_new(target).map_err(ServiceError::io("make", target))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut left = size;
    while left > 0 {
        let n = entry.read(&mut buffer).map_err(unreadable)?;
        if n == 0 {
            return Err(invalid(format!("the archive ends within '{path}'")));
        }
        hasher.update(&buffer[..n]);
        file.write_all(&buffer[..n])
            .map_err(ServiceError::io("write", target))?;
        left = left.saturating_sub(n as u64);
    }
    file.set_permissions(Permissions::from_mode(0o644))
        .map_err(ServiceError::io("write", target))?;
    Ok(hex::encode(hasher.finalize()))
}

fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir(path).map_err(ServiceError::io("make", path))?;
    fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(ServiceError::io("write", path))
}

fn shown(name: &[u8]) -> String {
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(&name[..name.len().min(MOST)]).into_owned();
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

fn in_words(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Link => "a hard link",
        EntryType::Symlink => "a symbolic link",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a pipe",
        EntryType::GNUSparse => "a sparse file",
        _ => "of a special kind",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LIMITS: UploadLimits = UploadLimits {
        bytes: 1 << 20,
        files: 20,
        depth: 3,
        total: 1 << 30,
    };

    fn header(kind: EntryType, name: &[u8], size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o644);
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_cksum();
        header
    }

    fn pack(entries: &[(EntryType, &[u8], &[u8])]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (kind, name, content) in entries {
            archive
                .append(&header(*kind, name, content.len() as u64), *content)
                .unwrap();
        }
        archive.into_inner().unwrap()
    }

    fn unpacked(bytes: &[u8]) -> (tempfile::TempDir, Result<Unpacked, UploadFault>) {
        let folder = tempfile::tempdir().unwrap();
        let body = folder.path().join("body");
        fs::write(&body, bytes).unwrap();
        let result = unpack(&body, &folder.path().join("data"), LIMITS).unwrap();
        (folder, result)
    }

    fn refused(entries: &[(EntryType, &[u8], &[u8])]) -> String {
        unpacked(&pack(entries)).1.unwrap_err().to_string()
    }

    #[test]
    fn files_and_folders_are_taken_and_hashed_by_content() {
        let file = EntryType::Regular;
        let one = pack(&[(file, b"./a/train.csv", b"1"), (file, b"b.csv", b"2")]);
        let other = pack(&[
            (file, b"b.csv", b"2"),
            (EntryType::Directory, b"a/", b""),
            (file, b"a/train.csv", b"1"),
        ]);
        let (folder, first) = unpacked(&one);
        let first = first.unwrap();
        assert_eq!((first.bytes, first.files), (2, 2));
        assert_eq!(first, unpacked(&other).1.unwrap());
        assert_eq!(fs::read(folder.path().join("data/a/train.csv")).unwrap(), b"1");
        assert_ne!(first.hash, unpacked(&pack(&[(file, b"b.csv", b"2")])).1.unwrap().hash);
    }

    #[test]
    fn whatever_leads_elsewhere_is_refused() {
        let file = EntryType::Regular;
        for (kind, name, part) in [
            (file, &b"../x"[..], "leads out"),
            (file, b"a/../../x", "leads out"),
            (file, b"/etc/passwd", "absolute"),
            (EntryType::Symlink, b"link", "a symbolic link"),
            (EntryType::Link, b"link", "a hard link"),
            (EntryType::Char, b"null", "a device"),
            (EntryType::Block, b"disk", "a device"),
            (EntryType::Fifo, b"pipe", "a pipe"),
            (EntryType::GNUSparse, b"sparse", "a sparse file"),
            (EntryType::Continuous, b"x", "special"),
            (file, b"a\nb", "control character"),
            (file, b"\xff\xfe", "not UTF-8"),
            (file, b"a/b/c/d/e/f", "deeper"),
        ] {
            let reason = refused(&[(kind, name, b"")]);
            assert!(reason.contains(part), "{reason}");
        }
    }

    #[test]
    fn names_in_headers_of_their_own_are_checked_too() {
        let mut archive = pack(&[(EntryType::GNULongName, b"././@LongLink", b"../../evil\0")]);
        archive.truncate(archive.len() - 1024);
        archive.extend(pack(&[(EntryType::Regular, b"good", b"1")]));
        assert!(unpacked(&archive).1.unwrap_err().to_string().contains("leads out"));

        let mut archive = pack(&[(EntryType::XHeader, b"pax", b"19 path=../../evil\n")]);
        archive.truncate(archive.len() - 1024);
        archive.extend(pack(&[(EntryType::Regular, b"good", b"1")]));
        assert!(unpacked(&archive).1.unwrap_err().to_string().contains("leads out"));
    }

    #[test]
    fn a_nul_in_a_long_name_is_refused() {
        let mut archive = pack(&[(EntryType::GNULongName, b"././@LongLink", b"a\0b\0")]);
        archive.truncate(archive.len() - 1024);
        archive.extend(pack(&[(EntryType::Regular, b"good", b"1")]));
        assert!(
            unpacked(&archive)
                .1
                .unwrap_err()
                .to_string()
                .contains("control character")
        );
    }

    #[test]
    fn too_much_of_anything_is_refused() {
        let file = EntryType::Regular;
        let names: Vec<String> = (0..30).map(|number| format!("f{number}")).collect();
        let many: Vec<(EntryType, &[u8], &[u8])> = names.iter().map(|name| (file, name.as_bytes(), &b""[..])).collect();
        assert!(refused(&many).contains("more than 20 files"));
        let large = vec![0; 600 << 10];
        assert!(refused(&[(file, b"a", &large), (file, b"b", &large)]).contains("more than 1048576 bytes"));
        assert!(refused(&[(file, b"a", b"1"), (file, b"a", b"2")]).contains("twice"));
        assert!(refused(&[(file, b"a", b"1"), (file, b"a/b", b"2")]).contains("both a file and a folder"));
        assert!(refused(&[]).contains("empty"));
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        // A header that says there is little, and a stream that does not end.
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed
            .write_all(header(EntryType::Regular, b"bomb", 8 << 30).as_bytes())
            .unwrap();
        for _ in 0..200 {
            packed.write_all(&vec![0; 1 << 20]).unwrap();
        }
        let (folder, result) = unpacked(&packed.finish().unwrap());
        assert!(matches!(result, Err(UploadFault::TooLarge(_))));
        assert!(!folder.path().join("data/bomb").exists());
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        for bytes in [
            &b"no archive at all, but text that is long enough to be a header"[..],
            b"",
            &[0x1f, 0x8b, 1, 2, 3],
        ] {
            assert!(matches!(unpacked(bytes).1, Err(UploadFault::Invalid(_))));
        }
        let whole = pack(&[(EntryType::Regular, b"a", &[7; 5000])]);
        assert!(matches!(unpacked(&whole[..2000]).1, Err(UploadFault::Invalid(_))));
    }
}
