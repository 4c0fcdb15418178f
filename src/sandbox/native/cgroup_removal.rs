//! Removing control groups. The kernel lets a group go when no process is in it; so what is left in one is killed and waited for.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Longest wait for the processes of a group; one that hangs in the kernel may take any time to die.
const LIMIT: Duration = Duration::from_secs(10);
/// Pause where the kernel gives no event: a process is dead already but still counted, for as long as it takes to switch away from it.
const PAUSE: Duration = Duration::from_millis(1);

/// Removes a group with the groups below it, and ends the processes in them. What cannot be removed now is left for the sweep of
/// the next start.
pub(super) fn remove_group(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&entry.path());
        }
    }
    let deadline = Instant::now() + LIMIT;
    loop {
        match fs::remove_dir(path) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            _ => return,
        }
        let Some(left) = deadline.checked_duration_since(Instant::now()) else {
            return;
        };
        match end_processes(path, left) {
            Ok(true) => {}
            _ => return,
        }
    }
}

/// Kills the processes of a group and waits until one of them is dead. False when the group holds processes that this one does
/// not see: they belong to another process namespace, and so does the group.
fn end_processes(path: &Path, limit: Duration) -> io::Result<bool> {
    let listed = processes(path)?;
    if listed.is_empty() {
        std::thread::sleep(PAUSE);
        return Ok(true);
    }
    let opened: Vec<(Pid, OwnedFd)> = listed
        .iter()
        .filter_map(|pid| Pid::from_raw(*pid))
        .filter_map(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)))
        .collect();
    if opened.is_empty() {
        return Ok(listed.iter().any(|pid| *pid != 0));
    }
    // A number may have passed to another process before it was opened; one that is still listed has not.
    let listed = processes(path)?;
    let ours: Vec<&OwnedFd> = opened
        .iter()
        .filter(|(pid, _)| listed.contains(&pid.as_raw_nonzero().get()))
        .map(|(_, fd)| fd)
        .collect();
    if ours.is_empty() {
        return Ok(true);
    }
    for process in &ours {
        // One that has just died is no fault.
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
    let timeout = Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    };
    let mut watched: Vec<PollFd<'_>> = ours
        .iter()
        .map(|process| PollFd::new(*process, PollFlags::IN))
        .collect();
    match poll(&mut watched, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Processes of a group; 0 stands for one that is not visible from here.
fn processes(path: &Path) -> io::Result<Vec<i32>> {
    let text = fs::read_to_string(path.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
}
