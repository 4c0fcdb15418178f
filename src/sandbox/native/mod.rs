//! The native back end: Linux namespaces and the layers around them.
//!
//! The server starts one small helper process, the *launcher*. For each job the launcher forks a *supervisor*, which
//! makes new namespaces; the first process in them, *init*, builds a root with only the needed paths and starts the
//! program under Landlock and system call filters. The supervisor watches the job and takes out the submission when every
//! process of the jail is dead. A *zygote* can keep an interpreter with its libraries loaded; its children enter jails
//! that are built the same way.

mod capabilities;
mod cgroup;
mod cgroup_removal;
mod client;
mod environment;
mod init;
mod jail;
mod landlock;
mod launcher;
mod live;
mod protocol;
mod root;
mod supervisor;
mod sys;
mod watch;
mod wire;
mod zygote;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use self::capabilities::BACKEND;
use self::client::{Finished, Launcher};
use self::protocol::{Environment, LauncherConfig};
use super::SandboxError;
use super::evaluation;
use super::executor::{Evaluator, Executor};
use super::job::{EvaluationSpec, JobSpec};
use super::launch::Launch;
use super::outcome::{Evaluation, JobEnd, JobOutcome, ResultState};
use super::probe::{Probe, ask};
use super::report::{CapabilityReport, IsolationReport, Layer};
use super::scratch::{Family, InstanceDir};

/// First argument that makes the binary the sandbox helper.
pub(super) const HELPER_COMMAND: &str = "sandbox-helper";

/// Modules that the warm pool loads by default.
pub const DEFAULT_PRELOAD: [&str; 14] = [
    "numpy",
    "pandas",
    "scipy.stats",
    "scipy.sparse",
    "sklearn",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.metrics",
    "sklearn.model_selection",
    "sklearn.pipeline",
    "sklearn.preprocessing",
    "sklearn.compose",
    "sklearn.impute",
    "joblib",
];

/// Options of the native back end.
#[derive(Debug, Clone)]
pub struct NativeOptions {
    /// Python interpreter of candidates and metrics; a virtual environment's is fine.
    pub python: PathBuf,
    /// Root tree that candidates see in the place of the host's files, such as the one of the docker image; `python` is a path in it.
    pub rootfs: Option<PathBuf>,
    /// Program that runs as the helper; by default this program itself.
    pub helper: Option<PathBuf>,
    /// Directory below which job directories are made.
    pub scratch_root: PathBuf,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Use control groups where the machine has some for us.
    pub cgroups: bool,
    /// Refuse to run when a layer of [`Layer::REQUIRED`] is missing.
    pub strict: bool,
    /// Id on the host that candidates get when the server is root.
    pub host_id: u32,
    /// More host paths that candidates may read.
    pub visible: Vec<PathBuf>,
    /// Host paths that must not lie below a visible one, such as the store.
    pub hidden: Vec<PathBuf>,
    /// Modules to load into the warm pool; `None` switches it off.
    pub preload: Option<Vec<String>>,
    /// Cold jails that stand ready.
    pub standby: usize,
    /// Warm jails that stand ready.
    pub warm_standby: usize,
    /// Jobs after which the warm interpreter is replaced.
    pub zygote_jobs: u32,
    /// CPUs that the libraries of a warm job may use, 0 for all: they make up their minds when the pool loads them.
    pub warm_cpus: u32,
}

impl NativeOptions {
    /// The default profile for an interpreter.
    pub fn new(python: impl Into<PathBuf>) -> Self {
        Self {
            python: python.into(),
            rootfs: None,
            helper: None,
            scratch_root: std::env::temp_dir(),
            grace: Duration::from_secs(5),
            cgroups: true,
            strict: true,
            host_id: 65_534,
            visible: Vec::new(),
            hidden: Vec::new(),
            preload: None,
            standby: 1,
            warm_standby: 1,
            zygote_jobs: 500,
            warm_cpus: 0,
        }
    }

    /// The default profile with the warm pool.
    pub fn with_warm_pool(mut self) -> Self {
        self.preload = Some(DEFAULT_PRELOAD.iter().map(|name| (*name).to_owned()).collect());
        self
    }
}

/// Runs jobs and evaluations in native jails.
#[derive(Debug)]
pub struct NativeExecutor {
    options: NativeOptions,
    helper: PathBuf,
    environment: Environment,
    running: Mutex<Option<Running>>,
}

/// A launcher and the directory of its jobs.
#[derive(Debug, Clone)]
struct Running {
    launcher: Arc<Launcher>,
    /// Dropped after the launcher, whose last jobs still use it.
    _instance: Arc<InstanceDir>,
}

impl NativeExecutor {
    /// Examines the interpreter. Nothing is started before the first job.
    pub fn new(options: NativeOptions) -> Result<Self, SandboxError> {
        let helper = match &options.helper {
            Some(helper) => helper.clone(),
            None => std::env::current_exe().map_err(SandboxError::io("find", "the running program"))?,
        };
        let (python, visible, hidden) = (&options.python, &options.visible, &options.hidden);
        let environment = match &options.rootfs {
            Some(root) => Environment::of_tree(root, python, visible, hidden)?,
            None => Environment::of(python, visible, hidden)?,
        };
        Ok(Self {
            options,
            helper,
            environment,
            running: Mutex::new(None),
        })
    }

    /// The launcher, started when there is none or the last one died.
    async fn running(&self) -> Result<Running, SandboxError> {
        let mut running = self.running.lock().await;
        if let Some(running) = running.as_ref().filter(|running| running.launcher.is_alive()) {
            return Ok(running.clone());
        }
        let instance = InstanceDir::create(Family::Processes, &self.options.scratch_root)?;
        let config = LauncherConfig {
            instance_dir: instance.path().to_owned(),
            instance: instance.name().to_owned(),
            host_id: self.options.host_id,
            cgroups: self.options.cgroups,
            strict: self.options.strict,
            grace: self.options.grace,
            environment: self.environment.clone(),
            preload: self.options.preload.clone(),
            zygote_jobs: self.options.zygote_jobs.max(1),
            warm_cpus: self.options.warm_cpus,
        };
        let helper = self.helper.clone();
        let launcher = tokio::task::spawn_blocking(move || Launcher::start(&helper, &config))
            .await
            .map_err(|e| SandboxError::Helper(e.to_string()))??;
        let new = Running {
            launcher: Arc::new(launcher),
            _instance: Arc::new(instance),
        };
        new.launcher.refill(false, self.options.standby);
        if self.options.preload.is_some() {
            new.launcher.refill(true, self.options.warm_standby);
        }
        *running = Some(new.clone());
        Ok(new)
    }

    /// Runs one program in a jail. The flag says whether it was a warm one; `Err` in the result is a set-up failure.
    async fn launch(
        &self,
        launch: Launch,
        warm: bool,
        cancel: &CancellationToken,
    ) -> Result<(bool, Result<Finished, String>), SandboxError> {
        let mut warm = warm && self.options.preload.is_some();
        let mut tries = 0;
        loop {
            if cancel.is_cancelled() {
                return Err(SandboxError::Cancelled);
            }
            let running = self.running().await?;
            let standby = if warm {
                self.options.warm_standby
            } else {
                self.options.standby
            };
            tries += 1;
            let parked = async {
                let mut slot = running.launcher.take_slot(warm, standby)?;
                Ok(slot.wait_parked().await?.map(|()| slot))
            };
            let parked: Result<Result<_, String>, SandboxError> = tokio::select! {
                parked = parked => parked,
                () = cancel.cancelled() => return Err(SandboxError::Cancelled),
            };
            let slot = match parked {
                Ok(Ok(slot)) => slot,
                // A jail that stood ready may have died with its launcher; nothing has run yet, so another will do.
                Err(SandboxError::Helper(reason)) if tries < 3 => {
                    tracing::warn!(reason, "a sandbox slot is lost before its job; taking another");
                    continue;
                }
                Err(error) => return Err(error),
                Ok(Err(reason)) if warm => {
                    tracing::warn!(reason, "the warm pool failed; starting cold");
                    warm = false;
                    continue;
                }
                Ok(Err(reason)) => return Ok((warm, Err(reason))),
            };
            let finished = slot.run(launch, cancel).await;
            running.launcher.refill(warm, standby);
            return match finished {
                Ok(finished) if finished.report.end == JobEnd::Cancelled => Err(SandboxError::Cancelled),
                Ok(finished) => Ok((warm, Ok(finished))),
                // The job may have run: never run it again, say that its end is not known.
                Err(SandboxError::Helper(reason)) => Ok((warm, Err(reason))),
                Err(error) => Err(error),
            };
        }
    }
}

#[async_trait]
impl Executor for NativeExecutor {
    fn name(&self) -> &str {
        BACKEND
    }

    async fn run(&self, job: JobSpec, cancel: &CancellationToken) -> Result<JobOutcome, SandboxError> {
        job.check()?;
        let queued_at = Utc::now();
        let (warm, finished) = self.launch(Launch::candidate(&job), job.warm, cancel).await?;
        Ok(outcome(finished, warm, queued_at))
    }

    async fn capabilities(&self) -> Result<CapabilityReport, SandboxError> {
        Ok(self.running().await?.launcher.report.clone())
    }

    async fn isolation(&self) -> Result<IsolationReport, SandboxError> {
        let report = self.capabilities().await?;
        let available = report
            .layers
            .into_iter()
            .filter(|(layer, c)| c.available && *layer != Layer::WarmPool);
        Ok(IsolationReport::new(
            BACKEND,
            &Layer::REQUIRED,
            available.map(|(layer, c)| (layer, c.enforced_by)).collect(),
        ))
    }

    async fn probe(&self, code: &str, modules: &[String]) -> Result<Probe, SandboxError> {
        // The interpreter of a root tree runs nowhere but inside.
        match self.options.rootfs {
            Some(_) => Ok(Probe::default()),
            None => ask(&self.options.python, code, modules).await,
        }
    }

    async fn sweep(&self) -> Result<usize, SandboxError> {
        let base = self.options.scratch_root.clone();
        tokio::task::spawn_blocking(move || {
            let removed = Family::Processes.sweep(&base);
            cgroup::sweep(|instance| {
                let owner = instance.split('-').next().unwrap_or_default();
                Family::Processes.is_alive(&base, instance) || std::path::Path::new("/proc").join(owner).exists()
            });
            removed
        })
        .await
        .map_err(|e| SandboxError::Helper(e.to_string()))
    }
}

#[async_trait]
impl Evaluator for NativeExecutor {
    async fn evaluate(&self, spec: EvaluationSpec, cancel: &CancellationToken) -> Result<Evaluation, SandboxError> {
        spec.limits.check()?;
        if let Some(missing) = evaluation::missing_input(&spec) {
            return Ok(missing);
        }
        let begin = std::time::Instant::now();
        let (_, finished) = self.launch(Launch::evaluation(&spec), spec.warm, cancel).await?;
        let seconds = begin.elapsed().as_secs_f64();
        Ok(match finished {
            Ok(finished) => evaluation::interpret(&finished.report.end, &finished.stdout.kept, seconds),
            Err(reason) => evaluation::unscored(ResultState::SandboxUnconfirmed, reason, seconds),
        })
    }
}

/// Turns what the supervisor knows into an outcome.
fn outcome(finished: Result<Finished, String>, warm: bool, queued_at: DateTime<Utc>) -> JobOutcome {
    let finished_at = Utc::now();
    let Finished {
        report,
        stdout,
        stderr,
        started_at,
    } = match finished {
        Ok(finished) => finished,
        Err(reason) => return JobOutcome::not_confirmed(reason, BACKEND, queued_at, finished_at),
    };
    let ran = started_at.is_some();
    let (state, detail, submission) = report.end.settle(report.submission);
    JobOutcome {
        cause: report.end.cause(),
        end: report.end,
        state,
        detail,
        exit_code: report.exit_code,
        signal: report.signal,
        oom: report.oom,
        cpu_seconds: ran.then_some(report.cpu_seconds),
        wall_seconds: ran.then_some(report.wall_seconds),
        peak_memory_bytes: ran.then_some(report.peak_memory_bytes),
        stdout,
        stderr,
        submission,
        isolation: report.isolation,
        warm,
        queued_at,
        started_at,
        finished_at,
    }
}

/// Runs the helper; the binary calls it when [`HELPER_COMMAND`] is its first argument.
pub(super) fn helper_main() -> ExitCode {
    launcher::main()
}
