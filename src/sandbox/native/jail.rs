//! Builds a jail around a new init process, from outside.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cgroup::Cgroup;
use super::init;
use super::launcher::Context;
use super::protocol::{INNER_ID, InitOrder, InitReport, WarmMessage};
use super::root;
use super::sys::{self, Fork};
use super::wire;
use super::zygote::Zygote;
use crate::sandbox::report::Layer;
use crate::sandbox::wait::{Waited, wait4};

/// Longest wait for a step of the set-up.
const SETUP_LIMIT: Duration = Duration::from_secs(30);
/// Longest wait for a child of a zygote that has just been started.
const WARM_LIMIT: Duration = Duration::from_secs(120);
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;
/// In the order in which a warm child joins them.
const NAMESPACE_FILES: [&str; 7] = ["user", "mnt", "net", "ipc", "uts", "cgroup", "pid"];

/// A jail that stands; dropping it kills everything in it.
pub(super) struct Jail {
    /// Init, as seen by the supervisor.
    pub(super) pid: i32,
    /// Becomes readable when init and so the whole tree is gone.
    pub(super) pidfd: OwnedFd,
    /// Leads to init.
    pub(super) socket: OwnedFd,
    /// The jail's `/proc`: lists exactly its processes.
    pub(super) proc: OwnedFd,
    /// Control group of all of it.
    pub(super) cgroup: Option<Cgroup>,
    /// The zygote's child.
    pub(super) warm: Option<WarmChild>,
    /// Layers that the build put in force.
    pub(super) layers: BTreeMap<Layer, String>,
    waited: bool,
}

/// A child of the zygote inside the jail.
pub(super) struct WarmChild {
    /// Tells how the child ended.
    pub(super) status: OwnedFd,
    /// Takes the order.
    pub(super) job: OwnedFd,
    /// Its process, as seen by the supervisor.
    pub(super) pid: i32,
}

impl Jail {
    /// Builds a jail; with a zygote, a warm child waits in it.
    pub(super) fn build(context: &Context, name: &str, zygote: Option<&Zygote>) -> Result<Self, String> {
        let trees = root::environment_trees(&context.config.environment)?;
        let (socket, init_socket) = wire::packet_pair().map_err(|e| format!("cannot make a socket: {e}"))?;
        let (pid, pidfd) = clone_init(context, init_socket)?;
        let mut jail = Self {
            pid,
            pidfd,
            proc: rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|e| format!("cannot open /dev/null: {e}"))?,
            socket,
            cgroup: None,
            warm: None,
            layers: BTreeMap::new(),
            waited: false,
        };
        write_id_maps(pid, context.outer_id())?;
        if let Some(tree) = &context.cgroups {
            let group = tree
                .create(name)
                .map_err(|e| format!("cannot make a control group: {e}"))?;
            group
                .add(pid)
                .map_err(|e| format!("cannot fill the control group: {e}"))?;
            jail.cgroup = Some(group);
        }
        let targets = trees.iter().map(|tree| tree.target.clone()).collect();
        let links = context.config.environment.links.clone();
        let order = InitOrder::Build {
            targets,
            links,
            strict: context.config.strict,
        };
        let descriptors: Vec<BorrowedFd<'_>> = trees.iter().map(|tree| tree.fd.as_fd()).collect();
        wire::send_packet(&jail.socket, &order, &descriptors).map_err(|e| format!("cannot reach init: {e}"))?;
        drop(trees);
        let mut built = jail.expect(|report| matches!(report, InitReport::Built))?;
        jail.proc = built.pop().ok_or("init sent no descriptor of /proc")?;
        jail.layers = context.base_layers(jail.cgroup.as_ref());
        if let Some(zygote) = zygote {
            jail.warm = Some(jail.join_warm_child(zygote)?);
        }
        Ok(jail)
    }

    /// Waits for a report of init; gives the descriptors beside it.
    pub(super) fn expect(&self, wanted: impl Fn(&InitReport) -> bool) -> Result<Vec<OwnedFd>, String> {
        let packet = receive_within(&self.socket, SETUP_LIMIT).map_err(|e| format!("init does not answer: {e}"))?;
        let report: InitReport = packet.parse().map_err(|e| format!("init answers nonsense: {e}"))?;
        match report {
            InitReport::Failed(reason) => Err(reason),
            report if wanted(&report) => Ok(packet.descriptors),
            report => Err(format!("init reports {report:?} out of turn")),
        }
    }

    fn join_warm_child(&self, zygote: &Zygote) -> Result<WarmChild, String> {
        let pair = || wire::packet_pair().map_err(|e| format!("cannot make a socket: {e}"));
        let ((status, status_end), (job, job_end)) = (pair()?, pair()?);
        wire::want_sender(&job).map_err(|e| format!("cannot ask for senders: {e}"))?;
        let open = |name: &&str| {
            let path = format!("/proc/{}/ns/{name}", self.pid);
            rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|e| format!("cannot open {path}: {e}"))
        };
        let namespaces: Vec<OwnedFd> = NAMESPACE_FILES.iter().map(open).collect::<Result<_, _>>()?;
        let descriptors: Vec<BorrowedFd<'_>> = [&status_end, &job_end]
            .into_iter()
            .chain(&namespaces)
            .map(|fd| fd.as_fd())
            .collect();
        zygote
            .request_child(&descriptors)
            .map_err(|e| format!("cannot reach the zygote: {e}"))?;
        drop((status_end, job_end, namespaces));
        // The zygote may still be loading its modules.
        let packet = receive_within(&job, WARM_LIMIT).map_err(|e| format!("the warm child is silent: {e}"))?;
        let pid = packet.sender.ok_or("the kernel did not name the warm child")?;
        let child = WarmChild { status, job, pid };
        child.check(packet.parse().map_err(|e| e.to_string())?)?;
        if let Some(group) = &self.cgroup {
            group
                .add(pid)
                .map_err(|e| format!("cannot move the warm child into the control group: {e}"))?;
        }
        Ok(child)
    }

    /// Kills everything and waits until it is gone.
    pub(super) fn destroy(&mut self) -> io::Result<Option<Waited>> {
        if self.waited {
            return Ok(None);
        }
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        self.waited = true;
        wait4(self.pid).map(Some)
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        // The kernel ends the processes in any case; the wait only keeps the control group from being busy.
        let _ = self.destroy();
    }
}

impl WarmChild {
    /// Turns a failure that the child reports into an error.
    pub(super) fn check(&self, message: WarmMessage) -> Result<(), String> {
        match message {
            WarmMessage {
                failed: Some(reason), ..
            } => Err(format!("warm child: {reason}")),
            WarmMessage {
                parked: false,
                running: false,
                ..
            } => Err("the warm child answers nonsense".to_owned()),
            _ => Ok(()),
        }
    }

    /// Waits until the child has shut itself in and runs.
    pub(super) fn expect_running(&self) -> Result<(), String> {
        let packet = receive_within(&self.job, SETUP_LIMIT).map_err(|e| format!("the warm child is silent: {e}"))?;
        self.check(packet.parse().map_err(|e| e.to_string())?)
    }
}

/// Receives one packet within a time.
pub(super) fn receive_within(socket: &OwnedFd, limit: Duration) -> io::Result<wire::Packet> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time")),
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    wire::receive_packet(socket)?.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "it ended"))
}

/// Makes init. A root launcher acts as the unprivileged user for the moment of the call, so that this user and not root
/// owns the user namespace: that is what lets a warm child join it.
fn clone_init(context: &Context, init_socket: OwnedFd) -> Result<(i32, OwnedFd), String> {
    let id = context.host_id().map(rustix::process::Uid::from_raw);
    let root = rustix::process::Uid::ROOT;
    let switch = |effective| {
        rustix::thread::set_thread_res_uid(root, effective, root).map_err(|e| format!("cannot change the user: {e}"))
    };
    if let Some(id) = id {
        switch(id)?;
    }
    let forked = sys::clone_namespaces(NAMESPACES).map_err(|e| format!("cannot make the namespaces: {e}"));
    if let Ok(Fork::Child) = forked {
        init::run(init_socket);
    }
    if id.is_some() {
        switch(root)?;
    }
    match forked? {
        Fork::Parent(pid, Some(pidfd)) => Ok((pid, pidfd)),
        Fork::Parent(pid, None) => {
            let pid_checked = Pid::from_raw(pid).ok_or("the kernel gave no process id")?;
            let pidfd = pidfd_open(pid_checked, PidfdFlags::empty()).map_err(|e| format!("cannot watch init: {e}"))?;
            Ok((pid, pidfd))
        }
        Fork::Child => Err("unreachable side of a fork".to_owned()),
    }
}

fn write_id_maps(pid: i32, (uid, gid): (u32, u32)) -> Result<(), String> {
    let write = |file: &str, text: String| {
        let path = format!("/proc/{pid}/{file}");
        fs::write(&path, text).map_err(|e| format!("cannot write {path}: {e}"))
    };
    // Kernels that lack the file need no such write.
    if Path::new(&format!("/proc/{pid}/setgroups")).exists() {
        write("setgroups", "deny".to_owned())?;
    }
    write("uid_map", format!("{INNER_ID} {uid} 1"))?;
    write("gid_map", format!("{INNER_ID} {gid} 1"))
}

/// A user namespace that shows root's files as those of `id`, for mounts.
pub(super) fn mapping_namespace(id: u32) -> io::Result<OwnedFd> {
    let (ours, theirs) = wire::packet_pair()?;
    match sys::clone_namespaces(libc::CLONE_NEWUSER)? {
        Fork::Child => {
            drop(ours);
            // Lives until the parent has taken the namespace.
            let _ = wire::receive_packet(&theirs);
            sys::exit_now(0)
        }
        Fork::Parent(pid, _) => {
            drop(theirs);
            let take = || {
                fs::write(format!("/proc/{pid}/uid_map"), format!("0 {id} 1"))?;
                fs::write(format!("/proc/{pid}/gid_map"), format!("0 {id} 1"))?;
                let path = format!("/proc/{pid}/ns/user");
                Ok(rustix::fs::openat(
                    CWD,
                    path,
                    OFlags::RDONLY | OFlags::CLOEXEC,
                    Mode::empty(),
                )?)
            };
            let namespace = take();
            drop(ours);
            wait4(pid)?;
            namespace
        }
    }
}
