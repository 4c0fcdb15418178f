//! The warm interpreter: started once in a small jail of its own, it forks children into the jails of jobs.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::process::{Pid, Signal, kill_process};

use super::launcher::Context;
use super::root;
use super::sys::{self, Fork};
use super::wire;
use crate::sandbox::job::thread_environment;
use crate::sandbox::launch::TextFile;

const SCRIPT: &str = include_str!("../python/zygote.py");
const SCRIPT_PATH: &str = "/zygote.py";
// No process namespace: a child can only join one below its own, and those of jobs lie below the launcher's.
const NAMESPACES: i32 = libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
const TEMPORARY_BYTES: u64 = 64 << 20;
const TEMPORARY_INODES: u64 = 4096;

/// A running zygote; dropping it kills it. Jobs that came from it go on.
pub(super) struct Zygote {
    pid: i32,
    control: OwnedFd,
    jobs: u32,
}

impl Zygote {
    /// Starts a zygote. Its modules load in the background: a child that is asked for early is made when they are there.
    pub(super) fn start(context: &Context) -> Result<Self, String> {
        let trees = root::environment_trees(&context.config.environment)?;
        let (control, theirs) = wire::packet_pair().map_err(|e| format!("cannot make a socket: {e}"))?;
        match sys::clone_namespaces(NAMESPACES).map_err(|e| format!("cannot make the zygote's namespaces: {e}"))? {
            Fork::Child => {
                drop(control);
                // The launcher sees the end of the socket; there is nobody else to tell.
                let _ = become_zygote(context, &trees, &theirs);
                sys::exit_now(1)
            }
            Fork::Parent(pid, _) => Ok(Self { pid, control, jobs: 0 }),
        }
    }

    /// Its process.
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Hands it the descriptors of a jail.
    pub(super) fn request_child(&self, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        wire::send_packet(&self.control, &"child", descriptors)
    }

    /// One more job was started from it.
    pub(super) fn count_job(&mut self) {
        self.jobs += 1;
    }

    /// It has served its number of jobs.
    pub(super) fn is_used_up(&self, limit: u32) -> bool {
        self.jobs >= limit
    }

    /// Lets it end by itself when the supervisors that may still ask it for a child are gone.
    pub(super) fn retire(self) {
        let Self { control, .. } = &self;
        // Dropping would kill it; only its socket is to close.
        sys::close_range(control.as_raw_fd() as u32, control.as_raw_fd() as u32);
        std::mem::forget(self);
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Builds the zygote's small jail and runs the interpreter in it; returns only with the reason of a failure.
fn become_zygote(context: &Context, trees: &[root::Tree], control: &OwnedFd) -> Result<(), String> {
    let fail = |what: &str, e: rustix::io::Errno| format!("cannot {what}: {e}");
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| fail("follow the launcher", e))?;
    root::build(trees, &context.config.environment.links, false)?;
    let script = TextFile {
        path: SCRIPT_PATH.to_owned(),
        content: SCRIPT.to_owned(),
    };
    root::complete(&[], std::slice::from_ref(&script), TEMPORARY_BYTES, TEMPORARY_INODES)?;
    Err(start_python(context, control))
}

fn start_python(context: &Context, control: &OwnedFd) -> String {
    let prepare = || -> Result<(), rustix::io::Errno> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if let Some(id) = context.host_id() {
            let (uid, gid) = (rustix::process::Uid::from_raw(id), rustix::process::Gid::from_raw(id));
            rustix::thread::set_thread_res_gid(gid, gid, gid)?;
            rustix::thread::set_thread_res_uid(uid, uid, uid)?;
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        }
        rustix::thread::set_no_new_privs(true)
    };
    if let Err(e) = prepare() {
        return e.to_string();
    }
    sys::reset_signals();
    if sys::duplicate_onto(control.as_fd(), 0).is_err() || sys::close_on_exec_from(3).is_err() {
        return "cannot set the descriptors".to_owned();
    }
    let python = &context.config.environment.python;
    let mut argv = vec![
        python.to_string_lossy().into_owned(),
        "-B".to_owned(),
        "-s".to_owned(),
        SCRIPT_PATH.to_owned(),
    ];
    argv.extend(context.config.preload.iter().flatten().cloned());
    let fixed = ["PATH=/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "PYTHONHASHSEED=0"]
        .into_iter()
        .map(str::to_owned);
    // Numeric libraries read these when they load, which for a warm child is here. More threads than the job has CPUs wait
    // for each other in vain: a program was seen to take 59 CPU seconds with two on one CPU, and 4 with one.
    let threads = thread_environment(context.config.warm_cpus).map(|(name, value)| format!("{name}={value}"));
    let env: Vec<String> = fixed.chain(threads).collect();
    sys::execve(python, &argv, &env).to_string()
}
