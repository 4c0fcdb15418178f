//! Measures what a sandboxed program uses, from outside.

use std::collections::HashSet;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat};
use rustix::io::Errno;

use super::job::Limits;

/// Directories are followed down to paths of this length; a tree that is deeper is over the limit.
const MAX_PATH: usize = 3900;

/// What the processes of a sandbox use at one moment.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ProcessUsage {
    /// Sum of the resident sizes; counts shared pages once for each process.
    pub(crate) resident_bytes: u64,
    /// CPU seconds of the living and of the children they have waited for.
    pub(crate) cpu_seconds: f64,
}

/// Reads the processes of a sandbox's `/proc`.
pub(crate) fn processes(proc: &OwnedFd) -> ProcessUsage {
    // SAFETY: sysconf only reads a number.
    let (page, tick) = unsafe {
        (
            libc::sysconf(libc::_SC_PAGESIZE) as u64,
            libc::sysconf(libc::_SC_CLK_TCK) as f64,
        )
    };
    let mut usage = ProcessUsage::default();
    for_each_process(proc, |name| {
        let Some(text) = read_small(proc, &format!("{name}/stat")) else {
            return;
        };
        // The program's name may hold anything, so fields are counted from its closing parenthesis.
        let Some((_, fields)) = text.rsplit_once(')') else {
            return;
        };
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let field = |number: usize| {
            fields
                .get(number - 3)
                .and_then(|text| text.parse::<i64>().ok())
                .unwrap_or(0)
        };
        let ticks: i64 = (14..=17).map(field).sum();
        usage.cpu_seconds += ticks.max(0) as f64 / tick;
        if name != "1" {
            usage.resident_bytes += field(24).max(0) as u64 * page;
        }
    });
    usage
}

/// Sum of the proportional sizes: exact with shared pages, but costs more.
pub(crate) fn proportional_bytes(proc: &OwnedFd) -> u64 {
    let mut bytes = 0;
    for_each_process(proc, |name| {
        if let Some(text) = read_small(proc, &format!("{name}/smaps_rollup")) {
            let kilobytes = text
                .lines()
                .find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse().ok());
            bytes += kilobytes.unwrap_or(0u64) * 1024;
        }
    });
    bytes
}

/// Blocks of files that are open but have no name any more: on the scratch device, and elsewhere (memory).
pub(crate) fn nameless_bytes(proc: &OwnedFd, scratch_device: u64) -> (u64, u64) {
    let (mut disk, mut memory, mut seen) = (0, 0, HashSet::new());
    for_each_process(proc, |name| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(fds) = openat(proc, format!("{name}/fd"), flags, Mode::empty()) else {
            return;
        };
        for_each_entry(&fds, |entry| {
            let Ok(stat) = statat(&fds, entry, AtFlags::empty()) else {
                return;
            };
            let nameless = stat.st_nlink == 0 && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            if nameless && seen.insert((stat.st_dev, stat.st_ino)) {
                let bytes = stat.st_blocks as u64 * 512;
                if stat.st_dev == scratch_device {
                    disk += bytes
                } else {
                    memory += bytes
                }
            }
        });
    });
    (disk, memory)
}

/// Bytes in use on the temporary file systems of the jail.
pub(crate) fn filesystem_bytes(roots: &[OwnedFd]) -> u64 {
    let used = |fd: &OwnedFd| {
        rustix::fs::fstatvfs(fd).map_or(0, |stat| {
            (stat.f_blocks - stat.f_bfree.min(stat.f_blocks)) * stat.f_frsize
        })
    };
    roots.iter().map(used).sum()
}

/// Opens the temporary file systems of a sandbox through its `/proc`.
pub(crate) fn open_temporary(init: i32) -> Vec<OwnedFd> {
    ["tmp", "dev/shm"]
        .into_iter()
        .filter_map(|place| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            openat(CWD, format!("/proc/{init}/root/{place}"), flags, Mode::empty()).ok()
        })
        .collect()
}

/// What a directory tree uses.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct DiskUsage {
    /// Allocated bytes.
    pub(crate) bytes: u64,
    /// Files and directories.
    pub(crate) files: u64,
    /// The tree is nested deeper than any path can say.
    pub(crate) too_deep: bool,
}

/// Measures a tree that a hostile program is changing; stops as soon as a limit is passed or the time is over.
pub(crate) fn disk(root: &OwnedFd, max_bytes: u64, max_files: u64, budget: Duration) -> DiskUsage {
    let deadline = Instant::now() + budget;
    let mut usage = DiskUsage::default();
    let mut counted = HashSet::new();
    let mut pending: Vec<Vec<u8>> = vec![b".".to_vec()];
    while let Some(path) = pending.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let directory = match openat2(root, path.as_slice(), flags, Mode::empty(), resolve) {
            Ok(directory) => directory,
            Err(Errno::NAMETOOLONG) => {
                usage.too_deep = true;
                return usage;
            }
            // It has just been removed or renamed, or its permissions forbid even us.
            Err(_) => continue,
        };
        let (mut over, mut too_deep) = (false, false);
        for_each_entry(&directory, |entry| {
            if over || too_deep {
                return;
            }
            let Ok(stat) = statat(&directory, entry, AtFlags::SYMLINK_NOFOLLOW) else {
                return;
            };
            usage.files += 1;
            if stat.st_nlink < 2
                || FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                || counted.insert(stat.st_ino)
            {
                usage.bytes += stat.st_blocks as u64 * 512;
            }
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                let mut child = path.clone();
                child.push(b'/');
                child.extend_from_slice(entry.to_bytes());
                too_deep = child.len() > MAX_PATH;
                pending.push(child);
            }
            over = usage.bytes > max_bytes || usage.files > max_files;
        });
        usage.too_deep |= too_deep;
        if over || too_deep || Instant::now() > deadline {
            return usage;
        }
    }
    usage
}

/// Which limit of the scratch directory is passed, if any. `nameless` are bytes of deleted files that are still open.
pub(crate) fn disk_excess(scratch: &OwnedFd, limits: &Limits, nameless: u64) -> Option<String> {
    let room = limits.scratch_bytes.saturating_sub(nameless);
    let usage = disk(scratch, room, limits.scratch_files, Duration::from_millis(500));
    if usage.too_deep {
        Some("directories are nested too deep".to_owned())
    } else if usage.bytes > room {
        Some(format!(
            "more than {} bytes in the working directory",
            limits.scratch_bytes
        ))
    } else if usage.files > limits.scratch_files {
        Some(format!(
            "more than {} files in the working directory",
            limits.scratch_files
        ))
    } else {
        None
    }
}

/// Device of a directory.
pub(crate) fn device(directory: impl AsFd) -> u64 {
    fstat(directory).map_or(0, |stat| stat.st_dev)
}

fn for_each_process(proc: &OwnedFd, mut visit: impl FnMut(&str)) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(listing) = openat(proc, ".", flags, Mode::empty()) else {
        return;
    };
    for_each_entry(&listing, |entry| {
        if let Ok(name) = entry.to_str()
            && name.bytes().all(|byte| byte.is_ascii_digit())
        {
            visit(name);
        }
    });
}

fn for_each_entry(directory: &OwnedFd, mut visit: impl FnMut(&CStr)) {
    let Ok(entries) = Dir::read_from(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name != c"." && name != c".." {
            visit(name);
        }
    }
}

fn read_small(at: &OwnedFd, path: &str) -> Option<String> {
    let fd = openat(at, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut buffer = [0u8; 4096];
    let n = rustix::io::read(&fd, &mut buffer).ok()?;
    Some(String::from_utf8_lossy(&buffer[..n]).into_owned())
}
