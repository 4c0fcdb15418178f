//! Executors and the evaluator: running candidate programs in isolation.
//!
//! A candidate runs in one jail, which shows it the public data and a scratch directory and nothing else of the user's.
//! When every process of that jail is dead, its submission is copied out and scored by the task's metric in a second
//! jail, which shows the hidden answers. See [`run_candidate`] for the whole way.

mod candidate;
mod collect;
mod collect_folder;
#[cfg(target_os = "linux")]
mod docker;
mod error;
mod evaluation;
mod executor;
#[cfg(target_os = "linux")]
mod group;
#[cfg(target_os = "linux")]
mod image;
mod job;
mod launch;
mod logs;
#[cfg(target_os = "linux")]
mod native;
mod observe;
mod outcome;
mod probe;
mod process;
mod remote;
mod report;
mod scratch;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod usage;
mod wait;

use std::process::ExitCode;

pub use candidate::{CandidateJob, CandidateResult, Judging, Scoring, judge, run_candidate};
pub(crate) use collect_folder::pack_folder;
#[cfg(target_os = "linux")]
pub use docker::{DockerExecutor, DockerOptions, Gpus};
pub use error::SandboxError;
pub use executor::{Evaluator, Executor};
#[cfg(target_os = "linux")]
pub use image::{BuiltImage, ImageSource, ImageSpec, ImageTarget, REQUIREMENTS, build_image};
pub(crate) use job::is_output_name;
pub use job::{EvaluationSpec, JobSpec, Limits, PROGRAM_NAME};
pub use logs::CapturedLog;
#[cfg(target_os = "linux")]
pub use native::{DEFAULT_PRELOAD, NativeExecutor, NativeOptions};
pub use observe::{LogObserver, LogPart, LogStream};
pub use outcome::{Cause, Collected, Evaluation, JobEnd, JobOutcome, ResultState};
pub use probe::Probe;
pub use process::{ProcessExecutor, ProcessOptions};
pub use remote::{RemoteExecutor, RemoteOptions, ResourceType};
pub use report::{Capability, CapabilityReport, Grade, IsolationReport, Layer};

/// Whether this process was started as the sandbox helper. The binary asks before anything else: the helper must have
/// one thread.
pub fn is_helper() -> bool {
    #[cfg(target_os = "linux")]
    return std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == native::HELPER_COMMAND);
    #[cfg(not(target_os = "linux"))]
    false
}

/// Runs the sandbox helper.
pub fn helper_main() -> ExitCode {
    #[cfg(target_os = "linux")]
    return native::helper_main();
    #[cfg(not(target_os = "linux"))]
    ExitCode::FAILURE
}
