//! Takes a folder of files out of a directory that a hostile program has filled, as one archive (ustar).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{Dir, FileType, fstat};
use sha2::{Digest, Sha256};

use super::collect::{check_file, open_beneath};
use super::outcome::Collected;

/// Folders inside folders.
const MAX_DEPTH: usize = 16;
/// Files of one archive.
const MAX_FILES: usize = 20_000;
/// Bytes that an archive is made of.
const BLOCK: usize = 512;
/// Longest last part and longest part before it of a path in an archive.
const NAME_BYTES: usize = 100;
const PREFIX_BYTES: usize = 155;

/// Writes the files below the folder `name` of the directory `dir` into an archive at `target`, in the order of their names. The
/// program must be dead: then nothing can change between the checks and the copy. `Err` holds the reason why there is no
/// acceptable submission.
pub(crate) fn collect_folder(dir: impl AsFd, name: &str, limit: u64, target: &Path) -> Result<Collected, String> {
    let folder = open_beneath(dir, name)?;
    let stat = fstat(&folder).map_err(|e| format!("{name} cannot be examined: {e}"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(format!("{name} is no folder"));
    }
    let out = create(target).map_err(|e| format!("{name} cannot be copied: {e}"))?;
    let mut archive = Archive {
        out,
        hash: Sha256::new(),
        bytes: 0,
        files: 0,
        left: limit,
        limit,
    };
    archive.folder(folder, name, "", 0)?;
    if archive.files == 0 {
        return Err(format!("the program wrote no file below {name}"));
    }
    archive
        .write(&[0; 2 * BLOCK])
        .map_err(|e| format!("{name} cannot be copied: {e}"))?;
    let sha256 = hex::encode(archive.hash.finalize());
    Ok(Collected {
        path: target.to_owned(),
        bytes: archive.bytes,
        sha256,
    })
}

/// The same for a folder of the user's, such as one that is to be graded.
pub(crate) fn pack_folder(folder: &Path, limit: u64, target: &Path) -> Result<Collected, String> {
    let (parent, name) = folder
        .parent()
        .zip(folder.file_name().and_then(|name| name.to_str()))
        .ok_or_else(|| format!("{} is no folder with a name", folder.display()))?;
    let parent = File::open(parent).map_err(|e| format!("{} cannot be opened: {e}", parent.display()))?;
    collect_folder(&parent, name, limit, target)
}

/// A new file; one of an earlier try of the same job must not survive, nor a link in its place be followed.
fn create(target: &Path) -> io::Result<File> {
    match std::fs::remove_file(target) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(target)
}

struct Archive {
    out: File,
    hash: Sha256,
    bytes: u64,
    files: usize,
    left: u64,
    limit: u64,
}

impl Archive {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Adds what is below a folder; `shown` is its path for messages, `inside` its path in the archive.
    fn folder(&mut self, folder: OwnedFd, shown: &str, inside: &str, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("{shown} lies more than {MAX_DEPTH} folders deep"));
        }
        let unreadable = |e: rustix::io::Errno| format!("{shown} cannot be read: {e}");
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_str().map_err(|_| {
                format!(
                    "a name in {shown} is not valid UTF-8: {}",
                    entry.file_name().to_string_lossy()
                )
            })?;
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        names.sort();
        for name in names {
            let (shown, inside) = (format!("{shown}/{name}"), join(inside, &name));
            let opened = open_beneath(&folder, &name).map_err(|reason| format!("{shown}: {reason}"))?;
            let stat = fstat(&opened).map_err(|e| format!("{shown} cannot be examined: {e}"))?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                self.folder(opened, &shown, &inside, depth + 1)?;
            } else {
                self.file(File::from(opened), &shown, &inside)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, mut file: File, shown: &str, inside: &str) -> Result<(), String> {
        let size = check_file(&file, shown, self.limit)?;
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(format!("there are more than {MAX_FILES} files in the output"));
        }
        self.left = self
            .left
            .checked_sub(size)
            .ok_or_else(|| format!("the output has more than the limit of {} bytes", self.limit))?;
        let header = header(inside, size).ok_or_else(|| format!("the path {shown} is too long"))?;
        let copied = self.write(&header).and_then(|()| self.copy(&mut file, size));
        copied.map_err(|e| format!("{shown} cannot be copied: {e}"))
    }

    /// Copies exactly `size` bytes, filled up to a whole block.
    fn copy(&mut self, file: &mut File, size: u64) -> io::Result<()> {
        let mut buffer = vec![0; 64 << 10];
        let mut left = size;
        while left > 0 {
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let n = file.read(&mut buffer[..most])?;
            if n == 0 {
                return Err(io::Error::other("it became shorter"));
            }
            self.write(&buffer[..n])?;
            left -= n as u64;
        }
        let rest = (size % BLOCK as u64) as usize;
        if rest > 0 {
            self.write(&vec![0; BLOCK - rest])?;
        }
        Ok(())
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// The header of a file; nothing for a path or a size that the format cannot hold.
fn header(path: &str, size: u64) -> Option<[u8; BLOCK]> {
    /// Largest size that eleven octal digits hold.
    const MAX_SIZE: u64 = (1 << 33) - 1;
    let (prefix, name) = if path.len() <= NAME_BYTES {
        ("", path)
    } else {
        path.match_indices('/')
            .map(|(at, _)| (&path[..at], &path[at + 1..]))
            .find(|(prefix, name)| prefix.len() <= PREFIX_BYTES && name.len() <= NAME_BYTES)?
    };
    if size > MAX_SIZE {
        return None;
    }
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(block)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    fn take(prepare: impl FnOnce(&Path)) -> Result<Vec<u8>, String> {
        let dir = tempfile::tempdir().unwrap();
        let out = tempfile::tempdir().unwrap();
        prepare(dir.path());
        let fd = File::open(dir.path()).unwrap();
        let collected = collect_folder(&fd, "output", 10_000, &out.path().join("output.tar"))?;
        let bytes = std::fs::read(&collected.path).unwrap();
        assert_eq!(bytes.len() as u64, collected.bytes);
        assert_eq!(collected.sha256, format!("{:x}", Sha256::digest(&bytes)));
        Ok(bytes)
    }

    fn write(dir: &Path, path: &str, bytes: &[u8]) {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    #[test]
    fn every_file_is_kept_in_the_order_of_the_names() {
        let long = format!("output/{}/{}", "d".repeat(90), "f".repeat(60));
        let bytes = take(|dir| {
            write(dir, "output/b/y.npy", &[7; 600]);
            write(dir, "output/a/x.csv", b"1\n");
            write(dir, "output/a/empty", b"");
            write(dir, &long, b"deep");
        })
        .unwrap();
        assert_eq!(bytes.len() % BLOCK, 0);
        let name = |at: usize| {
            let text = String::from_utf8_lossy(&bytes[at..at + NAME_BYTES]).into_owned();
            text.trim_end_matches('\0').to_owned()
        };
        // Headers and contents, each in whole blocks.
        assert_eq!(name(0), "a/empty");
        assert_eq!(name(BLOCK), "a/x.csv");
        assert_eq!(&bytes[2 * BLOCK..2 * BLOCK + 3], b"1\n\0");
        assert_eq!(name(3 * BLOCK), "b/y.npy");
        assert_eq!(&bytes[3 * BLOCK + 124..3 * BLOCK + 135], b"00000001130");
        assert_eq!(name(6 * BLOCK), "f".repeat(60));
        assert_eq!(&bytes[6 * BLOCK + 345..6 * BLOCK + 435], "d".repeat(90).as_bytes());
        assert_eq!(&bytes[bytes.len() - 2 * BLOCK..], [0; 2 * BLOCK]);
    }

    #[test]
    fn what_is_no_folder_of_plain_files_is_refused() {
        let refused = |prepare: fn(&Path)| take(prepare).unwrap_err();
        assert_eq!(refused(|_| {}), "the program wrote no output");
        assert_eq!(refused(|dir| write(dir, "output", b"x")), "output is no folder");
        let empty = refused(|dir| std::fs::create_dir_all(dir.join("output/a")).unwrap());
        assert_eq!(empty, "the program wrote no file below output");
        let link = refused(|dir| {
            write(dir, "output/a", b"x");
            symlink("/etc/passwd", dir.join("output/b")).unwrap();
        });
        assert!(link.contains("output/b") && link.contains("symbolic link"), "{link}");
        let folder_link = refused(|dir| symlink("/etc", dir.join("output")).unwrap());
        assert!(folder_link.contains("symbolic link"), "{folder_link}");
        let twice = refused(|dir| {
            write(dir, "other", b"x");
            std::fs::create_dir(dir.join("output")).unwrap();
            std::fs::hard_link(dir.join("other"), dir.join("output/x")).unwrap();
        });
        assert!(twice.contains("hard links"), "{twice}");
        let large = refused(|dir| {
            write(dir, "output/a", &[0; 6000]);
            write(dir, "output/b", &[0; 6000]);
        });
        assert!(large.contains("limit of 10000 bytes"), "{large}");
        let deep = refused(|dir| write(dir, &format!("output/{}x", "d/".repeat(20)), b"x"));
        assert!(deep.contains("folders deep"), "{deep}");
    }
}
