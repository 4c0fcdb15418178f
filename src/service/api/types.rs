//! What the service answers.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::sandbox::{IsolationReport, JobEnd, Layer, Limits};
use crate::service::queue::{Class, JobRecord, JobState, LogFacts, RunDetail, StoredResult, SubmissionFacts};
use crate::service::uploads::Upload;

/// A job that was taken.
#[derive(Debug, Serialize, ToSchema)]
pub struct Accepted {
    /// Its id.
    pub job_id: String,
    /// Its state.
    pub status: JobState,
}

/// A job.
#[derive(Debug, Serialize, ToSchema)]
pub struct Job {
    /// Its id; ids sort by time.
    pub job_id: String,
    /// Name that the user gave it.
    pub name: String,
    /// Its state.
    pub status: JobState,
    /// What came out; null until it ended.
    pub result: Option<JobResult>,
    /// Whose it is.
    pub user: String,
    /// Data that it reads.
    pub data_dir: String,
    /// Part of the task that it is scored on: validation or final; none for data that is no task.
    pub split: String,
    /// cpu or gpu, as asked for.
    pub resource_type: String,
    /// Class of workers that it waits for: cpu or gpu.
    pub class: String,
    /// 1 is first, 9 last.
    pub priority: u8,
    /// Longest run in seconds.
    pub timeout: f64,
    /// What the program must write, where the request said so.
    pub output_name: Option<String>,
    /// That is a folder.
    pub output_is_folder: Option<bool>,
    /// Variables that the request added.
    pub environment: BTreeMap<String, String>,
    /// Key that makes the request idempotent.
    pub idempotency_key: Option<String>,
    /// Trace that the client sent along.
    pub trace_id: Option<String>,
    /// SHA-256 of the program.
    pub code_hash: String,
    /// Worker that has or had it.
    pub worker_id: Option<String>,
    /// Times that it was begun.
    pub attempts: u32,
    /// The user wants it to end.
    pub cancel_requested: bool,
    /// When it came.
    #[schema(format = DateTime)]
    pub queued_at: String,
    /// When a worker took it up.
    #[schema(format = DateTime)]
    pub started_at: Option<String>,
    /// When it ended.
    #[schema(format = DateTime)]
    pub finished_at: Option<String>,
}

/// What came out of a job.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobResult {
    /// success, code_missing, code_execution_error, submission_missing, metric_or_answer_missing, scoring_failed, timeout or
    /// sandbox_unconfirmed.
    pub result: String,
    /// The score.
    pub score: Option<f64>,
    /// Who says so: evaluator or self_reported.
    pub score_source: Option<String>,
    /// Output of the program between markers; null in lists.
    pub run_log: Option<String>,
    /// More about the run.
    pub detail: ResultDetail,
}

/// More about a run.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResultDetail {
    /// Reason of the state in words.
    pub reason: Option<String>,
    /// exit, signal, oom, wall_limit, cpu_limit, disk_limit, setup or killed.
    pub cause: Option<String>,
    /// Exit code of the program.
    pub exit_code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// The memory limit was hit.
    pub oom: bool,
    /// Seconds of the program.
    pub wall_seconds: Option<f64>,
    /// CPU seconds of all its processes.
    pub cpu_seconds: Option<f64>,
    /// Largest memory that was seen.
    pub peak_memory_bytes: Option<u64>,
    /// Seconds of the evaluation.
    pub evaluation_seconds: Option<f64>,
    /// Limits that it ran under.
    pub limits: Option<ResultLimits>,
    /// isolated, partial or unsandboxed.
    pub isolation: Option<String>,
    /// Layers of the sandbox that were in force.
    pub layers: Vec<String>,
    /// How the program ended: exited, signaled, wall_limit, cpu_limit, memory_limit, disk_limit, cancelled or setup; null where none ran.
    pub end: Option<JobEnd>,
    /// What it ran in, and how each layer was enforced.
    pub sandbox: Option<SandboxAnswer>,
    /// It started from the warm pool.
    pub warm: bool,
    /// When the program started.
    #[schema(format = DateTime)]
    pub started_at: Option<String>,
    /// When the program ended.
    #[schema(format = DateTime)]
    pub finished_at: Option<String>,
    /// How much it wrote to standard output.
    pub stdout: LogFacts,
    /// How much it wrote to standard error.
    pub stderr: LogFacts,
    /// What it handed in: GET /jobs/{id}/submission gives it.
    pub submission: Option<SubmissionFacts>,
    /// Why a program that ended well has none.
    pub no_submission: Option<String>,
}

/// What a program ran in.
#[derive(Debug, Serialize, ToSchema)]
pub struct SandboxAnswer {
    /// native, docker or process.
    pub backend: String,
    /// isolated, partial or unsandboxed.
    pub grade: String,
    /// How each layer in force was enforced.
    pub layers: BTreeMap<String, String>,
}

/// Limits that a job ran under.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResultLimits {
    /// Seconds of the program.
    pub wall_seconds: f64,
    /// CPU seconds of all its processes.
    pub cpu_seconds: Option<u64>,
    /// Memory of all processes together.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Size of one file.
    pub file_bytes: u64,
    /// Size of the scratch folder.
    pub scratch_bytes: u64,
    /// Bytes of each log that are kept.
    pub log_bytes: u64,
    /// CPUs; 0 for all.
    pub cpus: u32,
}

/// Jobs, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobList {
    /// The jobs; their results have no logs.
    pub jobs: Vec<Job>,
    /// Gives the next page; null at the end.
    pub next_cursor: Option<String>,
}

/// An upload.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UploadAnswer {
    /// Its id: what jobs name as data_dir.
    pub upload: String,
    /// Bytes of its files.
    pub bytes: u64,
    /// Its files.
    pub files: u64,
    /// When it was first sent.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// The workers.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Workers {
    /// One a worker.
    pub workers_show: Vec<WorkerAnswer>,
}

/// A worker.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkerAnswer {
    /// Its id. A worker on another machine is there once for each class of its slots.
    pub worker_id: String,
    /// idle (a slot is free), busy (all are taken), draining, quarantined or lost.
    pub status: String,
    /// A job that it runs, where that is a job of yours.
    pub job_id: Option<String>,
    /// Jobs that it takes: cpu or gpu.
    pub class: String,
    /// Host name of its machine.
    pub host: String,
    /// Version of its engine.
    pub version: String,
    /// Its back end: native, docker or process.
    pub executor: String,
    /// Jobs that it runs at once.
    pub slots: u32,
    /// Jobs that it runs now.
    pub busy: u32,
    /// When it gave a sign of life; null for the workers of the server itself.
    #[schema(format = DateTime)]
    pub last_seen: Option<String>,
}

/// Whether the service works, and how much it has to do.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// ok or stopping.
    pub status: String,
    /// Version of the engine.
    pub version: String,
    /// Load by class of workers.
    pub classes: Option<ClassLoads>,
}

/// Load by class of workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClassLoads {
    /// Workers without a GPU.
    pub cpu: ClassLoad,
    /// Workers with a GPU.
    pub gpu: ClassLoad,
}

/// Load of one class of workers. Workers that are lost, draining or in quarantine do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClassLoad {
    /// Jobs that its workers run at once.
    pub slots: u32,
    /// Jobs that they run now.
    pub busy: u32,
    /// Jobs that wait for them.
    pub waiting: u32,
}

impl ClassLoads {
    /// Load of a class.
    pub fn of(&self, class: Class) -> ClassLoad {
        match class {
            Class::Cpu => self.cpu,
            Class::Gpu => self.gpu,
        }
    }
}

/// Whose a key is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Identity {
    /// User.
    pub user: String,
    /// read, submit or admin.
    pub role: String,
    /// Id of the key.
    pub key_id: String,
}

/// A time as answered.
pub fn time(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros)
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Micros, true)
}

impl Job {
    /// The answer about a job; its log, where it is asked for, is added by the caller.
    pub fn new(record: JobRecord, run_log: Option<String>) -> Self {
        let request = record.request;
        let (output_name, output_is_folder) = request.output.map(|output| (output.name, output.is_folder)).unzip();
        Self {
            output_name,
            output_is_folder,
            job_id: record.job_id,
            name: request.name,
            status: record.state,
            result: record.result.map(|result| JobResult::new(result, run_log)),
            user: record.user,
            split: request.data.split().to_owned(),
            data_dir: request.data_dir,
            resource_type: request.resource_type.as_str().to_owned(),
            class: request.class.as_str().to_owned(),
            priority: request.priority,
            timeout: request.timeout,
            environment: request.environment,
            idempotency_key: request.idempotency_key,
            trace_id: request.trace_id,
            code_hash: request.code_hash,
            worker_id: record.worker,
            attempts: record.attempts,
            cancel_requested: record.cancel_requested,
            queued_at: time(record.queued_at),
            started_at: record.started_at.map(time),
            finished_at: record.finished_at.map(time),
        }
    }
}

impl JobResult {
    fn new(result: StoredResult, run_log: Option<String>) -> Self {
        Self {
            result: result.result.as_str().to_owned(),
            score: result.score,
            score_source: result.score_source,
            run_log,
            detail: ResultDetail::from(result.detail),
        }
    }
}

impl From<RunDetail> for ResultDetail {
    fn from(detail: RunDetail) -> Self {
        let isolation = detail.isolation.map(|grade| grade.as_str().to_owned());
        let [started_at, finished_at] = detail.program_times.map(|micros| micros.map(time));
        let [stdout, stderr] = detail.logs;
        Self {
            reason: detail.reason,
            cause: detail.cause.map(|cause| cause.as_str().to_owned()),
            exit_code: detail.exit_code,
            signal: detail.signal,
            oom: detail.oom,
            wall_seconds: detail.wall_seconds,
            cpu_seconds: detail.cpu_seconds,
            peak_memory_bytes: detail.peak_memory_bytes,
            evaluation_seconds: detail.evaluation_seconds,
            limits: detail.limits.map(ResultLimits::from),
            isolation,
            layers: detail.layers.iter().map(|layer| layer.as_str().to_owned()).collect(),
            end: detail.end,
            sandbox: detail.sandbox.map(SandboxAnswer::from),
            warm: detail.warm,
            started_at,
            finished_at,
            stdout,
            stderr,
            submission: detail.submission,
            no_submission: detail.no_submission,
        }
    }
}

impl From<IsolationReport> for SandboxAnswer {
    fn from(report: IsolationReport) -> Self {
        let named = |(layer, by): (Layer, String)| (layer.as_str().to_owned(), by);
        Self {
            backend: report.backend,
            grade: report.grade.as_str().to_owned(),
            layers: report.layers.into_iter().map(named).collect(),
        }
    }
}

impl From<Limits> for ResultLimits {
    fn from(limits: Limits) -> Self {
        Self {
            wall_seconds: limits.wall.as_secs_f64(),
            cpu_seconds: limits.cpu_seconds,
            memory_bytes: limits.memory_bytes,
            processes: limits.processes,
            file_bytes: limits.file_bytes,
            scratch_bytes: limits.scratch_bytes,
            log_bytes: limits.log_bytes,
            cpus: limits.cpus,
        }
    }
}

impl From<Upload> for UploadAnswer {
    fn from(upload: Upload) -> Self {
        Self {
            upload: upload.id(),
            bytes: upload.bytes,
            files: upload.files,
            created_at: time(upload.created_at),
        }
    }
}
