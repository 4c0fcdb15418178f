//! The file system of a jail: what it shows, and how it is put together.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, mkdirat, openat, statat, symlinkat};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_bind, mount_change,
    mount_remount, move_mount, open_tree, unmount,
};

use super::protocol::{Environment, INNER_ID};
use super::sys::{self, attr};
use crate::sandbox::launch::{DATA, SCRATCH, TextFile};

/// What holds the candidate's own places: a name that no file of the host has, or it would be covered.
pub(super) const OWN: &str = "/candidate";
/// Places that a program may write.
pub(super) const WRITABLE: [&str; 3] = [SCRATCH, "/tmp", "/dev/shm"];

const TEMPORARY: [(&str, MountFlags); 2] = [("/tmp", MountFlags::empty()), ("/dev/shm", MountFlags::NOEXEC)];
/// Lists of the kernel keys that the user outside holds: the server's own, where it is not root.
const MASKED: [&str; 2] = ["/proc/keys", "/proc/key-users"];
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// A detached copy of a part of the host's tree and its place in the jail.
pub(super) struct Tree {
    pub(super) target: String,
    pub(super) fd: OwnedFd,
}

/// How a tree is shown.
#[derive(Clone, Copy)]
pub(super) enum Access<'a> {
    /// Read-only throughout. With a user namespace its owner's files appear as the candidate's own, where the file
    /// system can do that: so a root server may keep its files private.
    Read(Option<BorrowedFd<'a>>),
    /// Writable.
    Write,
    /// A device file.
    Device,
}

/// Takes a detached copy of `source`.
pub(super) fn take_tree(source: &Path, target: &str, access: Access<'_>) -> Result<Tree, String> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let flags = if matches!(access, Access::Read(_)) {
        flags | OpenTreeFlags::AT_RECURSIVE
    } else {
        flags
    };
    let explain = |what: &str, e: io::Error| format!("cannot {what} {}: {e}", source.display());
    let fd = open_tree(CWD, source, flags).map_err(|e| explain("take", e.into()))?;
    let (set, recursive) = match access {
        Access::Read(_) => (attr::RDONLY | attr::NOSUID | attr::NODEV, true),
        Access::Write => (attr::NOSUID | attr::NODEV, false),
        Access::Device => (attr::NOSUID | attr::NOEXEC, false),
    };
    if let Access::Read(Some(mapping)) = access {
        // A file system without id maps shows its files as they are.
        let mapped = sys::mount_setattr(fd.as_fd(), "", true, attr::IDMAP, Some(mapping));
        if let Err(e) = mapped
            && !readable_by_all(&fd)
        {
            return Err(explain("show to an unprivileged user (make it readable for all)", e));
        }
    }
    sys::mount_setattr(fd.as_fd(), "", recursive, set, None).map_err(|e| explain("restrict", e))?;
    Ok(Tree {
        target: target.to_owned(),
        fd,
    })
}

fn readable_by_all(fd: &OwnedFd) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| {
        let wanted = if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            0o5
        } else {
            0o4
        };
        stat.st_mode & wanted == wanted
    })
}

/// The trees that every jail of the environment shows.
pub(super) fn environment_trees(environment: &Environment) -> Result<Vec<Tree>, String> {
    let mut trees = Vec::new();
    for shown in &environment.visible {
        let target = shown.target.to_string_lossy();
        trees.push(take_tree(&shown.source, &target, Access::Read(None))?);
    }
    for device in DEVICES {
        trees.push(take_tree(Path::new(device), device, Access::Device)?);
    }
    Ok(trees)
}

/// Builds a new root out of the trees and makes it the only thing there is. Runs in the new mount namespace.
pub(super) fn build(trees: &[Tree], links: &[(PathBuf, PathBuf)], with_proc: bool) -> Result<(), String> {
    let step = |what: &'static str| move |e: rustix::io::Errno| format!("cannot {what}: {e}");
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(step("detach the mount namespace from the host's"))?;
    let staging = if Path::new("/tmp").is_dir() { "/tmp" } else { "/proc" };
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount(
        "tmpfs",
        staging,
        "tmpfs",
        flags,
        Some(c"size=16m,nr_inodes=4096,mode=0755"),
    )
    .map_err(step("mount the new root"))?;
    let root = open_directory(CWD, staging).map_err(step("open the new root"))?;
    for directory in ["/proc", "/dev", "/etc", "/tmp", "/dev/shm", SCRATCH, DATA] {
        make_directories(&root, directory.trim_start_matches('/')).map_err(step("make a directory in the new root"))?;
    }
    // Before the trees: one of them may lie below /tmp.
    for (place, more) in TEMPORARY {
        mount(
            "tmpfs",
            format!("{staging}{place}"),
            "tmpfs",
            flags | more,
            Some(c"size=1m,mode=1777"),
        )
        .map_err(step("mount a temporary file system"))?;
    }
    if with_proc {
        // While the host's /proc is still in sight: without it the kernel allows no new one.
        mount_proc(&format!("{staging}/proc")).map_err(step("mount /proc"))?;
        for file in MASKED {
            mask(&format!("{staging}{file}")).map_err(step("mask a file of /proc"))?;
        }
    }
    for tree in trees {
        attach(&root, tree)?;
    }
    for (link, target) in links {
        let relative = link.strip_prefix("/").unwrap_or(link);
        if let Some(parent) = relative.parent() {
            make_directories(&root, &parent.to_string_lossy()).map_err(step("make a directory in the new root"))?;
        }
        match symlinkat(target, &root, relative) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(e) => return Err(format!("cannot make the link {}: {e}", link.display())),
        }
    }
    for (link, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
    ] {
        symlinkat(target, &root, format!("dev/{link}")).map_err(step("make a link in /dev"))?;
    }
    symlinkat("/proc/self/fd/2", &root, "dev/stderr").map_err(step("make a link in /dev"))?;
    let user = format!("candidate:x:{INNER_ID}:{INNER_ID}::{SCRATCH}:/bin/sh\n");
    write_file(&root, "etc/passwd", &user)?;
    write_file(&root, "etc/group", &format!("candidate:x:{INNER_ID}:\n"))?;
    rustix::process::fchdir(&root).map_err(step("enter the new root"))?;
    rustix::process::pivot_root(".", ".").map_err(step("change the root"))?;
    unmount(".", UnmountFlags::DETACH).map_err(step("drop the host's root"))?;
    rustix::process::chdir("/").map_err(step("enter the new root"))?;
    Ok(())
}

fn mount_proc(place: &str) -> Result<(), rustix::io::Errno> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    match mount("proc", place, "proc", flags, Some(c"hidepid=2")) {
        Err(rustix::io::Errno::INVAL) => mount("proc", place, "proc", flags, None),
        result => result,
    }
}

/// Makes a file of the kernel read as empty.
fn mask(place: &str) -> Result<(), rustix::io::Errno> {
    match mount_bind("/dev/null", place) {
        // A kernel without keys has no list of them.
        Err(rustix::io::Errno::NOENT) => Ok(()),
        result => result,
    }
}

/// Adds the parts of one job and closes the root.
pub(super) fn complete(trees: &[Tree], files: &[TextFile], bytes: u64, inodes: u64) -> Result<(), String> {
    for (place, more) in TEMPORARY {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | more;
        mount_remount(place, flags, format!("size={bytes},nr_inodes={inodes}"))
            .map_err(|e| format!("cannot set the size of {place}: {e}"))?;
    }
    let root = open_directory(CWD, "/").map_err(|e| format!("cannot open the root: {e}"))?;
    for tree in trees {
        attach(&root, tree)?;
    }
    for file in files {
        write_file(&root, file.path.trim_start_matches('/'), &file.content)?;
    }
    sys::mount_setattr(CWD, "/", false, attr::RDONLY | attr::NOSUID | attr::NODEV, None)
        .map_err(|e| format!("cannot make the root read-only: {e}"))
}

fn attach(root: &OwnedFd, tree: &Tree) -> Result<(), String> {
    let target = tree.target.trim_start_matches('/');
    let explain = |e: rustix::io::Errno| format!("cannot show {}: {e}", tree.target);
    let stat = rustix::fs::fstat(&tree.fd).map_err(explain)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        make_directories(root, target).map_err(explain)?;
    } else {
        if let Some(parent) = Path::new(target).parent() {
            make_directories(root, &parent.to_string_lossy()).map_err(explain)?;
        }
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(root, target, flags, Mode::from_raw_mode(0o444)).map_err(explain)?;
    }
    move_mount(&tree.fd, "", root, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).map_err(explain)
}

fn open_directory(at: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, rustix::io::Errno> {
    openat(
        at,
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

fn make_directories(root: &OwnedFd, path: &str) -> Result<(), rustix::io::Errno> {
    let mut made = PathBuf::new();
    for part in Path::new(path).components() {
        made.push(part);
        if statat(root, &made, AtFlags::empty()).is_ok() {
            continue;
        }
        match mkdirat(root, &made, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn write_file(root: &OwnedFd, path: &str, content: &str) -> Result<(), String> {
    let write = || -> io::Result<()> {
        if let Some(parent) = Path::new(path).parent() {
            make_directories(root, &parent.to_string_lossy())?;
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = openat(root, path, flags, Mode::from_raw_mode(0o444))?;
        io::Write::write_all(&mut std::fs::File::from(fd), content.as_bytes())
    };
    write().map_err(|e| format!("cannot write /{path}: {e}"))
}
