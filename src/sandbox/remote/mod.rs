//! The back end that hands programs to a job service: `clade serve` on another machine, or a router in front of several. It is a client
//! like any other. The public data of a task is sent once; its metric and its hidden answers stay here, where the submission that comes
//! back is scored by another back end.

mod answers;
mod data;
mod fault;
mod follow;
mod leaving;
mod notes;
mod options;
mod run;
mod service;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use reqwest::header::HeaderValue;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub use self::options::{RemoteOptions, ResourceType};

use self::answers::WorkerAnswer;
use self::data::Data;
use self::fault::Fault;
use self::leaving::Leaving;
use self::notes::{Notes, OpenJob};
use self::service::{Service, sensitive};
use super::SandboxError;
use super::executor::Executor;
use super::job::JobSpec;
use super::outcome::JobOutcome;
use super::report::{CapabilityReport, Grade, IsolationReport};
use crate::scheduler::ENGINE_VERSION;
use crate::service::versions_suit;

const BACKEND: &str = "remote";
/// Name of the back end without isolation.
const UNSANDBOXED: &str = "process";
/// Time that the jobs of dead processes may take when this one starts.
const SWEEP_TIME: Duration = Duration::from_secs(5);

/// Runs jobs on a job service.
#[derive(Debug)]
pub struct RemoteExecutor {
    options: RemoteOptions,
    /// A key of the caller's; none for that of the environment.
    key: Option<HeaderValue>,
    service: OnceCell<Arc<Service>>,
    parts: Parts,
    /// What the last job was shut in by.
    last: Mutex<Option<IsolationReport>>,
}

/// What all jobs share beside the service.
#[derive(Debug)]
struct Parts {
    data: Data,
    /// Ends before the folder of the notes goes.
    leaving: Arc<Leaving>,
    notes: Notes,
}

impl RemoteExecutor {
    /// Nothing is asked of the service before the first job.
    pub fn new(options: RemoteOptions) -> Self {
        Self {
            parts: Parts {
                data: Data::default(),
                notes: Notes::new(options.notes.clone()),
                leaving: Arc::default(),
            },
            options,
            key: None,
            service: OnceCell::new(),
            last: Mutex::default(),
        }
    }

    /// The same with a key of the caller's in the place of that of the environment.
    ///
    /// # Errors
    /// When it cannot be a key.
    pub fn with_key(options: RemoteOptions, key: &str) -> Result<Self, SandboxError> {
        let key =
            sensitive(key).ok_or_else(|| SandboxError::Config("the key of the job service is no key".to_owned()))?;
        Ok(Self {
            key: Some(key),
            ..Self::new(options)
        })
    }

    fn connect(&self) -> Result<Service, SandboxError> {
        Service::new(&self.options, self.key.as_ref())
    }

    /// The service, which is one of a version that this one understands.
    async fn service(&self, cancel: &CancellationToken) -> Result<&Arc<Service>, SandboxError> {
        self.service
            .get_or_try_init(|| async {
                let service = self.connect()?;
                let health = service.insist(cancel, || service.health()).await?;
                if !versions_suit(&health.version) {
                    return Err(SandboxError::Config(format!(
                        "the job service at {} has version {}, and this is {ENGINE_VERSION}: the first two numbers must be the same",
                        self.options.url, health.version
                    )));
                }
                Ok(Arc::new(service))
            })
            .await
    }
}

#[async_trait]
impl Executor for RemoteExecutor {
    fn name(&self) -> &str {
        BACKEND
    }

    fn runs_elsewhere(&self) -> bool {
        true
    }

    async fn run(&self, job: JobSpec, cancel: &CancellationToken) -> Result<JobOutcome, SandboxError> {
        job.check()?;
        let service = tokio::select! {
            service = self.service(cancel) => service?,
            () = cancel.cancelled() => return Err(SandboxError::Cancelled),
        };
        let outcome = run::run(service, &self.parts, &job, cancel).await?;
        *self.last.lock() = Some(outcome.isolation.clone());
        Ok(outcome)
    }

    async fn capabilities(&self) -> Result<CapabilityReport, SandboxError> {
        // Asked once: whoever looks wants to know how it is now.
        let service = self.connect()?;
        let health = service.health().await.map_err(|fault| self.now(&service, fault))?;
        let workers = service.workers().await.map_err(|fault| self.now(&service, fault))?;
        let (summary, slots) = summary(&self.options, &workers);
        Ok(CapabilityReport {
            backend: BACKEND.to_owned(),
            usable: slots > 0 && versions_suit(&health.version),
            summary: Some(format!(
                "{} has version {}: {summary}",
                self.options.url, health.version
            )),
            layers: std::collections::BTreeMap::new(),
        })
    }

    /// What the last job was shut in by. Before the first one only the names of the back ends are known, which is not enough for a good
    /// grade.
    async fn isolation(&self) -> Result<IsolationReport, SandboxError> {
        if let Some(last) = self.last.lock().clone() {
            return Ok(last);
        }
        let never = CancellationToken::new();
        let service = self.service(&never).await?;
        let workers = service.insist(&never, || service.workers()).await?;
        if workers.iter().any(|worker| worker.executor == UNSANDBOXED) {
            return Ok(IsolationReport::unsandboxed(UNSANDBOXED));
        }
        Ok(IsolationReport {
            backend: BACKEND.to_owned(),
            grade: Grade::Partial,
            layers: std::collections::BTreeMap::new(),
        })
    }

    /// Cancels the jobs that dead processes have left at the service.
    async fn sweep(&self) -> Result<usize, SandboxError> {
        let left = self.parts.notes.left();
        if left.is_empty() {
            return Ok(0);
        }
        let service = match self.connect() {
            Ok(service) => service,
            Err(error) => {
                tracing::warn!(jobs = left.len(), %error, "jobs of a process that was killed may run on at the job service");
                return Ok(0);
            }
        };
        let mut count = 0;
        let cancelling = async {
            for (note, job) in left {
                if job.url != service.options.url {
                    tracing::warn!(
                        url = job.url,
                        job = job.name,
                        "a job of a process that was killed may run on at another service"
                    );
                } else if let Err(fault) = cancel_open(&service, &job).await {
                    tracing::warn!(
                        job = job.name,
                        %fault,
                        "a job of a process that was killed may run on; the next start tries again"
                    );
                    continue;
                }
                notes::remove_left(&note);
                count += 1;
            }
        };
        if timeout(SWEEP_TIME, cancelling).await.is_err() {
            tracing::warn!("jobs of a process that was killed may run on; the next start tries again");
        }
        Ok(count)
    }
}

impl RemoteExecutor {
    /// The error of somebody who does not wait for anything to pass.
    fn now(&self, service: &Service, fault: Fault) -> SandboxError {
        match fault {
            Fault::Unreachable(reason) => SandboxError::Service {
                url: self.options.url.clone(),
                reason: format!("does not answer: {reason}"),
                advice: "See that it runs and that sandbox.remote.url is right".to_owned(),
            },
            fault => service.error(fault),
        }
    }
}

/// Cancels what runs or waits under a name and a key.
async fn cancel_open(service: &Service, job: &OpenJob) -> Result<(), Fault> {
    for open in service.open_jobs(&job.name).await? {
        if open.idempotency_key.as_deref() == Some(&job.key) {
            service.cancel(&open.job_id).await?;
        }
    }
    Ok(())
}

/// The workers in words, and the slots that take jobs of ours.
fn summary(options: &RemoteOptions, workers: &[WorkerAnswer]) -> (String, u32) {
    let works = |worker: &&WorkerAnswer| {
        worker.class == options.resource_type.as_str()
            && !matches!(worker.status.as_str(), "lost" | "quarantined" | "draining")
    };
    let ours: Vec<&WorkerAnswer> = workers.iter().filter(works).collect();
    let slots: u32 = ours.iter().map(|worker| worker.slots).sum();
    let class = options.resource_type.as_str();
    if slots == 0 {
        return (format!("no worker takes {class} jobs now"), 0);
    }
    let mut executors: Vec<&str> = ours.iter().map(|worker| worker.executor.as_str()).collect();
    executors.sort_unstable();
    executors.dedup();
    let warning = match executors.contains(&UNSANDBOXED) {
        true => "; process has no isolation: for programs you trust",
        false => "",
    };
    let plural = if slots == 1 { "" } else { "s" };
    (
        format!("{slots} {class} slot{plural} ({}){warning}", executors.join(", ")),
        slots,
    )
}
