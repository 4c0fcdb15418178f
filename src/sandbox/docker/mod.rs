//! The container back end: Docker, or Podman through the same interface.
//!
//! A program gets a container without network, capabilities or a writable root; its scratch directory is one of this machine, so
//! that its submission is taken out by the same code as in the native back end. Containers are made ahead for the kind of job
//! that ran last, and are told what to run just before they start.

mod cleaner;
mod container;
pub(super) mod engine;
mod options;
mod run;
mod slot;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use bollard::Docker;
use bollard::query_parameters::ListContainersOptionsBuilder;
use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use self::options::{DockerOptions, Gpus};

use self::cleaner::Cleaner;
use self::container::{BASE_LABEL, INSTANCE_LABEL, USER_LABEL};
use self::run::Ran;
use self::slot::{Maker, Slot};
use super::SandboxError;
use super::collect::collect;
use super::collect_folder::collect_folder;
use super::evaluation;
use super::executor::{Evaluator, Executor};
use super::job::{EvaluationSpec, JobSpec};
use super::launch::{Collection, Launch};
use super::outcome::{Collected, Evaluation, JobEnd, JobOutcome, ResultState};
use super::report::{Capability, CapabilityReport, IsolationReport, Layer};
use super::scratch::{Family, InstanceDir};
use super::seccomp::compile_filters;

const BACKEND: &str = "docker";
/// Layers that every container has.
const REQUIRED: [Layer; 5] = [
    Layer::Namespaces,
    Layer::Filesystem,
    Layer::Privileges,
    Layer::Seccomp,
    Layer::Rlimits,
];

/// Runs jobs and evaluations in containers.
#[derive(Debug)]
pub struct DockerExecutor {
    options: DockerOptions,
    starts: Semaphore,
    // Dropped in this order: what stands ready is handed to the cleaner, which ends, and then the directory goes.
    ready: Arc<Mutex<Vec<Slot>>>,
    engine: OnceCell<Engine>,
}

/// The engine and the directory of this executor's jobs.
#[derive(Debug)]
struct Engine {
    docker: Docker,
    /// Filters on system calls beside the engine's own.
    filters: Vec<String>,
    cleaner: Cleaner,
    instance: Arc<InstanceDir>,
}

impl DockerExecutor {
    /// Nothing is asked of the engine before the first job.
    pub fn new(options: DockerOptions) -> Self {
        Self {
            starts: Semaphore::new(options.starts.max(1)),
            options,
            engine: OnceCell::new(),
            ready: Arc::default(),
        }
    }

    async fn engine(&self) -> Result<&Engine, SandboxError> {
        self.engine
            .get_or_try_init(|| async {
                let docker = engine::connect(self.options.address.as_deref()).await?;
                engine::require_image(&docker, &self.options.image).await?;
                sweep(&docker, &self.options).await?;
                let instance = Arc::new(InstanceDir::create(Family::Containers, &self.options.scratch_root)?);
                let cleaner = Cleaner::start(self.options.address.clone())?;
                Ok(Engine {
                    docker,
                    filters: compile_filters(true).map_err(SandboxError::Helper)?,
                    cleaner,
                    instance,
                })
            })
            .await
    }

    /// A container for a launch: one that stands ready, else a new one.
    async fn slot(&self, engine: &Engine, launch: &Launch) -> Result<Slot, SandboxError> {
        let kind = Slot::kind(launch)?;
        if let Some(kind) = &kind {
            let mut ready = self.ready.lock();
            // What stands ready for another kind would only take up room.
            ready.retain(|slot| slot.kind == *kind);
            if let Some(slot) = ready.pop() {
                return Ok(slot);
            }
        }
        let made = self.make(engine, launch)?;
        made.await
            .map_err(|error| SandboxError::Helper(format!("making a container was broken off: {error}")))?
    }

    /// Makes a container in a task of its own: it must be known, to be removed, also when nobody waits for it any more.
    fn make(&self, engine: &Engine, launch: &Launch) -> Result<JoinHandle<Result<Slot, SandboxError>>, SandboxError> {
        let maker = Maker {
            docker: engine.docker.clone(),
            options: self.options.clone(),
            instance: Arc::clone(&engine.instance),
            remover: engine
                .cleaner
                .remover()
                .ok_or_else(|| SandboxError::Helper("the executor has ended".to_owned()))?,
        };
        let launch = launch.clone();
        Ok(tokio::spawn(async move { maker.make(&launch).await }))
    }

    /// Makes containers for the next jobs of this kind, in the background.
    fn refill(&self, engine: &Engine, launch: &Launch) {
        if !launch.files.is_empty() {
            return;
        }
        for _ in self.ready.lock().len()..self.options.standby {
            let Ok(made) = self.make(engine, launch) else { return };
            let ready = Arc::downgrade(&self.ready);
            tokio::spawn(async move {
                match made.await {
                    // The executor may be gone by now; then the container goes too.
                    Ok(Ok(slot)) => drop(ready.upgrade().map(|ready| ready.lock().push(slot))),
                    Ok(Err(error)) => tracing::warn!(%error, "no container stands ready"),
                    Err(error) => tracing::warn!(%error, "no container stands ready"),
                }
            });
        }
    }

    async fn launch(&self, launch: &Launch, cancel: &CancellationToken) -> Result<(Ran, Option<Taken>), SandboxError> {
        if cancel.is_cancelled() {
            return Err(SandboxError::Cancelled);
        }
        let engine = self.engine().await?;
        let slot = self.slot(engine, launch).await?;
        let context = run::Context {
            filters: &engine.filters,
            starts: &self.starts,
            grace: self.options.grace,
        };
        let ran = run::run(&engine.docker, &slot, launch, &context, cancel).await?;
        let taken = (ran.end.verdict().is_none())
            .then(|| launch.collect.as_ref().map(|what| take(&ran, launch, what)))
            .flatten();
        self.refill(engine, launch);
        if ran.end == JobEnd::Cancelled {
            return Err(SandboxError::Cancelled);
        }
        Ok((ran, taken))
    }

    fn layers(&self) -> BTreeMap<Layer, String> {
        let runtime = self.options.runtime.as_deref().unwrap_or("the engine's runtime");
        [
            (Layer::Namespaces, format!("container of {runtime}, no network")),
            (
                Layer::Filesystem,
                format!("read-only root of image {}", self.options.image),
            ),
            (Layer::Privileges, "no capabilities, no_new_privs".to_owned()),
            (
                Layer::Seccomp,
                "the engine's profile and a list of refused calls".to_owned(),
            ),
            (Layer::Rlimits, "CORE, FSIZE, NOFILE, CPU".to_owned()),
            (Layer::Memory, "control group".to_owned()),
            (Layer::Processes, "control group".to_owned()),
            (Layer::Cpus, "control group".to_owned()),
            (Layer::Disk, "RLIMIT_FSIZE and polling".to_owned()),
        ]
        .into()
    }
}

type Taken = Result<Collected, String>;

fn take(ran: &Ran, launch: &Launch, what: &Collection) -> Taken {
    let limit = launch.limits.submission_bytes;
    if what.is_folder {
        collect_folder(&ran.scratch, &what.name, limit, &what.target)
    } else {
        collect(&ran.scratch, &what.name, limit, &what.target)
    }
}

#[async_trait]
impl Executor for DockerExecutor {
    fn name(&self) -> &str {
        BACKEND
    }

    async fn run(&self, job: JobSpec, cancel: &CancellationToken) -> Result<JobOutcome, SandboxError> {
        job.check()?;
        let queued_at = Utc::now();
        match self.launch(&Launch::candidate(&job), cancel).await {
            Ok((ran, taken)) => Ok(self.outcome(ran, taken, queued_at)),
            // The job may have run: never run it again, say that its end is not known.
            Err(SandboxError::Helper(reason)) => Ok(JobOutcome::not_confirmed(reason, BACKEND, queued_at, Utc::now())),
            Err(error) => Err(error),
        }
    }

    async fn capabilities(&self) -> Result<CapabilityReport, SandboxError> {
        let engine = self.engine().await?;
        let version = engine.docker.client_version().to_string();
        let capability = |enforced_by: String| Capability {
            available: true,
            version: Some(format!("API {version}")),
            enforced_by,
            advice: None,
        };
        Ok(CapabilityReport {
            backend: BACKEND.to_owned(),
            usable: true,
            summary: None,
            layers: self
                .layers()
                .into_iter()
                .map(|(layer, by)| (layer, capability(by)))
                .collect(),
        })
    }

    async fn isolation(&self) -> Result<IsolationReport, SandboxError> {
        self.engine().await?;
        Ok(IsolationReport::new(BACKEND, &REQUIRED, self.layers()))
    }

    async fn sweep(&self) -> Result<usize, SandboxError> {
        let base = self.options.scratch_root.clone();
        // Most machines have no engine: it is asked only where somebody who used it is dead.
        if Family::Containers.dead(&base).is_empty() {
            return Ok(0);
        }
        let docker = match engine::connect(self.options.address.as_deref()).await {
            Ok(docker) => docker,
            Err(error) => {
                tracing::warn!(%error, "containers of a process that was killed may be left");
                return Ok(0);
            }
        };
        let containers = sweep(&docker, &self.options).await?;
        let directories = tokio::task::spawn_blocking(move || Family::Containers.sweep(&base))
            .await
            .map_err(|e| SandboxError::Helper(e.to_string()))?;
        Ok(containers + directories)
    }
}

impl DockerExecutor {
    fn outcome(&self, ran: Ran, taken: Option<Taken>, queued_at: DateTime<Utc>) -> JobOutcome {
        let (state, detail, submission) = ran.end.settle(taken);
        JobOutcome {
            cause: ran.end.cause(),
            end: ran.end,
            state,
            detail,
            exit_code: ran.exit_code,
            signal: None,
            oom: ran.oom,
            cpu_seconds: Some(ran.cpu_seconds),
            wall_seconds: Some(ran.wall_seconds),
            peak_memory_bytes: Some(ran.peak_memory_bytes),
            stdout: ran.stdout,
            stderr: ran.stderr,
            submission,
            isolation: IsolationReport::new(BACKEND, &REQUIRED, self.layers()),
            warm: false,
            queued_at,
            started_at: Some(ran.started_at),
            finished_at: Utc::now(),
        }
    }
}

#[async_trait]
impl Evaluator for DockerExecutor {
    async fn evaluate(&self, spec: EvaluationSpec, cancel: &CancellationToken) -> Result<Evaluation, SandboxError> {
        spec.limits.check()?;
        if let Some(missing) = evaluation::missing_input(&spec) {
            return Ok(missing);
        }
        let begin = std::time::Instant::now();
        let launched = self.launch(&Launch::evaluation(&spec), cancel).await;
        let seconds = begin.elapsed().as_secs_f64();
        match launched {
            Ok((ran, _)) => Ok(evaluation::interpret(&ran.end, &ran.stdout.kept, seconds)),
            Err(SandboxError::Helper(reason)) => {
                Ok(evaluation::unscored(ResultState::SandboxUnconfirmed, reason, seconds))
            }
            Err(error) => Err(error),
        }
    }
}

/// Removes the containers of executors that are dead; gives how many.
async fn sweep(docker: &Docker, options: &DockerOptions) -> Result<usize, SandboxError> {
    let base = options.scratch_root.clone();
    let labels = [
        format!("{BASE_LABEL}={}", base.display()),
        format!("{USER_LABEL}={}", rustix::process::geteuid().as_raw()),
    ];
    let filters = HashMap::from([("label", labels.to_vec())]);
    let list = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let containers = docker
        .list_containers(Some(list))
        .await
        .map_err(|error| engine::fault("list its containers", &error))?;
    let mut removed = 0;
    for container in containers {
        let instance = container.labels.as_ref().and_then(|labels| labels.get(INSTANCE_LABEL));
        let is_left = instance.is_some_and(|instance| !Family::Containers.is_alive(&base, instance));
        if let Some(id) = container.id.filter(|_| is_left)
            && cleaner::remove(docker, &id).await
        {
            removed += 1;
        }
    }
    Ok(removed)
}
