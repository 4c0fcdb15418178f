//! What a back end is asked to run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::SandboxError;
use super::observe::LogObserver;

/// Most bytes of program text that are accepted.
pub const MAX_CODE_BYTES: usize = 8 << 20;

/// Limits of one job. Every one of them holds, whatever the program does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Wall time from the start of the program.
    pub wall: Duration,
    /// CPU seconds of all processes together.
    pub cpu_seconds: Option<u64>,
    /// Memory of all processes together, temporary file systems included.
    pub memory_bytes: u64,
    /// Processes and threads at one time.
    pub processes: u64,
    /// Size of one file.
    pub file_bytes: u64,
    /// Size of the scratch directory.
    pub scratch_bytes: u64,
    /// Files and directories in the scratch directory.
    pub scratch_files: u64,
    /// Bytes of each log that are kept; what goes beyond is counted and dropped from the middle.
    pub log_bytes: u64,
    /// Size of the submission.
    pub submission_bytes: u64,
    /// CPUs that the job may use; 0 means all.
    pub cpus: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(3600),
            cpu_seconds: None,
            memory_bytes: 8 << 30,
            processes: 512,
            file_bytes: 4 << 30,
            scratch_bytes: 8 << 30,
            scratch_files: 200_000,
            log_bytes: 1 << 20,
            submission_bytes: 512 << 20,
            cpus: 0,
        }
    }
}

impl Limits {
    /// Limits that suit the evaluation of a submission.
    pub fn for_evaluation() -> Self {
        Self {
            wall: Duration::from_secs(300),
            scratch_bytes: 1 << 30,
            file_bytes: 1 << 30,
            log_bytes: 256 << 10,
            ..Self::default()
        }
    }

    /// Refuses limits under which nothing can run.
    pub fn check(&self) -> Result<(), SandboxError> {
        let zero = [
            ("wall", self.wall.is_zero()),
            ("cpu_seconds", self.cpu_seconds == Some(0)),
            ("memory_bytes", self.memory_bytes == 0),
            ("processes", self.processes == 0),
            ("file_bytes", self.file_bytes == 0),
            ("scratch_bytes", self.scratch_bytes == 0),
            ("scratch_files", self.scratch_files == 0),
            ("submission_bytes", self.submission_bytes == 0),
        ];
        match zero.iter().find(|(_, is_zero)| *is_zero) {
            Some((name, _)) => Err(SandboxError::Config(format!("the limit {name} must be greater than 0"))),
            None => Ok(()),
        }
    }
}

/// One candidate program with its data.
#[derive(Debug, Clone)]
pub struct JobSpec {
    /// Names the job in logs and errors.
    pub job_id: String,
    /// Python source of the candidate.
    pub code: String,
    /// Public data of the task: shown read-only, the program finds it through `DATA_DIR`.
    pub data_dir: PathBuf,
    /// More environment variables of the program.
    pub env: BTreeMap<String, String>,
    /// Limits of the run.
    pub limits: Limits,
    /// What the program must write in its working directory.
    pub output_name: String,
    /// It is a folder of files, which is collected as one archive; the program finds its path in `OUTPUT_DIR`.
    pub output_is_folder: bool,
    /// Existing directory that gets the collected submission.
    pub output_dir: PathBuf,
    /// Start from the warm pool where the back end has one.
    pub warm: bool,
    /// Gets the output while the program runs.
    pub observer: Option<LogObserver>,
}

impl JobSpec {
    /// Where the collected submission goes.
    pub fn output_path(&self) -> PathBuf {
        let end = if self.output_is_folder { ".tar" } else { "" };
        self.output_dir.join(format!("{}{end}", self.output_name))
    }

    /// Refuses a job that no back end could run.
    pub fn check(&self) -> Result<(), SandboxError> {
        self.limits.check()?;
        if !is_output_name(&self.output_name) {
            return Err(SandboxError::Config(format!(
                "the submission must be a plain file name other than {PROGRAM_NAME}, not {:?}",
                self.output_name
            )));
        }
        if let Some(name) = self
            .env
            .keys()
            .find(|name| name.is_empty() || name.contains(['=', '\0']))
        {
            return Err(SandboxError::Config(format!(
                "{name:?} is no name for an environment variable"
            )));
        }
        if let Some((name, _)) = self.env.iter().find(|(_, value)| value.contains('\0')) {
            return Err(SandboxError::Config(format!(
                "the environment variable {name} holds a NUL byte"
            )));
        }
        for (what, dir) in [
            ("data directory", &self.data_dir),
            ("output directory", &self.output_dir),
        ] {
            if dir.to_str().is_none() {
                return Err(SandboxError::Config(format!(
                    "the {what} {} is not valid UTF-8",
                    dir.display()
                )));
            }
            if !dir.is_dir() {
                return Err(SandboxError::Config(format!(
                    "the {what} {} does not exist",
                    dir.display()
                )));
            }
        }
        Ok(())
    }
}

/// Whether a program can be asked to write something of this name: a plain name other than its own.
pub(crate) fn is_output_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != ".." && name != PROGRAM_NAME
}

/// Name of the candidate's program in its working directory.
pub const PROGRAM_NAME: &str = "candidate.py";

/// Variables that name the place of the public data; the second is the name in the published clients' programs.
pub(crate) const DATA_VARIABLES: [&str; 2] = ["DATA_DIR", "SANDBOX_DATA_DIR"];

/// Variable that names the folder which a program must fill.
pub(crate) const OUTPUT_DIR: &str = "OUTPUT_DIR";

/// One evaluation of a collected submission.
#[derive(Debug, Clone)]
pub struct EvaluationSpec {
    /// The task's `metric.py`.
    pub metric_py: PathBuf,
    /// Hidden answers, CSV or JSON lines; the first file is the ground truth, others lie beside it. A metric that reads files
    /// itself may have them in a folder.
    pub answers: Vec<PathBuf>,
    /// The collected submission.
    pub submission: PathBuf,
    /// Limits of the evaluation.
    pub limits: Limits,
    /// Start from the warm pool where the back end has one.
    pub warm: bool,
}

impl EvaluationSpec {
    /// Name of the first input that is not there.
    pub fn missing_input(&self) -> Option<String> {
        if self.answers.is_empty() {
            return Some("the task has no answer file".to_owned());
        }
        std::iter::once(&self.metric_py)
            .chain(&self.answers)
            .find(|path| !path.is_file() && (*path == &self.metric_py || !path.is_dir()))
            .map(|path| format!("{} is missing", path.file_name().unwrap_or_default().to_string_lossy()))
    }
}

/// The program's limits on threads, told to the usual libraries.
pub(crate) fn thread_environment(cpus: u32) -> impl Iterator<Item = (String, String)> {
    const NAMES: [&str; 6] = [
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_MAX_THREADS",
        "LOKY_MAX_CPU_COUNT",
        "POLARS_MAX_THREADS",
    ];
    let available = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let cpus = if cpus == 0 { available } else { cpus.min(available) };
    NAMES.into_iter().map(move |name| (name.to_owned(), cpus.to_string()))
}
