//! One program in its container: attached before it starts, watched, ended at its limits, looked at when it is dead.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::models::ContainerState;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, InspectContainerOptions, KillContainerOptionsBuilder, StartContainerOptions,
    WaitContainerOptionsBuilder,
};
use chrono::{DateTime, Utc};
use futures::StreamExt;
use parking_lot::Mutex;
use rustix::fs::{CWD, Mode, OFlags, openat};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::engine::fault;
use super::slot::Slot;
use crate::sandbox::SandboxError;
use crate::sandbox::group::ForeignGroup;
use crate::sandbox::job::Limits;
use crate::sandbox::launch::Launch;
use crate::sandbox::logs::{CapturedLog, LogBuffer};
use crate::sandbox::observe::LogStream;
use crate::sandbox::outcome::JobEnd;
use crate::sandbox::usage;

/// Time between two looks at what a program uses.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two questions whether the container still runs, for the engine may forget to say so.
const ASK: Duration = Duration::from_secs(2);
/// Time that the output of a dead program may still take.
const OUTPUT_LIMIT: Duration = Duration::from_secs(5);
/// Exit code of the start script when it fails, and how its message begins.
const START_EXIT_CODE: i32 = 125;
const START_FAILURE: &str = "sandbox: ";
/// Time that the engine may take to kill.
const KILL_LIMIT: Duration = Duration::from_secs(30);

/// A program that ended.
#[derive(Debug)]
pub(super) struct Ran {
    /// How.
    pub(super) end: JobEnd,
    /// Exit code as the engine tells it.
    pub(super) exit_code: Option<i32>,
    /// The kernel killed something in the container for its memory.
    pub(super) oom: bool,
    pub(super) cpu_seconds: f64,
    pub(super) peak_memory_bytes: u64,
    pub(super) wall_seconds: f64,
    pub(super) started_at: DateTime<Utc>,
    pub(super) stdout: CapturedLog,
    pub(super) stderr: CapturedLog,
    /// The scratch directory; nothing can change it any more.
    pub(super) scratch: OwnedFd,
}

/// What all programs of an executor share.
pub(super) struct Context<'a> {
    /// Filters on system calls, as text.
    pub(super) filters: &'a [String],
    /// Containers that may start at once.
    pub(super) starts: &'a Semaphore,
    /// Time between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
}

/// Starts the program of a slot and follows it to its end; every process of it is dead then.
///
/// # Errors
/// When the engine fails or the caller cancels.
pub(super) async fn run(
    docker: &Docker,
    slot: &Slot,
    launch: &Launch,
    context: &Context<'_>,
    cancel: &CancellationToken,
) -> Result<Ran, SandboxError> {
    let scratch = slot.load(launch, context.filters)?;
    let output = Output::attach(docker, slot.id(), launch).await?;
    let mut ended = wait(docker, slot.id());
    let begin = {
        let _turn = context
            .starts
            .acquire()
            .await
            .map_err(|e| SandboxError::Helper(e.to_string()))?;
        docker
            .start_container(slot.id(), None::<StartContainerOptions>)
            .await
            .map_err(|error| fault("start a container", &error))?;
        Instant::now()
    };
    let started_at = Utc::now();
    let state = inspect(docker, slot.id()).await?;
    let mut watch = Watch::new(&launch.limits, scratch, state.pid.unwrap_or(0));
    let limit = follow(docker, slot.id(), &mut watch, &mut ended, begin, context.grace, cancel).await?;
    let wall_seconds = begin.elapsed().as_secs_f64();
    let state = inspect(docker, slot.id()).await?;
    let (stdout, stderr) = output.finish().await;
    let exit_code = state.exit_code.and_then(|code| i32::try_from(code).ok());
    let oom = state.oom_killed == Some(true) || limit == Some(JobEnd::MemoryLimit);
    let own = match exit_code {
        Some(START_EXIT_CODE) if stderr.head.starts_with(START_FAILURE) => JobEnd::Setup(stderr.head.trim().to_owned()),
        // Also where the program outlived a child that was killed: it may have lost a part of its work.
        Some(code) if oom && code != 0 => JobEnd::MemoryLimit,
        Some(code) => JobEnd::Exited { code },
        None => JobEnd::Setup("the engine does not say how the container ended".to_owned()),
    };
    // A program that was quicker than the polling is over its limit all the same.
    let over_disk = || usage::disk_excess(&watch.scratch, &launch.limits, 0).map(JobEnd::DiskLimit);
    let started = state.error.as_deref().unwrap_or_default();
    let end = match limit {
        Some(limit) => limit,
        None if !started.is_empty() => JobEnd::Setup(format!("the container did not start: {started}")),
        None if watch.over_cpu() && exit_code != Some(0) => JobEnd::CpuLimit,
        None => match own {
            JobEnd::Exited { .. } => over_disk().unwrap_or(own),
            own => own,
        },
    };
    Ok(Ran {
        end,
        exit_code,
        oom,
        cpu_seconds: watch.cpu_seconds,
        peak_memory_bytes: watch.peak_memory_bytes,
        wall_seconds,
        started_at,
        stdout,
        stderr,
        scratch: watch.scratch,
    })
}

/// Waits for the end, and brings it about at a limit. Gives the limit.
async fn follow(
    docker: &Docker,
    id: &str,
    watch: &mut Watch,
    ended: &mut JoinHandle<()>,
    begin: Instant,
    grace: Duration,
    cancel: &CancellationToken,
) -> Result<Option<JobEnd>, SandboxError> {
    // A wall time beyond the clock's range is no limit in practice.
    let wall = watch.limits.wall.min(Duration::from_secs(100 * 365 * 24 * 3600));
    let deadline = tokio::time::sleep_until((begin + wall).into());
    tokio::pin!(deadline);
    let mut asked = Instant::now();
    let mut is_over = false;
    let limit = loop {
        tokio::select! {
            _ = &mut *ended, if !is_over => is_over = true,
            () = &mut deadline => break JobEnd::WallLimit,
            () = cancel.cancelled() => break JobEnd::Cancelled,
            () = tokio::time::sleep(LOOK) => {}
        }
        if is_over || asked.elapsed() > ASK {
            asked = Instant::now();
            // The engine may have ended the wait for another reason, so it is asked.
            if !is_running(docker, id).await? {
                return Ok(None);
            }
        }
        if let Some(limit) = watch.look() {
            kill(docker, id, "SIGKILL").await?;
            gone(docker, id, ended, KILL_LIMIT).await?;
            return Ok(Some(limit));
        }
    };
    kill(docker, id, "SIGTERM").await?;
    if gone(docker, id, ended, grace).await.is_err() {
        kill(docker, id, "SIGKILL").await?;
        gone(docker, id, ended, KILL_LIMIT).await?;
    }
    Ok(Some(limit))
}

/// Waits until the container does not run; an error after the given time.
async fn gone(docker: &Docker, id: &str, ended: &mut JoinHandle<()>, limit: Duration) -> Result<(), SandboxError> {
    let deadline = Instant::now() + limit;
    loop {
        if !is_running(docker, id).await? {
            return Ok(());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(SandboxError::Helper(format!("container {id} does not end")));
        }
        let pause = left.min(LOOK);
        if ended.is_finished() {
            tokio::time::sleep(pause).await;
        } else {
            let _ = tokio::time::timeout(pause, &mut *ended).await;
        }
    }
}

async fn inspect(docker: &Docker, id: &str) -> Result<ContainerState, SandboxError> {
    let container = docker
        .inspect_container(id, None::<InspectContainerOptions>)
        .await
        .map_err(|error| fault("describe a container", &error))?;
    Ok(container.state.unwrap_or_default())
}

async fn is_running(docker: &Docker, id: &str) -> Result<bool, SandboxError> {
    Ok(inspect(docker, id).await?.running == Some(true))
}

/// Sends a signal; a container that has ended meanwhile is no fault.
async fn kill(docker: &Docker, id: &str, signal: &str) -> Result<(), SandboxError> {
    let options = KillContainerOptionsBuilder::new().signal(signal).build();
    match docker.kill_container(id, Some(options)).await {
        Ok(()) => Ok(()),
        Err(_) if !is_running(docker, id).await? => Ok(()),
        Err(error) => Err(fault("end a container", &error)),
    }
}

/// Waits for the next end in the background: asked before the start, or a short program would be over before.
fn wait(docker: &Docker, id: &str) -> JoinHandle<()> {
    let (docker, id) = (docker.clone(), id.to_owned());
    tokio::spawn(async move {
        let options = WaitContainerOptionsBuilder::new().condition("next-exit").build();
        let mut stream = std::pin::pin!(docker.wait_container(&id, Some(options)));
        // A program that fails comes as an error here; how it ended is asked afterwards in any case.
        while stream.next().await.is_some() {}
    })
}

/// What a container prints.
struct Output {
    task: JoinHandle<()>,
    buffers: Arc<Mutex<[LogBuffer; 2]>>,
}

impl Output {
    async fn attach(docker: &Docker, id: &str, launch: &Launch) -> Result<Self, SandboxError> {
        let options = AttachContainerOptionsBuilder::new()
            .stream(true)
            .stdout(true)
            .stderr(true)
            .build();
        let mut output = docker
            .attach_container(id, Some(options))
            .await
            .map_err(|error| fault("attach to a container", &error))?
            .output;
        let buffer = |stream| LogBuffer::new(launch.limits.log_bytes).observed(launch.observer.as_ref(), stream);
        let buffers = Arc::new(Mutex::new(LogStream::BOTH.map(buffer)));
        let shared = Arc::clone(&buffers);
        let task = tokio::spawn(async move {
            while let Some(Ok(part)) = output.next().await {
                match part {
                    LogOutput::StdErr { message } => shared.lock()[LogStream::Stderr.index()].push(&message),
                    LogOutput::StdOut { message } | LogOutput::Console { message } => {
                        shared.lock()[LogStream::Stdout.index()].push(&message)
                    }
                    LogOutput::StdIn { .. } => {}
                }
            }
        });
        Ok(Self { task, buffers })
    }

    async fn finish(mut self) -> (CapturedLog, CapturedLog) {
        if tokio::time::timeout(OUTPUT_LIMIT, &mut self.task).await.is_err() {
            self.task.abort();
        }
        let mut buffers = self.buffers.lock();
        let mut take = |stream: LogStream| std::mem::replace(&mut buffers[stream.index()], LogBuffer::new(0)).finish();
        (take(LogStream::Stdout), take(LogStream::Stderr))
    }
}

/// What is measured while a program runs, from outside of its container.
struct Watch {
    limits: Limits,
    scratch: OwnedFd,
    /// The container's `/proc` and temporary file systems, where this process may look at them.
    proc: Option<OwnedFd>,
    temporary: Vec<OwnedFd>,
    group: ForeignGroup,
    cpu_seconds: f64,
    peak_memory_bytes: u64,
}

impl Watch {
    fn new(limits: &Limits, scratch: OwnedFd, pid: i64) -> Self {
        let pid = i32::try_from(pid).unwrap_or(0);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = (pid > 0)
            .then(|| openat(CWD, format!("/proc/{pid}/root/proc"), flags, Mode::empty()).ok())
            .flatten();
        Self {
            limits: limits.clone(),
            scratch,
            temporary: if pid > 0 {
                usage::open_temporary(pid)
            } else {
                Vec::new()
            },
            proc,
            group: ForeignGroup::of_process(pid),
            cpu_seconds: 0.0,
            peak_memory_bytes: 0,
        }
    }

    fn over_cpu(&self) -> bool {
        self.limits
            .cpu_seconds
            .is_some_and(|limit| self.cpu_seconds + 1.0 > limit as f64)
    }

    /// Looks at CPU, disk, and whether the kernel has killed for memory. Gives the limit that is passed.
    fn look(&mut self) -> Option<JobEnd> {
        let mut nameless_disk = 0;
        if let Some(proc) = &self.proc {
            let processes = usage::processes(proc);
            let (disk, memory) = usage::nameless_bytes(proc, usage::device(&self.scratch));
            nameless_disk = disk;
            let bytes = processes.resident_bytes + usage::filesystem_bytes(&self.temporary) + memory;
            self.peak_memory_bytes = self.peak_memory_bytes.max(bytes.min(self.limits.memory_bytes));
            let cpu_seconds = self.group.cpu_seconds().unwrap_or(0.0).max(processes.cpu_seconds);
            self.cpu_seconds = self.cpu_seconds.max(cpu_seconds);
            // Where the kernel has killed one process of the job, the others may wait for it for ever.
            if self.group.oom_kills() > 0 {
                return Some(JobEnd::MemoryLimit);
            }
            if self
                .limits
                .cpu_seconds
                .is_some_and(|limit| self.cpu_seconds > limit as f64)
            {
                return Some(JobEnd::CpuLimit);
            }
        }
        usage::disk_excess(&self.scratch, &self.limits, nameless_disk).map(JobEnd::DiskLimit)
    }
}
