//! The launcher: one small process that the server starts once, and that forks a supervisor for each job. The server
//! itself never forks, and a launcher that loses its server takes every job with it.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::capabilities;
use super::cgroup::{Cgroup, CgroupTree};
use super::jail::{self, Jail};
use super::protocol::{LauncherConfig, LauncherReply, SlotRequest};
use super::supervisor;
use super::sys::{self, Fork};
use super::wire;
use super::zygote::Zygote;
use crate::sandbox::report::Layer;
use crate::sandbox::{scratch, seccomp};

/// What supervisors know of the machine and the configuration.
pub(super) struct Context {
    pub(super) config: LauncherConfig,
    pub(super) cgroups: Option<CgroupTree>,
    /// Why there are no control groups.
    pub(super) no_cgroups: Option<String>,
    /// Shows root's files as the candidate's.
    pub(super) mapping: Option<OwnedFd>,
    pub(super) landlock: i64,
    is_root: bool,
    filters: [Vec<String>; 2],
    ids: (u32, u32),
}

impl Context {
    fn prepare(config: LauncherConfig) -> Result<Self, String> {
        let ids = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let is_root = ids.0 == 0;
        if is_root {
            // Candidates cannot drop root's groups themselves.
            rustix::thread::set_thread_groups(&[]).map_err(|e| format!("cannot drop the groups of root: {e}"))?;
        } else {
            enter_own_namespace(ids)?;
        }
        let (cgroups, no_cgroups) = match config.cgroups.then(|| CgroupTree::open(&config.instance)) {
            None => (None, Some("switched off by the configuration".to_owned())),
            Some(Ok(tree)) => (Some(tree), None),
            Some(Err(reason)) => (None, Some(reason)),
        };
        let mapping = if is_root {
            jail::mapping_namespace(config.host_id).ok()
        } else {
            None
        };
        let filters = [seccomp::compile_filters(false)?, seccomp::compile_filters(true)?];
        Ok(Self {
            config,
            cgroups,
            no_cgroups,
            mapping,
            landlock: sys::landlock_version(),
            is_root,
            filters,
            ids,
        })
    }

    /// Uid and gid on the host that a candidate has.
    pub(super) fn outer_id(&self) -> (u32, u32) {
        if self.is_root {
            (self.config.host_id, self.config.host_id)
        } else {
            self.ids
        }
    }

    /// The unprivileged id, where the launcher is root.
    pub(super) fn host_id(&self) -> Option<u32> {
        self.is_root.then_some(self.config.host_id)
    }

    /// The call filters as text.
    pub(super) fn filters(&self, allow_affinity: bool) -> &[String] {
        &self.filters[usize::from(allow_affinity)]
    }

    /// Layers that a jail has before its program starts.
    pub(super) fn base_layers(&self, group: Option<&Cgroup>) -> BTreeMap<Layer, String> {
        let by_group = |has: bool, other: &str| {
            if has {
                "control group".to_owned()
            } else {
                other.to_owned()
            }
        };
        let mut layers = BTreeMap::from([
            (Layer::Namespaces, "user, pid, mount, net, ipc, uts, cgroup".to_owned()),
            (Layer::Filesystem, "new root, recursive read-only".to_owned()),
            (Layer::Privileges, "no capabilities, no_new_privs".to_owned()),
            (Layer::Seccomp, "deny list".to_owned()),
            (Layer::Rlimits, "CORE, FSIZE, NOFILE, NPROC, CPU, DATA".to_owned()),
            (
                Layer::Memory,
                by_group(group.is_some_and(Cgroup::limits_memory), "RLIMIT_DATA and polling"),
            ),
            (
                Layer::Processes,
                by_group(group.is_some_and(Cgroup::limits_processes), "RLIMIT_NPROC"),
            ),
            (
                Layer::Cpus,
                by_group(group.is_some_and(Cgroup::limits_cpus), "CPU affinity"),
            ),
            (Layer::Disk, "RLIMIT_FSIZE and polling".to_owned()),
        ]);
        if self.landlock > 0 {
            layers.insert(Layer::Landlock, format!("ABI {}", self.landlock));
        }
        layers
    }
}

/// An ordinary user may copy mounts only in namespaces of its own.
fn enter_own_namespace((uid, gid): (u32, u32)) -> Result<(), String> {
    let flags = rustix::thread::UnshareFlags::NEWUSER | rustix::thread::UnshareFlags::NEWNS;
    // SAFETY: the launcher has one thread and shares nothing; no descriptors are involved.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(|e| format!("cannot make a user namespace: {e}"))?;
    let write = |file: &str, text: String| std::fs::write(file, text).map_err(|e| format!("cannot write {file}: {e}"));
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    let follow = rustix::mount::MountPropagationFlags::DOWNSTREAM | rustix::mount::MountPropagationFlags::REC;
    rustix::mount::mount_change("/", follow).map_err(|e| format!("cannot detach the mounts: {e}"))
}

/// Entry point of the helper process.
pub(crate) fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // The server sees the closed socket; there is nobody else to tell.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    // A Ctrl-C in the user's terminal is for the server to handle.
    let _ = rustix::process::setsid();
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    // SAFETY: descriptor 0 is the socket that the server gave to this process, which owns it.
    let control = rustix::io::fcntl_dupfd_cloexec(unsafe { std::os::fd::BorrowedFd::borrow_raw(0) }, 3)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    sys::duplicate_onto(null.as_fd(), 0)?;
    sys::duplicate_onto(null.as_fd(), 1)?;
    drop(null);
    let Some(packet) = wire::receive_packet(&control)? else {
        return Ok(());
    };
    let config: LauncherConfig = packet.parse()?;
    let _lock = scratch::share_lock(&config.instance_dir)?;
    sys::block_signals(&[libc::SIGCHLD])?;
    let backup = capabilities::Facts::of(&config);
    let context = match Context::prepare(config) {
        Ok(context) => context,
        Err(reason) => {
            return wire::send_packet(
                &control,
                &LauncherReply::Unusable(backup.report(None, Some(&reason))),
                &[],
            );
        }
    };
    // Nothing proves a layer like a jail that stands.
    let trial = try_jail(&context);
    let report = backup.report(Some(&context), trial.as_ref().err().map(String::as_str));
    let reply = if report.usable {
        LauncherReply::Ready(report)
    } else {
        LauncherReply::Unusable(report)
    };
    wire::send_packet(&control, &reply, &[])?;
    if matches!(reply, LauncherReply::Ready(_)) {
        Launcher {
            context,
            control,
            zygote: None,
            jobs: HashMap::new(),
            counter: 0,
        }
        .run()?;
    }
    Ok(())
}

/// Builds one jail and takes it down.
fn try_jail(context: &Context) -> Result<(), String> {
    Jail::build(context, "trial", None).map(drop)
}

struct Launcher {
    context: Context,
    control: OwnedFd,
    zygote: Option<Zygote>,
    /// Names of the running jobs by the supervisor's process.
    jobs: HashMap<i32, String>,
    counter: u64,
}

impl Launcher {
    fn run(&mut self) -> io::Result<()> {
        let children = sys::signal_descriptor(&[libc::SIGCHLD])?;
        if self.context.config.preload.is_some() {
            self.start_zygote();
        }
        let result = self.serve(&children);
        self.stop();
        result
    }

    fn serve(&mut self, children: &OwnedFd) -> io::Result<()> {
        loop {
            let mut watched = vec![
                PollFd::new(&self.control, PollFlags::IN),
                PollFd::new(children, PollFlags::IN),
            ];
            match poll(&mut watched, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            let (request, child) = (!watched[0].revents().is_empty(), !watched[1].revents().is_empty());
            drop(watched);
            if child {
                let mut siginfo = [0u8; 128];
                while rustix::io::read(children, &mut siginfo).is_ok_and(|n| n > 0) {}
                self.reap();
            }
            if request {
                let Some(packet) = wire::receive_packet(&self.control)? else {
                    return Ok(());
                };
                let request: SlotRequest = packet.parse()?;
                if let Some(slot) = packet.descriptors.into_iter().next() {
                    self.open_slot(slot, request.warm, children)?;
                }
            }
        }
    }

    /// Forks the supervisor of one slot.
    fn open_slot(&mut self, slot: OwnedFd, warm: bool, children: &OwnedFd) -> io::Result<()> {
        self.counter += 1;
        let name = format!("job-{}", self.counter);
        if warm
            && self
                .zygote
                .as_ref()
                .is_none_or(|z| z.is_used_up(self.context.config.zygote_jobs))
        {
            self.start_zygote();
        }
        let parent = rustix::process::getpid().as_raw_nonzero().get();
        match sys::fork()? {
            Fork::Child => {
                for fd in [self.control.as_raw_fd(), children.as_raw_fd()] {
                    sys::close_range(fd as u32, fd as u32);
                }
                supervisor::run(
                    &self.context,
                    slot,
                    &name,
                    self.zygote.as_ref().filter(|_| warm),
                    warm,
                    parent,
                )
            }
            Fork::Parent(pid, _) => {
                if let Some(zygote) = self.zygote.as_mut().filter(|_| warm) {
                    zygote.count_job();
                }
                self.jobs.insert(pid, name);
                Ok(())
            }
        }
    }

    fn start_zygote(&mut self) {
        // An older one goes on until its last job ends: the jobs live in its process namespace.
        if let Some(old) = self.zygote.take() {
            old.retire();
        }
        self.zygote = Zygote::start(&self.context).ok();
    }

    fn reap(&mut self) {
        loop {
            let mut status = 0;
            // SAFETY: the status is valid for writes.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            if pid <= 0 {
                return;
            }
            if let Some(name) = self.jobs.remove(&pid) {
                // A supervisor that ended well has cleaned up itself.
                if status != 0 {
                    self.clean(&name);
                }
            } else if self.zygote.as_ref().is_some_and(|zygote| zygote.pid() == pid) {
                self.zygote = None;
            }
        }
    }

    fn clean(&self, name: &str) {
        if let Some(tree) = &self.context.cgroups {
            // Taking the group and dropping it removes it.
            let _ = tree.create(name);
        }
        let _ = scratch::remove_tree(&self.context.config.instance_dir.join(name));
    }

    fn stop(&mut self) {
        for pid in self.jobs.keys() {
            sys::kill(*pid, libc::SIGKILL);
        }
        self.zygote = None;
        // Orphans of the killed come here too. Not every machine's first process buries the dead, so this one does.
        let mut status = 0;
        // SAFETY: the status is valid for writes.
        while unsafe { libc::waitpid(-1, &raw mut status, 0) } > 0 {}
        // The groups first: directories may take longer than the server waits.
        if let Some(tree) = &self.context.cgroups {
            tree.remove();
        }
        let _ = scratch::remove_tree(&self.context.config.instance_dir);
    }
}
