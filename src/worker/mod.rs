//! A worker on another machine than its server: it asks for jobs, runs their programs in its sandbox, and hands in what they wrote.
//! Only it opens connections. It sees no hidden answer, no metric and no store. See `docs/service.md`.

mod backoff;
mod cache;
mod error;
mod job;
mod server;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub use self::error::{Fault, WorkerError};

use self::backoff::Backoff;
use self::cache::DataCache;
use self::server::Server;
use crate::scheduler::{ENGINE_VERSION, Sandbox, fresh_id, host_name, sweep_work_dir};
use crate::service::fleet::wire::{Attempt, Join, Joined, Slots};
use crate::service::{Class, LiveJob, LiveJobs, check_sandbox};

/// Time to say good-bye.
const LEAVE_TIME: Duration = Duration::from_secs(5);

/// How a worker is run.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Address of the server.
    pub server: String,
    /// API key.
    pub key: String,
    /// Send the key without TLS to another machine.
    pub insecure: bool,
    /// Jobs that run at once without a GPU.
    pub slots: u32,
    /// Jobs that run at once with a GPU.
    pub gpu_slots: u32,
    /// Folder of data and work.
    pub cache: PathBuf,
    /// Bytes of data that are kept there for later jobs.
    pub cache_bytes: u64,
    /// Start programs from the warm pool.
    pub warm: bool,
}

/// A worker.
#[derive(Debug)]
pub struct Worker {
    server: Server,
    sandbox: Sandbox,
    facts: Join,
    cache: DataCache,
    warm: bool,
    live: Arc<LiveJobs>,
    held: Mutex<HashMap<String, Held>>,
    stop: CancellationToken,
}

/// A job that this worker has.
#[derive(Debug)]
struct Held {
    attempt: u32,
    job: Arc<LiveJob>,
    /// It is another's by now.
    is_lost: bool,
}

impl Worker {
    /// Prepares a worker, which ends with `stop`: its sandbox works and its folder can be written.
    ///
    /// # Errors
    /// When one of these cannot be had.
    pub async fn open(sandbox: Sandbox, options: WorkerOptions, stop: CancellationToken) -> Result<Self, WorkerError> {
        check_sandbox(&sandbox).await?;
        let report = sandbox.executor.capabilities().await?;
        let available = report.layers.iter().filter(|(_, capability)| capability.available);
        let capabilities = available.map(|(layer, _)| layer.as_str().to_owned()).collect();
        let cache = DataCache::open(&options.cache, options.cache_bytes)?;
        sweep_work_dir(cache.work_dir());
        sandbox.executor.sweep().await?;
        let (host, instance) = (plain(&host_name()), fresh_id());
        let (_, short) = instance.split_at(instance.len().saturating_sub(8));
        let worker_id = format!("{host}-{short}");
        Ok(Self {
            server: Server::new(&options.server, options.key, worker_id.clone(), options.insecure)?,
            facts: Join {
                worker_id,
                host,
                version: ENGINE_VERSION.to_owned(),
                slots: Slots {
                    cpu: options.slots,
                    gpu: options.gpu_slots,
                },
                backend: sandbox.executor.name().to_owned(),
                capabilities,
                jobs: Vec::new(),
            },
            sandbox,
            cache,
            warm: options.warm,
            live: Arc::default(),
            held: Mutex::default(),
            stop,
        })
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.facts.worker_id
    }

    /// Works until it is stopped: then it gives back what it runs, and leaves. `joined` is called when the server has taken it in.
    ///
    /// # Errors
    /// When the server does not take it.
    pub async fn run(self, joined: impl FnOnce(&Self)) -> Result<(), WorkerError> {
        let Some(first) = self.join().await? else {
            return Ok(());
        };
        joined(&self);
        let worker = Arc::new(self);
        let mut slots = JoinSet::new();
        for class in Class::ALL {
            for _ in 0..worker.facts.slots.of(class) {
                slots.spawn(job::slot(Arc::clone(&worker), class));
            }
        }
        let ended = worker.heartbeats(first).await;
        worker.stop.cancel();
        while let Some(slot) = slots.join_next().await {
            slot?;
        }
        match timeout(LEAVE_TIME, worker.server.leave()).await {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => warn!(%fault, "the server could not be told that this worker leaves"),
            Err(_) => warn!("the server could not be told in time that this worker leaves"),
        }
        ended
    }

    /// Joins, as often as it takes; none when it is stopped before.
    async fn join(&self) -> Result<Option<Joined>, WorkerError> {
        let mut backoff = Backoff::default();
        while !self.stop.is_cancelled() {
            let facts = Join {
                jobs: self.attempts(),
                ..self.facts.clone()
            };
            let joined = tokio::select! {
                joined = self.server.join(&facts) => joined,
                () = self.stop.cancelled() => return Ok(None),
            };
            match joined {
                Ok(joined) => {
                    self.lose(&joined.lost);
                    return Ok(Some(joined));
                }
                Err(fault) if fault.passes() => {
                    warn!(%fault, "the server cannot be joined; trying again");
                    backoff.pause(&self.stop).await;
                }
                Err(fault) => return Err(WorkerError::Refused(fault)),
            }
        }
        Ok(None)
    }

    /// Gives signs of life until it is stopped, and does what the server says about its jobs.
    async fn heartbeats(&self, first: Joined) -> Result<(), WorkerError> {
        let every = |joined: &Joined| Duration::from_secs_f64(joined.heartbeat_seconds.clamp(0.1, 60.0));
        let mut pause = every(&first);
        let mut backoff = Backoff::default();
        let mut is_draining = false;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stop.cancelled() => return Ok(()),
            }
            let orders = tokio::select! {
                orders = self.server.heartbeat(self.attempts()) => orders,
                () = self.stop.cancelled() => return Ok(()),
            };
            match orders {
                Ok(orders) => {
                    backoff.reset();
                    if orders.drain != is_draining {
                        info!(drain = orders.drain, "whether this worker gets jobs has changed");
                    }
                    is_draining = orders.drain;
                    for job_id in &orders.cancel {
                        if let Some(held) = self.held.lock().get(job_id) {
                            held.job.cancel();
                        }
                    }
                    self.lose(&orders.lost);
                }
                Err(fault) if fault.is_unknown_worker() => {
                    warn!("the server began anew; joining again");
                    match self.join().await? {
                        Some(joined) => pause = every(&joined),
                        None => return Ok(()),
                    }
                }
                Err(fault) if fault.passes() => {
                    warn!(%fault, "the server does not answer; trying again");
                    backoff.pause(&self.stop).await;
                }
                Err(fault) => return Err(WorkerError::Refused(fault)),
            }
        }
    }

    /// Jobs that it has.
    fn attempts(&self) -> Vec<Attempt> {
        let held = self.held.lock();
        let attempt = |(job_id, held): (&String, &Held)| Attempt {
            job_id: job_id.clone(),
            attempt: held.attempt,
        };
        held.iter().map(attempt).collect()
    }

    /// Breaks off jobs that are no longer its own.
    fn lose(&self, jobs: &[String]) {
        let mut held = self.held.lock();
        for job_id in jobs {
            if let Some(held) = held.get_mut(job_id) {
                held.is_lost = true;
                held.job.token().cancel();
            }
        }
    }

    fn is_lost(&self, job_id: &str) -> bool {
        self.held.lock().get(job_id).is_none_or(|held| held.is_lost)
    }
}

/// A host name with nothing in it but what ids may have.
fn plain(host: &str) -> String {
    let text: String = host
        .chars()
        .take(64)
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
                c
            } else {
                '-'
            }
        })
        .collect();
    if text.is_empty() { "host".to_owned() } else { text }
}
