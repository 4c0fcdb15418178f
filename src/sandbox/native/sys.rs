//! System calls that no crate wraps.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Mount attributes of `mount_setattr`.
pub(super) mod attr {
    pub(crate) const RDONLY: u64 = 0x1;
    pub(crate) const NOSUID: u64 = 0x2;
    pub(crate) const NODEV: u64 = 0x4;
    pub(crate) const NOEXEC: u64 = 0x8;
    pub(crate) const IDMAP: u64 = 0x0010_0000;
}

#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Which side of a fork this is.
pub(super) enum Fork {
    /// The new process.
    Child,
    /// The old process, with the new one's id and, where asked for, its descriptor.
    Parent(i32, Option<OwnedFd>),
}

/// Forks into new namespaces. Only for a process with one thread: the child goes on with a copy of all memory.
pub(super) fn clone_namespaces(flags: libc::c_int) -> io::Result<Fork> {
    let mut pidfd: RawFd = -1;
    let mut args = CloneArgs {
        flags: flags as u64 | libc::CLONE_PIDFD as u64,
        pidfd: (&raw mut pidfd) as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArgs::default()
    };
    // SAFETY: `args` is a valid clone_args of the given size without CLONE_VM, so the child has its own memory; helper
    // processes have one thread, so no lock can be held by another.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<CloneArgs>()) })?;
    if pid == 0 {
        return Ok(Fork::Child);
    }
    // SAFETY: CLONE_PIDFD made the kernel store a new descriptor that nobody else owns.
    Ok(Fork::Parent(pid as i32, Some(unsafe { OwnedFd::from_raw_fd(pidfd) })))
}

/// Plain fork. Only for a process with one thread.
pub(super) fn fork() -> io::Result<Fork> {
    // SAFETY: helper processes have one thread, so the child's copy of the memory is consistent.
    let pid = check(libc::c_long::from(unsafe { libc::fork() }))?;
    Ok(if pid == 0 {
        Fork::Child
    } else {
        Fork::Parent(pid as i32, None)
    })
}

/// Ends the process without running anything more.
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` only ends the process.
    unsafe { libc::_exit(code) }
}

/// Sets attributes on a detached mount tree or, with a path, on a mounted one.
pub(super) fn mount_setattr(
    dir: BorrowedFd<'_>,
    path: &str,
    recursive: bool,
    set: u64,
    user_namespace: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let attr = MountAttr {
        attr_set: set,
        attr_clr: 0,
        propagation: 0,
        userns_fd: user_namespace.map_or(0, |fd| fd.as_raw_fd() as u64),
    };
    let path = CString::new(path)?;
    let flags = if path.is_empty() { libc::AT_EMPTY_PATH } else { 0 } | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is NUL-terminated and `attr` is a valid mount_attr of the given size.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            dir.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// Marks all descriptors from `first` on as closed at exec.
pub(super) fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: close_range with CLOSE_RANGE_CLOEXEC closes nothing now.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) }).map(drop)
}

/// Closes all descriptors from `first` to `last`.
pub(super) fn close_range(first: u32, last: u32) {
    if first <= last {
        // SAFETY: callers pass ranges whose owners are never used again in this process.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

/// Duplicates `from` onto the descriptor number `to`, which stays open at exec.
pub(super) fn duplicate_onto(from: BorrowedFd<'_>, to: RawFd) -> io::Result<()> {
    // SAFETY: both are plain descriptor numbers.
    check(libc::c_long::from(unsafe { libc::dup2(from.as_raw_fd(), to) })).map(drop)
}

/// Puts the process under a Landlock ruleset.
pub(super) fn landlock_restrict_self(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: plain system call on a valid descriptor.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) }).map(drop)
}

/// Landlock version of the kernel; 0 when it is off.
pub(super) fn landlock_version() -> i64 {
    const LANDLOCK_CREATE_RULESET_VERSION: u32 = 1;
    // SAFETY: with this flag the kernel takes no attributes and only returns its version.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    version.max(0)
}

/// Runs a program in place of this one; returns only on failure.
pub(super) fn execve(program: &Path, argv: &[String], env: &[String]) -> io::Error {
    let strings = |list: &[String]| {
        list.iter()
            .map(|s| CString::new(s.as_bytes()))
            .collect::<Result<Vec<_>, _>>()
    };
    let (Ok(path), Ok(argv), Ok(env)) = (
        CString::new(program.as_os_str().as_bytes()),
        strings(argv),
        strings(env),
    ) else {
        return io::Error::new(io::ErrorKind::InvalidInput, "an argument or variable holds a NUL byte");
    };
    let pointers = |list: &[CString]| {
        list.iter()
            .map(|s| s.as_ptr())
            .chain(std::iter::once(std::ptr::null()))
            .collect::<Vec<_>>()
    };
    let (argv_pointers, env_pointers) = (pointers(&argv), pointers(&env));
    // SAFETY: all strings are NUL-terminated and both arrays end with a null pointer.
    unsafe { libc::execve(path.as_ptr(), argv_pointers.as_ptr(), env_pointers.as_ptr()) };
    io::Error::last_os_error()
}

/// Blocks signals so that they are only taken by [`wait_signal`].
pub(super) fn block_signals(signals: &[i32]) -> io::Result<()> {
    let set = signal_set(signals);
    // SAFETY: the set is valid.
    check(libc::c_long::from(unsafe {
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut())
    }))
    .map(drop)
}

/// Puts all signals back to their defaults, as a new program expects.
pub(super) fn reset_signals() {
    for signal in 1..=libc::SIGSYS {
        // SAFETY: restoring a default disposition is always allowed or refused without effect.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let set = signal_set(&[]);
    // SAFETY: the set is valid.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) };
}

/// A descriptor that becomes readable when one of the (blocked) signals arrives.
pub(super) fn signal_descriptor(signals: &[i32]) -> io::Result<OwnedFd> {
    let set = signal_set(signals);
    // SAFETY: the set is valid; the returned descriptor is new.
    let fd = check(libc::c_long::from(unsafe {
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    }))?;
    // SAFETY: signalfd returned a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

fn signal_set(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set before sigaddset uses it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// Sends a signal to a process or, with -1, to every process of the namespace but the caller.
pub(super) fn kill(pid: i32, signal: i32) {
    // SAFETY: sending a signal touches no memory; a process that is gone is no fault.
    unsafe { libc::kill(pid, signal) };
}

/// Lets a process of the same kind run only on `cpus` of the CPUs that this process may use.
pub(super) fn limit_cpus(pid: i32, cpus: u32, seed: u32) -> io::Result<()> {
    // SAFETY: an all-zero set is valid, and the kernel fills it up to its size.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is valid for writes of its size.
    check(libc::c_long::from(unsafe {
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut allowed)
    }))?;
    // SAFETY: indexes stay below CPU_SETSIZE.
    let present: Vec<usize> = (0..libc::CPU_SETSIZE as usize)
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &allowed) })
        .collect();
    // SAFETY: an all-zero set is valid.
    let mut chosen: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for offset in 0..(cpus as usize).min(present.len()) {
        let cpu = present[(seed as usize + offset) % present.len()];
        // SAFETY: the index stays below CPU_SETSIZE.
        unsafe { libc::CPU_SET(cpu, &mut chosen) };
    }
    // SAFETY: the set is valid.
    check(libc::c_long::from(unsafe {
        libc::sched_setaffinity(pid, size_of::<libc::cpu_set_t>(), &raw const chosen)
    }))
    .map(drop)
}
