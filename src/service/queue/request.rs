//! A request for a job, as it is kept until the job ends.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::gym::Submission;
use crate::scheduler::sha256_hex;

/// Class of workers that a job waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Workers without a GPU.
    Cpu,
    /// Workers with a GPU.
    Gpu,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 2] = [Self::Cpu, Self::Gpu];

    /// Name as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        }
    }

    /// The class of a stored name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }
}

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It waits for a worker.
    Queued,
    /// A worker has it.
    Running,
    /// It ran and has a result, whatever became of the program.
    Completed,
    /// The service could not run it.
    Failed,
    /// The user cancelled it.
    Cancelled,
}

impl JobState {
    /// All states.
    pub const ALL: [Self; 5] = [
        Self::Queued,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Name as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of a stored name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Nothing more will happen.
    pub fn is_end(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// Part of a task that a job is scored on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalSplit {
    /// The validation split.
    Validation,
    /// The real test.
    Final,
}

impl EvalSplit {
    /// Name as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "validation",
            Self::Final => "final",
        }
    }
}

/// Data that a job reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataRef {
    /// A task of the store, whose metric scores the submission.
    Task {
        /// Task.
        task_id: String,
        /// Part of it.
        split: EvalSplit,
    },
    /// An upload.
    Upload {
        /// Its id without `sha256:`.
        hash: String,
    },
    /// A folder below one of the configured roots.
    Folder {
        /// As the request names it.
        name: String,
    },
}

impl DataRef {
    /// Name as stored and shown.
    pub fn name(&self) -> String {
        match self {
            Self::Task { task_id, .. } => task_id.clone(),
            Self::Upload { hash } => format!("sha256:{hash}"),
            Self::Folder { name } => name.clone(),
        }
    }

    /// Part of a task as `sandbox.jobs` keeps it.
    pub fn split(&self) -> &'static str {
        match self {
            Self::Task { split, .. } => split.as_str(),
            Self::Upload { .. } | Self::Folder { .. } => "none",
        }
    }
}

/// What a program must write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Name of the file or folder in its working directory.
    pub name: String,
    /// It is a folder of files, which is collected as one archive.
    pub is_folder: bool,
}

impl From<Submission> for Output {
    fn from(submission: Submission) -> Self {
        Self {
            name: submission.name().to_owned(),
            is_folder: submission == Submission::Folder,
        }
    }
}

/// A request without its program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRequest {
    /// API key that handed it in.
    pub key_id: String,
    /// Name that the user gave the job.
    pub name: String,
    /// Data as the request names it.
    pub data_dir: String,
    /// Data that was found.
    pub data: DataRef,
    /// `eval_split` as asked for.
    pub eval_split: Option<String>,
    /// Longest run in seconds.
    pub timeout: f64,
    /// `cpu` or `gpu`, as asked for.
    pub resource_type: Class,
    /// Class of workers.
    pub class: Class,
    /// 1 is first, 9 last.
    pub priority: u8,
    /// Variables of the program, without those that the service sets.
    pub environment: BTreeMap<String, String>,
    /// Key that makes the request idempotent.
    pub idempotency_key: Option<String>,
    /// Trace of the client.
    pub trace_id: Option<String>,
    /// SHA-256 of the program.
    pub code_hash: String,
    /// Jobs of the user that may run at once.
    pub running_limit: Option<u32>,
    /// What the program must write, as asked for; none for what the data wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
}

impl JobRequest {
    /// SHA-256 of what the client asked for: the same request has the same hash, in whatever order its fields came.
    pub fn hash(&self) -> String {
        let mut canonical = vec![
            json!(self.name),
            json!(self.code_hash),
            json!(self.data_dir),
            json!(self.timeout),
            json!(self.resource_type.as_str()),
            json!(self.priority),
            json!(self.environment.iter().collect::<Vec<_>>()),
            json!(self.eval_split),
        ];
        // A request that says nothing of it has the hash that it had before there was such a field.
        canonical.extend(self.output.as_ref().map(|output| json!(output)));
        sha256_hex(json!(canonical).to_string().as_bytes())
    }
}
