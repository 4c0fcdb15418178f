//! Takes the submission out of a directory that a hostile program has filled.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat};
use sha2::{Digest, Sha256};

use super::outcome::Collected;

/// Copies the file `name` of the directory `dir` to `target`. The program must be dead: then nothing can change between
/// the checks and the copy. `Err` holds the reason why there is no acceptable submission.
pub(crate) fn collect(dir: impl AsFd, name: &str, limit: u64, target: &Path) -> Result<Collected, String> {
    let mut file = File::from(open_beneath(dir, name)?);
    check_file(&file, name, limit)?;
    copy(&mut file, limit, target).map_err(|e| format!("{name} cannot be copied: {e}"))
}

/// Accepts a regular file with one name and not too many bytes; gives its size.
pub(crate) fn check_file(file: &File, name: &str, limit: u64) -> Result<u64, String> {
    let stat = fstat(file).map_err(|e| format!("{name} cannot be examined: {e}"))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(format!("{name} is a directory")),
        FileType::Fifo => return Err(format!("{name} is a pipe")),
        _ => return Err(format!("{name} is not a regular file")),
    }
    if stat.st_nlink != 1 {
        return Err(format!("{name} has {} names: hard links are refused", stat.st_nlink));
    }
    if stat.st_size as u64 > limit {
        return Err(format!("{name} has {} bytes, the limit is {limit}", stat.st_size));
    }
    Ok(stat.st_size as u64)
}

/// Opens what lies directly in a directory, if it is no link.
#[cfg(target_os = "linux")]
pub(crate) fn open_beneath(dir: impl AsFd, name: &str) -> Result<std::os::fd::OwnedFd, String> {
    use rustix::fs::{ResolveFlags, openat2};
    use rustix::io::Errno;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    openat2(dir, name, flags, Mode::empty(), resolve).map_err(|errno| match errno {
        Errno::NOENT => format!("the program wrote no {name}"),
        Errno::LOOP => format!("{name} is a symbolic link"),
        Errno::XDEV => format!("{name} is on another file system"),
        Errno::NXIO => format!("{name} is a socket or a device"),
        errno => format!("{name} cannot be opened: {errno}"),
    })
}

/// Opens what lies directly in a directory, if it is no link.
#[cfg(not(target_os = "linux"))]
pub(crate) fn open_beneath(dir: impl AsFd, name: &str) -> Result<std::os::fd::OwnedFd, String> {
    use rustix::io::Errno;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => format!("the program wrote no {name}"),
        Errno::LOOP => format!("{name} is a symbolic link"),
        errno => format!("{name} cannot be opened: {errno}"),
    })
}

fn copy(file: &mut File, limit: u64, target: &Path) -> io::Result<Collected> {
    // A submission of an earlier try of the same job must not survive, nor a link in its place be followed.
    match std::fs::remove_file(target) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut out = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(target)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0u64;
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        bytes += n as u64;
        if bytes > limit {
            return Err(io::Error::other(format!("it grew over the limit of {limit} bytes")));
        }
        hash.update(&buffer[..n]);
        out.write_all(&buffer[..n])?;
    }
    let sha256 = hex::encode(hash.finalize());
    Ok(Collected {
        path: target.to_owned(),
        bytes,
        sha256,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    fn take(prepare: impl FnOnce(&Path)) -> Result<Collected, String> {
        let dir = tempfile::tempdir().unwrap();
        let out = tempfile::tempdir().unwrap();
        prepare(dir.path());
        let fd = File::open(dir.path()).unwrap();
        collect(&fd, "submission.csv", 1000, &out.path().join("submission.csv"))
    }

    fn refused(prepare: impl FnOnce(&Path)) -> String {
        take(prepare).unwrap_err()
    }

    #[test]
    fn a_regular_file_is_copied_with_its_hash() {
        let got = take(|d| std::fs::write(d.join("submission.csv"), "abc").unwrap()).unwrap();
        assert_eq!(got.bytes, 3);
        assert_eq!(
            got.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn everything_else_is_refused() {
        assert_eq!(refused(|_| {}), "the program wrote no submission.csv");
        assert!(refused(|d| symlink("/etc/passwd", d.join("submission.csv")).unwrap()).contains("symbolic link"));
        assert!(refused(|d| std::fs::create_dir(d.join("submission.csv")).unwrap()).contains("directory"));
        assert!(
            refused(|d| {
                std::fs::write(d.join("other"), "x").unwrap();
                std::fs::hard_link(d.join("other"), d.join("submission.csv")).unwrap();
            })
            .contains("hard links")
        );
        assert!(
            refused(|d| {
                drop(std::os::unix::net::UnixListener::bind(d.join("submission.csv")).unwrap());
            })
            .contains("socket")
        );
        assert!(refused(|d| std::fs::write(d.join("submission.csv"), [0; 1001]).unwrap()).contains("limit is 1000"));
        assert!(
            refused(|d| File::create(d.join("submission.csv"))
                .unwrap()
                .set_len(1 << 40)
                .unwrap())
            .contains("limit")
        );
    }

    #[test]
    fn a_pipe_does_not_hang() {
        let reason = refused(|d| {
            rustix::fs::mknodat(
                rustix::fs::CWD,
                d.join("submission.csv"),
                FileType::Fifo,
                Mode::from_raw_mode(0o644),
                0,
            )
            .unwrap();
        });
        assert!(reason.contains("pipe"), "{reason}");
    }

    #[test]
    fn an_older_copy_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("submission.csv"), "new").unwrap();
        let out = dir.path().join("copy.csv");
        std::fs::write(&out, "old and longer").unwrap();
        let fd = File::open(dir.path()).unwrap();
        collect(&fd, "submission.csv", 1000, &out).unwrap();
        assert_eq!(std::fs::read(&out).unwrap(), b"new");
    }
}
