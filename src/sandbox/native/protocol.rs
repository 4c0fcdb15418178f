//! The messages themselves.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::sandbox::launch::{Launch, TextFile};
use crate::sandbox::observe::LogStream;
use crate::sandbox::outcome::{Collected, JobEnd};
use crate::sandbox::report::{CapabilityReport, IsolationReport};

/// Uid and gid of the candidate as it sees itself.
pub(super) const INNER_ID: u32 = 1000;

/// First message to the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LauncherConfig {
    /// Directory of this executor instance: job directories are made here.
    pub(super) instance_dir: PathBuf,
    /// Name of the instance, also of its control groups.
    pub(super) instance: String,
    /// Unprivileged id on the host that a root launcher gives to jobs.
    pub(super) host_id: u32,
    /// Use control groups where they can be had.
    pub(super) cgroups: bool,
    /// Every layer must be in force.
    pub(super) strict: bool,
    /// Time between the polite and the hard end.
    pub(super) grace: Duration,
    /// The interpreter's environment.
    pub(super) environment: Environment,
    /// Modules that the zygote loads; the warm pool is off without.
    pub(super) preload: Option<Vec<String>>,
    /// Jobs after which the zygote is replaced.
    pub(super) zygote_jobs: u32,
    /// CPUs that numeric libraries of the zygote's children use; 0 for all.
    pub(super) warm_cpus: u32,
}

/// Files that every jail of an environment shows, read-only.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Environment {
    /// The interpreter.
    pub(super) python: PathBuf,
    /// Paths of the host with the places where they are shown.
    pub(super) visible: Vec<Shown>,
    /// Links that the root directory holds, such as `/lib -> usr/lib`.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

/// A path of the host that every jail shows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Shown {
    /// On the host.
    pub(super) source: PathBuf,
    /// In the jail.
    pub(super) target: PathBuf,
}

/// Answer of the launcher to its configuration.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum LauncherReply {
    /// It takes requests.
    Ready(CapabilityReport),
    /// It cannot run jobs here.
    Unusable(CapabilityReport),
}

/// Request to the launcher; the slot's socket comes beside it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SlotRequest {
    /// Attach a child of the zygote.
    pub(super) warm: bool,
}

/// From the server to a slot.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum SlotCommand {
    /// Run this job.
    Run(Box<Launch>),
    /// End the job: politely, then hard.
    Cancel,
}

/// From a slot to the server.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum SlotEvent {
    /// The jail stands and waits for a job.
    Parked,
    /// The jail could not be built.
    Failed(String),
    /// The program runs.
    Started {
        /// Microseconds since 1970.
        unix_micros: i64,
    },
    /// The program wrote something; a frame with it follows.
    Output {
        /// Which output.
        stream: LogStream,
        /// Bytes before it that are not shown.
        skipped: u64,
    },
    /// The job is over; two frames with the kept output follow.
    Ended(Box<JobReport>),
}

/// What the supervisor knows at the end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JobReport {
    /// How the program ended.
    pub(super) end: JobEnd,
    /// Exit code or signal of the program, also where a limit ended it.
    pub(super) exit_code: Option<i32>,
    /// See `exit_code`.
    pub(super) signal: Option<i32>,
    /// The memory limit was hit.
    pub(super) oom: bool,
    /// CPU seconds of the tree.
    pub(super) cpu_seconds: f64,
    /// Seconds from the start of the program to the end of its tree.
    pub(super) wall_seconds: f64,
    /// Largest memory seen.
    pub(super) peak_memory_bytes: u64,
    /// Head, tail, counts; the kept bytes follow as frames.
    pub(super) stdout: LogSummary,
    /// See `stdout`.
    pub(super) stderr: LogSummary,
    /// The submission, or why there is none; `None` when it was not asked for.
    pub(super) submission: Option<Result<Collected, String>>,
    /// Layers in force.
    pub(super) isolation: IsolationReport,
}

/// A log without its kept bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LogSummary {
    /// See [`CapturedLog`](crate::sandbox::CapturedLog).
    pub(super) head: String,
    /// See [`CapturedLog`](crate::sandbox::CapturedLog).
    pub(super) tail: String,
    /// See [`CapturedLog`](crate::sandbox::CapturedLog).
    pub(super) bytes: u64,
    /// See [`CapturedLog`](crate::sandbox::CapturedLog).
    pub(super) truncated: bool,
}

/// From the supervisor to the jail's init.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum InitOrder {
    /// The id maps are written; build the root. Mount trees come beside it, in the order of `targets`.
    Build {
        /// Where each tree goes.
        targets: Vec<String>,
        /// Links in the root.
        links: Vec<(PathBuf, PathBuf)>,
        /// Layers that must be in force.
        strict: bool,
    },
    /// Attach the job's trees and start it. Beside it: the trees, then standard output and error.
    Start(Box<InitStart>),
    /// End the program politely.
    Terminate,
}

/// What init needs to know of a job.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct InitStart {
    /// Where each tree goes; the last one is the scratch directory.
    pub(super) targets: Vec<String>,
    /// Files in the root.
    pub(super) files: Vec<TextFile>,
    /// Bytes of each temporary file system.
    pub(super) temporary_bytes: u64,
    /// Inodes of each temporary file system.
    pub(super) temporary_inodes: u64,
    /// Program to run here; a warm child runs elsewhere.
    pub(super) program: Option<Program>,
}

/// A program that init starts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Program {
    /// Interpreter.
    pub(super) path: PathBuf,
    /// All arguments, the first is the program's name.
    pub(super) argv: Vec<String>,
    /// `NAME=value` strings.
    pub(super) env: Vec<String>,
    /// Limits: resource, soft, hard.
    pub(super) rlimits: Vec<(u32, u64, u64)>,
    /// Filters, outermost last, as hexadecimal text.
    pub(super) seccomp: Vec<String>,
}

/// From init to the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum InitReport {
    /// The base of the jail stands; a descriptor of its `/proc` comes beside it.
    Built,
    /// The job's parts are attached; the Landlock ruleset comes beside it where the kernel has one.
    Attached,
    /// The program runs.
    Started,
    /// The program ended.
    Exited(ExitStatus),
    /// Something failed; the jail is of no use.
    Failed(String),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ExitStatus {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl ExitStatus {
    /// From a status of `wait`.
    pub(super) fn from_raw(status: i32) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signal(libc::WTERMSIG(status))
        } else {
            Self::Code(libc::WEXITSTATUS(status))
        }
    }
}

/// Order to a warm child; standard input, output, error and the Landlock ruleset come beside it.
#[derive(Debug, Serialize)]
pub(super) struct WarmOrder {
    /// A ruleset comes beside the order.
    pub(super) landlock: bool,
    /// See [`Launch`].
    pub(super) script: String,
    /// See [`Launch`].
    pub(super) arguments: Vec<String>,
    /// See [`Launch`].
    pub(super) env: BTreeMap<String, String>,
    /// Working directory.
    pub(super) cwd: String,
    /// Resource, (soft, hard).
    pub(super) rlimits: Vec<(u32, (u64, u64))>,
    /// Filters as hexadecimal text.
    pub(super) seccomp: Vec<String>,
}

/// Any message of the Python side.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WarmMessage {
    /// A child waits for its order.
    pub(super) parked: bool,
    /// A child is shut in and starts its script.
    pub(super) running: bool,
    /// Something failed.
    pub(super) failed: Option<String>,
    /// Exit code of a child.
    pub(super) code: Option<i32>,
    /// Signal that ended a child.
    pub(super) signal: Option<i32>,
    /// CPU seconds of a child.
    pub(super) cpu_seconds: f64,
    /// Largest resident size of a child.
    pub(super) max_rss_bytes: u64,
}
