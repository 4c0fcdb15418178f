//! What the router answers where a server answers otherwise.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::service::api::types::{ClassLoads, Job, UploadAnswer, WorkerAnswer};

/// Jobs of all servers, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct JobList {
    /// The jobs; their results have no logs.
    #[schema(value_type = Vec<Job>)]
    pub(super) jobs: Vec<Value>,
    /// Gives the next page; null at the end.
    pub(super) next_cursor: Option<String>,
    /// Servers that did not answer, whose jobs are missing.
    pub(super) unreachable: Vec<String>,
}

/// An upload and the servers that have it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SpreadUpload {
    /// The upload.
    #[serde(flatten)]
    pub(super) upload: UploadAnswer,
    /// Servers that have it.
    pub(super) servers: Vec<String>,
}

/// The workers of all servers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Workers {
    /// One a worker, with the name of its server.
    pub(super) workers_show: Vec<ServerWorker>,
    /// Servers that did not answer, whose workers are missing.
    pub(super) unreachable: Vec<String>,
}

/// A worker and its server.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServerWorker {
    /// Name of its server.
    pub(super) server: String,
    /// The worker.
    #[serde(flatten)]
    pub(super) worker: WorkerAnswer,
}

/// Whether the router works.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// ok, stopping, or unreachable when no server answers.
    pub(super) status: String,
    /// Version of the router.
    pub(super) version: String,
    /// The servers.
    pub(super) servers: Vec<ServerHealth>,
}

/// Whether a server works.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServerHealth {
    /// Its name.
    pub(super) name: String,
    /// It answers.
    pub(super) is_up: bool,
    /// Its load when it told last; null when it does not answer.
    pub(super) load: Option<ClassLoads>,
}

/// The servers, as admins see them.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Servers {
    /// The servers.
    pub(super) servers: Vec<ServerAnswer>,
}

/// A server, as admins see it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServerAnswer {
    /// Its name.
    pub(super) name: String,
    /// Where it is.
    pub(super) url: String,
    /// It gets no new jobs.
    pub(super) drain: bool,
    /// It answers.
    pub(super) is_up: bool,
    /// It is about to end and takes no more jobs.
    pub(super) is_stopping: bool,
    /// It says that it does well, and fails whatever it is asked: it gets no new jobs for a while.
    pub(super) is_failing: bool,
    /// Version of its engine.
    pub(super) version: Option<String>,
    /// Its load when it told last; null when it does not answer.
    pub(super) load: Option<ClassLoads>,
    /// Jobs that it got from this router since it told its load.
    pub(super) placed: u32,
    /// Seconds since it does not answer; null when it does.
    pub(super) down_seconds: Option<f64>,
    /// Why it is taken not to answer.
    pub(super) fault: Option<String>,
}

/// What reading the file again changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(in crate::router) struct Reloaded {
    /// Servers that are new.
    pub(in crate::router) added: Vec<String>,
    /// Servers that are gone.
    pub(in crate::router) removed: Vec<String>,
    /// Servers with another URL, or drained or not as before.
    pub(in crate::router) changed: Vec<String>,
    /// Settings that differ and hold only after a restart.
    pub(in crate::router) needs_restart: Vec<String>,
}
