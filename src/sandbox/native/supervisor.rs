//! Supervises one job from its jail to its report. One process with one thread for each job.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;

use super::capabilities::BACKEND;
use super::jail::{Jail, receive_within};
use super::launcher::Context;
use super::live::Live;
use super::protocol::{
    ExitStatus, InitOrder, InitReport, InitStart, JobReport, LogSummary, Program, SlotCommand, SlotEvent, WarmOrder,
};
use super::root::{self, Access, Tree};
use super::sys;
use super::watch::{Ending, Watch};
use super::wire;
use super::zygote::Zygote;
use crate::sandbox::collect::collect;
use crate::sandbox::collect_folder::collect_folder;
use crate::sandbox::job::Limits;
use crate::sandbox::launch::{Launch, SCRATCH, TextFile};
use crate::sandbox::logs::{CapturedLog, LogBuffer};
use crate::sandbox::outcome::{Collected, JobEnd};
use crate::sandbox::report::{IsolationReport, Layer};
use crate::sandbox::scratch;
use crate::sandbox::usage;

const OPEN_FILES: u64 = 4096;
/// Time after SIGXCPU until the kernel kills.
const CPU_GRACE_SECONDS: u64 = 2;

/// Runs a slot from its making to its end and exits; a status other than 0 makes the launcher clean up.
pub(super) fn run(
    context: &Context,
    slot: OwnedFd,
    name: &str,
    zygote: Option<&Zygote>,
    warm: bool,
    launcher: i32,
) -> ! {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let orphan = rustix::process::getppid().is_none_or(|parent| parent.as_raw_nonzero().get() != launcher);
    if orphan {
        sys::exit_now(1);
    }
    let mut stream = UnixStream::from(slot);
    let result = match zygote {
        None if warm => Err("the warm pool has no zygote: its interpreter did not start".to_owned()),
        zygote => Jail::build(context, name, zygote),
    };
    let done = match result {
        Err(reason) => wire::write_message(&mut stream, &SlotEvent::Failed(reason)),
        Ok(jail) => serve(context, jail, &mut stream, name),
    };
    sys::exit_now(i32::from(done.is_err()))
}

fn serve(context: &Context, mut jail: Jail, stream: &mut UnixStream, name: &str) -> io::Result<()> {
    wire::write_message(stream, &SlotEvent::Parked)?;
    let launch = match wire::read_message(stream)? {
        Some(SlotCommand::Run(launch)) => launch,
        // Not needed any more.
        Some(SlotCommand::Cancel) | None => return Ok(()),
    };
    let directory = context.config.instance_dir.join(name);
    let ended = run_job(context, &mut jail, &launch, stream, &directory);
    drop(jail);
    let report = |stream: &mut UnixStream| {
        let (report, stdout, stderr) = ended?;
        wire::write_message(stream, &SlotEvent::Ended(Box::new(report)))?;
        wire::write_frame(stream, &stdout.kept)?;
        wire::write_frame(stream, &stderr.kept)
    };
    // Nobody waits for the cleaning: on some file systems it takes longer than a short job.
    let reported = report(stream);
    scratch::remove_tree(&directory)?;
    reported
}

type Ended = (JobReport, CapturedLog, CapturedLog);

/// Runs the job. An `Err` means that the server is gone.
fn run_job(
    context: &Context,
    jail: &mut Jail,
    launch: &Launch,
    stream: &mut UnixStream,
    directory: &Path,
) -> io::Result<Ended> {
    let mut layers = std::mem::take(&mut jail.layers);
    if launch.limits.cpus == 0 {
        layers.remove(&Layer::Cpus);
    }
    let isolation = IsolationReport::new(BACKEND, &Layer::REQUIRED, layers);
    let started = match start(context, jail, launch, directory) {
        Ok(started) => started,
        Err(reason) => {
            let _ = jail.destroy();
            return Ok(not_started(reason, isolation));
        }
    };
    let begin = Instant::now();
    let unix_micros = chrono::Utc::now().timestamp_micros();
    wire::write_message(stream, &SlotEvent::Started { unix_micros })?;
    let Started {
        stdout,
        stderr,
        scratch,
    } = started;
    let logs = [
        LogBuffer::new(launch.limits.log_bytes),
        LogBuffer::new(launch.limits.log_bytes),
    ];
    let live = launch.is_observed.then(Live::default);
    let watch = Watch::new(
        jail,
        stream,
        [stdout, stderr],
        logs,
        live,
        &scratch,
        &launch.limits,
        context.config.grace,
        begin,
    );
    let ending = watch.run()?;
    Ok(conclude(jail, launch, ending, &scratch, begin, isolation))
}

fn conclude(
    jail: &Jail,
    launch: &Launch,
    ending: Ending,
    scratch: &OwnedFd,
    begin: Instant,
    isolation: IsolationReport,
) -> Ended {
    let wall_seconds = begin.elapsed().as_secs_f64();
    let Ending {
        end,
        status,
        usage,
        logs,
    } = ending;
    let group = jail.cgroup.as_ref();
    let killed_for_memory = group.is_some_and(|group| group.oom_kills() > 0);
    let mut end = end.unwrap_or_else(|| match status {
        Some(ExitStatus::Code(code)) => JobEnd::Exited { code },
        Some(ExitStatus::Signal(libc::SIGXCPU)) if launch.limits.cpu_seconds.is_some() => JobEnd::CpuLimit,
        Some(ExitStatus::Signal(libc::SIGKILL)) | None if killed_for_memory => JobEnd::MemoryLimit,
        Some(ExitStatus::Signal(signal)) => JobEnd::Signaled { signal },
        None => JobEnd::Setup("the first process of the sandbox was killed from outside".to_owned()),
    });
    // A program that was quicker than the polling is over its limit all the same.
    if matches!(end, JobEnd::Exited { .. } | JobEnd::Signaled { .. })
        && let Some(which) = usage::disk_excess(scratch, &launch.limits, 0)
    {
        end = JobEnd::DiskLimit(which);
    }
    if matches!(end, JobEnd::Signaled { .. }) && usage.over_cpu(&launch.limits) {
        end = JobEnd::CpuLimit;
    }
    let submission: Option<Result<Collected, String>> = launch
        .collect
        .as_ref()
        .filter(|_| end == JobEnd::Exited { code: 0 })
        .map(|wanted| {
            let limit = launch.limits.submission_bytes;
            match wanted.is_folder {
                true => collect_folder(scratch, &wanted.name, limit, &wanted.target),
                false => collect(scratch, &wanted.name, limit, &wanted.target),
            }
        });
    let (exit_code, signal) = match status {
        Some(ExitStatus::Code(code)) => (Some(code), None),
        Some(ExitStatus::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let [stdout, stderr] = logs.map(LogBuffer::finish);
    let report = JobReport {
        oom: killed_for_memory || end == JobEnd::MemoryLimit,
        end,
        exit_code,
        signal,
        cpu_seconds: usage.cpu_seconds,
        wall_seconds,
        peak_memory_bytes: usage.peak_memory_bytes,
        stdout: summary(&stdout),
        stderr: summary(&stderr),
        submission,
        isolation,
    };
    (report, stdout, stderr)
}

fn not_started(reason: String, isolation: IsolationReport) -> Ended {
    let empty = || LogBuffer::new(0).finish();
    let report = JobReport {
        end: JobEnd::Setup(reason),
        exit_code: None,
        signal: None,
        oom: false,
        cpu_seconds: 0.0,
        wall_seconds: 0.0,
        peak_memory_bytes: 0,
        stdout: summary(&empty()),
        stderr: summary(&empty()),
        submission: None,
        isolation,
    };
    (report, empty(), empty())
}

fn summary(log: &CapturedLog) -> LogSummary {
    LogSummary {
        head: log.head.clone(),
        tail: log.tail.clone(),
        bytes: log.bytes,
        truncated: log.truncated,
    }
}

/// What the running program is connected to.
struct Started {
    stdout: OwnedFd,
    stderr: OwnedFd,
    scratch: OwnedFd,
}

/// Prepares the job's directory and mounts, sets the limits and lets the program run.
fn start(context: &Context, jail: &Jail, launch: &Launch, directory: &Path) -> Result<Started, String> {
    let limits = &launch.limits;
    let group = jail.cgroup.as_ref();
    if let Some(group) = group {
        group
            .limit(limits)
            .map_err(|e| format!("cannot set the limits of the control group: {e}"))?;
    }
    let by_affinity = limits.cpus > 0 && group.is_none_or(|group| !group.limits_cpus());
    if by_affinity {
        let seed = std::process::id().wrapping_mul(limits.cpus);
        sys::limit_cpus(jail.pid, limits.cpus, seed).map_err(|e| format!("cannot limit the CPUs: {e}"))?;
        if let Some(warm) = &jail.warm {
            sys::limit_cpus(warm.pid, limits.cpus, seed).map_err(|e| format!("cannot limit the CPUs: {e}"))?;
        }
    }
    let (scratch_path, scratch) = make_scratch(context, launch, directory)?;
    let mut trees: Vec<Tree> = Vec::new();
    for input in &launch.inputs {
        let access = Access::Read(context.mapping.as_ref().map(|fd| fd.as_fd()));
        trees.push(root::take_tree(&input.source, &input.target, access)?);
    }
    trees.push(root::take_tree(&scratch_path, SCRATCH, Access::Write)?);
    let (stdout, stdout_end) = io::pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
    let (stderr, stderr_end) = io::pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
    let (stdout, stdout_end): (OwnedFd, OwnedFd) = (stdout.into(), stdout_end.into());
    let (stderr, stderr_end): (OwnedFd, OwnedFd) = (stderr.into(), stderr_end.into());
    let filters = context.filters(!by_affinity).to_vec();
    let program = jail.warm.is_none().then(|| Program {
        path: context.config.environment.python.clone(),
        argv: arguments(context, launch),
        env: launch
            .env
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect(),
        rlimits: rlimits(limits),
        seccomp: filters.clone(),
    });
    let order = InitOrder::Start(Box::new(InitStart {
        targets: trees.iter().map(|tree| tree.target.clone()).collect(),
        files: launch.files.clone(),
        temporary_bytes: (limits.memory_bytes / 2).max(1 << 20),
        temporary_inodes: limits.scratch_files.min(65_536),
        program,
    }));
    let descriptors: Vec<_> = trees
        .iter()
        .map(|tree| tree.fd.as_fd())
        .chain([stdout_end.as_fd(), stderr_end.as_fd()])
        .collect();
    wire::send_packet(&jail.socket, &order, &descriptors).map_err(|e| format!("cannot reach init: {e}"))?;
    match &jail.warm {
        None => {
            jail.expect(|report| matches!(report, InitReport::Started))?;
        }
        Some(warm) => {
            let ruleset = jail.expect(|report| matches!(report, InitReport::Attached))?.pop();
            let order = WarmOrder {
                landlock: ruleset.is_some(),
                script: launch.script.clone(),
                arguments: launch.arguments.clone(),
                env: launch.env.clone(),
                cwd: SCRATCH.to_owned(),
                rlimits: rlimits(limits)
                    .into_iter()
                    .map(|(what, soft, hard)| (what, (soft, hard)))
                    .collect(),
                seccomp: filters,
            };
            let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|e| format!("cannot open /dev/null: {e}"))?;
            let fds = [Some(&null), Some(&stdout_end), Some(&stderr_end), ruleset.as_ref()];
            let descriptors: Vec<_> = fds.into_iter().flatten().map(|fd| fd.as_fd()).collect();
            wire::send_packet(&warm.job, &order, &descriptors).map_err(|e| format!("cannot reach the child: {e}"))?;
            warm.expect_running()?;
        }
    }
    Ok(Started {
        stdout,
        stderr,
        scratch,
    })
}

fn arguments(context: &Context, launch: &Launch) -> Vec<String> {
    let python = context.config.environment.python.to_string_lossy().into_owned();
    let rest = launch
        .flags
        .iter()
        .chain(std::iter::once(&launch.script))
        .chain(&launch.arguments);
    std::iter::once(python).chain(rest.cloned()).collect()
}

fn rlimits(limits: &Limits) -> Vec<(u32, u64, u64)> {
    let mut list = vec![
        (libc::RLIMIT_CORE, 0, 0),
        (libc::RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes),
        (libc::RLIMIT_NOFILE, OPEN_FILES.min(1024), OPEN_FILES),
        // Init counts as well.
        (libc::RLIMIT_NPROC, limits.processes + 1, limits.processes + 1),
        (libc::RLIMIT_DATA, limits.memory_bytes, limits.memory_bytes),
    ];
    if let Some(seconds) = limits.cpu_seconds {
        list.push((libc::RLIMIT_CPU, seconds, seconds + CPU_GRACE_SECONDS));
    }
    list
}

/// Makes the scratch directory with its files, owned by the candidate.
fn make_scratch(context: &Context, launch: &Launch, directory: &Path) -> Result<(PathBuf, OwnedFd), String> {
    let make = || -> io::Result<(PathBuf, OwnedFd)> {
        let path = directory.to_owned();
        fs::create_dir(&path)?;
        let owner = context
            .host_id()
            .map(|id| (rustix::fs::Uid::from_raw(id), rustix::fs::Gid::from_raw(id)));
        let own = |path: &Path| match owner {
            Some((uid, gid)) => rustix::fs::chown(path, Some(uid), Some(gid)),
            None => Ok(()),
        };
        for TextFile { path: name, content } in &launch.scratch_files {
            let file = path.join(name);
            fs::write(&file, content)?;
            own(&file)?;
        }
        own(&path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&path, flags, Mode::empty())?;
        Ok((path, fd))
    };
    make().map_err(|e| format!("cannot make the scratch directory {}: {e}", directory.display()))
}

/// Reads what a warm child's waiter reports, where it reports in time.
pub(super) fn waiter_report(jail: &Jail, limit: Duration) -> Option<super::protocol::WarmMessage> {
    receive_within(&jail.warm.as_ref()?.status, limit).ok()?.parse().ok()
}
