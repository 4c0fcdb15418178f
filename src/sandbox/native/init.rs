//! The first process of a jail: builds the root, starts the program, reaps, and ends with it. When it ends, the kernel
//! kills whatever the program has left behind.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Signal};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use super::landlock;
use super::protocol::{ExitStatus, INNER_ID, InitOrder, InitReport, InitStart, Program};
use super::root::{self, Tree, WRITABLE};
use super::sys::{self, Fork};
use super::wire;
use crate::sandbox::launch::SCRATCH;
use crate::sandbox::seccomp;

/// Exit code of init when the jail could not be built; the report says why.
const SETUP_FAILED: i32 = 70;

/// Runs init. `socket` leads to the supervisor.
pub(super) fn run(socket: OwnedFd) -> ! {
    let code = match serve(&socket) {
        Ok(()) => 0,
        Err(reason) => {
            // A supervisor that is gone needs no report.
            let _ = wire::send_packet(&socket, &InitReport::Failed(reason), &[]);
            SETUP_FAILED
        }
    };
    sys::exit_now(code)
}

fn serve(socket: &OwnedFd) -> Result<(), String> {
    let die = |_| {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(describe("follow the supervisor"))
    };
    die(())?;
    sys::block_signals(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
        .map_err(|e| format!("cannot block signals: {e}"))?;
    let Some(packet) = receive(socket)? else { return Ok(()) };
    let InitOrder::Build { targets, links, strict } = packet.parse().map_err(|e| e.to_string())? else {
        return Err("the first order must be to build".to_owned());
    };
    let trees = pair(targets, packet.descriptors);
    become_inner_user().map_err(describe("become the unprivileged user"))?;
    // Changing the user cleared it.
    die(())?;
    let _ = rustix::process::setsid();
    rustix::system::sethostname(b"sandbox").map_err(describe("set the host name"))?;
    root::build(&trees, &links, true)?;
    drop(trees);
    let proc = rustix::fs::openat(
        CWD,
        "/proc",
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(describe("open /proc"))?;
    send(socket, &InitReport::Built, &[proc.as_fd()])?;
    drop(proc);

    let Some(packet) = receive(socket)? else { return Ok(()) };
    let InitOrder::Start(start) = packet.parse().map_err(|e| e.to_string())? else {
        return Err("the second order must be to start".to_owned());
    };
    let InitStart {
        targets,
        files,
        temporary_bytes,
        temporary_inodes,
        program,
    } = *start;
    let mut descriptors = packet.descriptors;
    let streams = descriptors.split_off(targets.len().min(descriptors.len()));
    let trees = pair(targets, descriptors);
    root::complete(&trees, &files, temporary_bytes, temporary_inodes)?;
    drop(trees);
    let ruleset = landlock::ruleset(&WRITABLE)?;
    if strict && ruleset.is_none() {
        return Err("the kernel has no Landlock".to_owned());
    }
    // The change of user took away the right to write the own /proc files.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(describe("show init"))?;
    // Children inherit it: when memory runs out, the kernel takes the job before the server.
    std::fs::write("/proc/self/oom_score_adj", "500").map_err(|e| format!("cannot set the OOM score: {e}"))?;
    // From here on nothing of this process can be read through /proc.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(describe("hide init"))?;
    let child = match program {
        None => {
            let ruleset_fd = ruleset.as_ref().map(|fd| fd.as_fd());
            send(socket, &InitReport::Attached, ruleset_fd.as_slice())?;
            None
        }
        Some(program) => Some(start_program(&program, &streams, ruleset)?),
    };
    drop(streams);
    if child.is_some() {
        send(socket, &InitReport::Started, &[])?;
    }
    supervise(socket, child)
}

fn describe(what: &'static str) -> impl Fn(Errno) -> String {
    move |errno| format!("cannot {what}: {errno}")
}

fn receive(socket: &OwnedFd) -> Result<Option<wire::Packet>, String> {
    wire::receive_packet(socket).map_err(|e| format!("init cannot receive: {e}"))
}

fn send(socket: &OwnedFd, report: &InitReport, descriptors: &[BorrowedFd<'_>]) -> Result<(), String> {
    wire::send_packet(socket, report, descriptors).map_err(|e| format!("init cannot report: {e}"))
}

fn pair(targets: Vec<String>, descriptors: Vec<OwnedFd>) -> Vec<Tree> {
    targets
        .into_iter()
        .zip(descriptors)
        .map(|(target, fd)| Tree { target, fd })
        .collect()
}

/// Changes to the one id of the namespace, keeping the namespace's capabilities for the mounts.
fn become_inner_user() -> Result<(), Errno> {
    let (uid, gid) = (
        rustix::process::Uid::from_raw(INNER_ID),
        rustix::process::Gid::from_raw(INNER_ID),
    );
    rustix::thread::set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_SETUID_FIXUP | CapabilitiesSecureBits::NO_ROOT,
    )?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)
}

/// Forks and runs the program; returns its id once it runs.
fn start_program(program: &Program, streams: &[OwnedFd], ruleset: Option<OwnedFd>) -> Result<i32, String> {
    let [stdout, stderr] = streams else {
        return Err("the program's output descriptors are missing".to_owned());
    };
    let (mut error_reader, error_writer) = io::pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
    match sys::fork().map_err(|e| format!("cannot fork: {e}"))? {
        Fork::Child => {
            drop(error_reader);
            let error = enter_and_exec(program, stdout, stderr, ruleset);
            let _ = io::Write::write_all(&mut &error_writer, error.as_bytes());
            sys::exit_now(SETUP_FAILED)
        }
        Fork::Parent(pid, _) => {
            drop(error_writer);
            let mut error = String::new();
            // The pipe closes at exec, so an empty text means that the program runs.
            error_reader
                .read_to_string(&mut error)
                .map_err(|e| format!("cannot read the program's start: {e}"))?;
            if error.is_empty() { Ok(pid) } else { Err(error) }
        }
    }
}

/// The program's own layers. Returns only with the reason of a failure.
fn enter_and_exec(program: &Program, stdout: &OwnedFd, stderr: &OwnedFd, ruleset: Option<OwnedFd>) -> String {
    let enter = || -> Result<(), String> {
        let _ = rustix::process::setsid();
        sys::reset_signals();
        let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(describe("open /dev/null"))?;
        for (from, to) in [(null.as_fd(), 0), (stdout.as_fd(), 1), (stderr.as_fd(), 2)] {
            sys::duplicate_onto(from, to).map_err(|e| format!("cannot set descriptor {to}: {e}"))?;
        }
        sys::close_on_exec_from(3).map_err(|e| format!("cannot close descriptors: {e}"))?;
        rustix::process::umask(Mode::from_raw_mode(0o022));
        rustix::process::chdir(SCRATCH).map_err(describe("enter the scratch directory"))?;
        set_rlimits(&program.rlimits)?;
        drop_capabilities().map_err(describe("drop capabilities"))?;
        rustix::thread::set_no_new_privs(true).map_err(describe("give up new privileges"))?;
        if let Some(ruleset) = ruleset {
            sys::landlock_restrict_self(ruleset.as_fd()).map_err(|e| format!("cannot enforce Landlock: {e}"))?;
        }
        seccomp::install_filters(&program.seccomp).map_err(|e| format!("cannot install the call filters: {e}"))
    };
    match enter() {
        Err(reason) => reason,
        Ok(()) => {
            let error = sys::execve(&program.path, &program.argv, &program.env);
            format!("cannot start {}: {error}", program.path.display())
        }
    }
}

fn set_rlimits(limits: &[(u32, u64, u64)]) -> Result<(), String> {
    for (resource, soft, hard) in limits {
        let limit = libc::rlimit {
            rlim_cur: *soft,
            rlim_max: *hard,
        };
        // SAFETY: the structure is valid.
        if unsafe { libc::setrlimit(*resource as _, &raw const limit) } != 0 {
            return Err(format!("cannot set limit {resource}: {}", io::Error::last_os_error()));
        }
    }
    Ok(())
}

fn drop_capabilities() -> Result<(), Errno> {
    for number in 0..u64::BITS {
        match rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            Err(Errno::INVAL) => break,
            Err(e) => return Err(e),
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
}

/// Reaps until the program ends, passing on the polite end.
fn supervise(socket: &OwnedFd, child: Option<i32>) -> Result<(), String> {
    let signals = sys::signal_descriptor(&[libc::SIGCHLD]).map_err(|e| format!("cannot wait for signals: {e}"))?;
    keep_only(&[socket.as_raw_fd(), signals.as_raw_fd()]);
    loop {
        while let Some((pid, status)) = reap() {
            if Some(pid) == child {
                return send(socket, &InitReport::Exited(ExitStatus::from_raw(status)), &[]);
            }
        }
        let mut watched = [PollFd::new(socket, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
        match poll(&mut watched, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(format!("init cannot wait: {e}")),
        }
        let ready = !watched[0].revents().is_empty();
        let mut siginfo = [0u8; 128];
        while rustix::io::read(&signals, &mut siginfo).is_ok_and(|n| n > 0) {}
        if ready {
            match receive(socket)? {
                // The supervisor is gone, so the jail ends.
                None => return Ok(()),
                Some(packet) => {
                    if let Ok(InitOrder::Terminate) = packet.parse() {
                        sys::kill(-1, libc::SIGTERM);
                        // A stopped process takes no signal but this one.
                        sys::kill(-1, libc::SIGCONT);
                    }
                }
            }
        }
    }
}

fn reap() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: the status is valid for writes.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// Closes all descriptors but these: what init holds, nobody can steal.
fn keep_only(keep: &[i32]) {
    let mut keep: Vec<u32> = keep.iter().map(|fd| *fd as u32).collect();
    keep.sort_unstable();
    let mut from = 0;
    for fd in keep {
        if fd > 0 {
            sys::close_range(from, fd - 1);
        }
        from = fd + 1;
    }
    sys::close_range(from, u32::MAX);
}
