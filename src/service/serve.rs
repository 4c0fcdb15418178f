//! A server from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use axum_server::Handle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::access::{Access, DefaultQuotas};
use super::api::{Shared, router};
use super::chat::ChatModels;
use super::error::{Result, ServiceError};
use super::figures::Figures;
use super::fleet::{Fleet, FleetParts};
use super::listen::{Listener, Tls};
use super::queue::{Class, JobSource, Queue, QueueLimits, Worker};
use super::run::{Board, DataFinder, LiveJobs, Runner, work};
use super::submissions::{KeepLimits, Submissions};
use super::uploads::{UploadLimits, Uploads};
use crate::engine::Engine;
use crate::sandbox::Layer;
use crate::scheduler::{fresh_id, host_name};

/// Time that answers have after the stop.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Shortest and longest time between two looks for jobs whose workers are gone.
const RECOVER_EVERY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(15)];
/// The same in turns, for jobs that ended long ago.
const FORGET_EVERY: u64 = 240;

/// How a server is run; the rest is in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeOptions {
    /// Address and port.
    pub address: String,
    /// Name of the back end.
    pub executor: String,
    /// Workers of the server itself; none where all jobs run on other machines.
    pub workers: u32,
    /// Certificate and key; plain HTTP without.
    pub tls: Option<Tls>,
    /// Serve an address that is not loopback without TLS.
    pub insecure: bool,
}

/// A server that is about to listen.
#[derive(Debug)]
pub struct Service {
    listener: Listener,
    app: Arc<Shared>,
    runner: Arc<Runner>,
    workers: Vec<Worker>,
    /// Key of the first start; nowhere else.
    first_key: Option<String>,
}

impl Service {
    /// Prepares a server: its address is taken, its sandbox works, and jobs of a killed server wait again.
    ///
    /// # Errors
    /// When one of these cannot be had.
    pub async fn open(engine: &Engine, options: &ServeOptions) -> Result<Self> {
        let services = Arc::clone(engine.scheduler().services());
        let config = engine.config().service.clone();
        let sandbox = services.sandbox(&options.executor)?.clone();
        check_sandbox(&sandbox).await?;
        let listener = Listener::open(&options.address, options.tls.as_ref(), options.insecure).await?;
        let store = engine.store().clone();
        let live = Arc::new(LiveJobs::default());
        let figures = Arc::new(Figures::default());
        let limits = QueueLimits {
            waiting: config.queue_limit,
            attempts: config.max_attempts,
            keep: config.keep_time(),
            lease: config.lease(),
        };
        let queue = Queue::open(Arc::clone(&services), limits, Arc::clone(&live), Arc::clone(&figures)).await?;
        let limits = UploadLimits {
            bytes: config.upload_size.bytes(),
            files: config.upload_files,
            depth: config.upload_depth,
            total: config.uploads_size.bytes(),
        };
        let uploads = Arc::new(Uploads::open(store.dir().join("uploads"), limits).await?);
        let limits = KeepLimits {
            time: config.keep_submission_time(),
            total: config.submissions_bytes.bytes(),
        };
        let submissions = Arc::new(Submissions::open(store.dir().join("submissions"), limits).await?);
        submissions.sweep(&queue).await?;
        let finder = || DataFinder::new(Arc::clone(&services), Arc::clone(&uploads), config.data_roots());
        let defaults = DefaultQuotas {
            queued: config.queued_per_user,
            running: config.running_per_user,
            requests_per_minute: config.requests_per_minute,
        };
        let access = Access::new(Arc::clone(engine.queries()), defaults);
        let first_key = access.first_key(&store, services.now()).await?;
        let runner = Runner {
            services: Arc::clone(&services),
            backend: options.executor.clone(),
            sandbox,
            data: finder()?,
            live: Arc::clone(&live),
            submissions: Arc::clone(&submissions),
            warm: engine.config().sandbox.warm,
            extend_every: config.lease() / 6,
        };
        let queue = Arc::new(queue);
        let stop = CancellationToken::new();
        let fleet = Fleet::new(FleetParts {
            queue: Arc::clone(&queue),
            services: Arc::clone(&services),
            sandbox: runner.sandbox.clone(),
            data: finder()?,
            live: Arc::clone(&live),
            submissions: Arc::clone(&submissions),
            warm: runner.warm,
            quarantine_after: config.quarantine_after,
            probe_every: config.probe_time(),
            stop: stop.clone(),
        });
        let app = Shared {
            data: finder()?,
            usual_seconds: engine.config().sandbox.wall_seconds as f64,
            queries: Arc::clone(engine.queries()),
            board: Arc::default(),
            fleet: Arc::new(fleet),
            executor: options.executor.clone(),
            queue,
            stop,
            services: Arc::clone(&services),
            uploads,
            places: Arc::default(),
            submissions,
            figures,
            chat: ChatModels::default(),
            access,
            config,
            store,
            live,
        };
        let workers = workers(&services.owner, options.workers, app.config.gpu_workers);
        Ok(Self {
            listener,
            runner: Arc::new(runner),
            app: Arc::new(app),
            workers,
            first_key,
        })
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        self.listener.url()
    }

    /// The key that was made because the store had none. It is told once.
    pub fn first_key(&mut self) -> Option<String> {
        self.first_key.take()
    }

    /// Number of its workers.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Serves until `stop` is cancelled: then no more jobs are taken, those that run go back into the queue, and answers in flight
    /// are ended.
    ///
    /// # Errors
    /// When the server fails.
    pub async fn run(self, stop: CancellationToken) -> Result<()> {
        let Self {
            listener,
            app,
            runner,
            workers,
            ..
        } = self;
        let handle = Handle::new();
        let server = tokio::spawn(listener.serve(router(Arc::clone(&app)), handle.clone(), app.config.head_time()));
        let board: Arc<Board> = Arc::clone(&app.board);
        let mut running = JoinSet::new();
        for worker in workers {
            let source: Arc<dyn JobSource> = Arc::clone(&app.queue) as _;
            running.spawn(work(
                source,
                Arc::clone(&runner),
                worker,
                Arc::clone(&board),
                app.stop.clone(),
            ));
        }
        let tidying = tokio::spawn(tidy(Arc::clone(&app)));
        let mut server = std::pin::pin!(server);
        let mut ended = None;
        tokio::select! {
            () = stop.cancelled() => {}
            end = &mut server => ended = Some(end),
        }
        app.queue.close();
        app.stop.cancel();
        while let Some(worker) = running.join_next().await {
            worker?;
        }
        app.fleet.close().await;
        tidying.abort();
        handle.graceful_shutdown(Some(ANSWER_LIMIT));
        match ended {
            Some(end) => end?.map_err(ServiceError::Server),
            None => server.await?.map_err(ServiceError::Server),
        }
    }
}

/// Refuses a back end that cannot shut programs in here, or does so elsewhere.
///
/// # Errors
/// When a layer is missing; the message says which, and what to do.
pub async fn check_sandbox(sandbox: &crate::scheduler::Sandbox) -> Result<()> {
    if sandbox.executor.runs_elsewhere() {
        return Err(ServiceError::Config(format!(
            "the sandbox {} hands programs to a job service, so neither a job service nor a worker can run with it: name native, docker or \
             process with --executor",
            sandbox.executor.name()
        )));
    }
    let report = sandbox.executor.capabilities().await?;
    if report.usable {
        return Ok(());
    }
    let missing = report.first_missing(&Layer::REQUIRED);
    let (layer, advice) = missing.map_or(("a layer", String::new()), |(layer, capability)| {
        (layer.as_str(), capability.advice.clone().unwrap_or_default())
    });
    Err(ServiceError::Config(format!(
        "the sandbox {} cannot run here: {layer} is missing. {advice}; `clade doctor` lists every layer",
        report.backend
    )))
}

fn workers(owner: &str, count: u32, gpu_count: u32) -> Vec<Worker> {
    let instance = fresh_id();
    let host = host_name();
    let (_, short) = instance.split_at(instance.len().saturating_sub(6));
    let named = |class: Class, count: u32| {
        let (host, owner, short) = (host.clone(), owner.to_owned(), short.to_owned());
        (1..=count).map(move |number| Worker {
            worker_id: format!("{host}-{short}-{}{number}", class.as_str()),
            owner: owner.clone(),
            class,
        })
    };
    named(Class::Cpu, count).chain(named(Class::Gpu, gpu_count)).collect()
}

/// Looks for jobs whose workers are gone, those on other machines and those of a process that shared the store and was killed, and
/// forgets old ones, and old submissions.
async fn tidy(app: Arc<Shared>) {
    let (queue, submissions) = (&app.queue, &app.submissions);
    let [shortest, longest] = RECOVER_EVERY;
    let every = (queue.lease() / 4).clamp(shortest, longest);
    for turn in 1_u64.. {
        tokio::time::sleep(every).await;
        app.fleet.sweep();
        submissions.forget_old();
        match queue.recover().await {
            Ok(0) => {}
            Ok(count) => warn!(count, "jobs of workers that are gone wait again"),
            Err(error) => warn!(%error, "jobs of workers that are gone could not be looked for"),
        }
        if turn.is_multiple_of(FORGET_EVERY)
            && let Err(error) = queue.forget_old().await
        {
            warn!(%error, "jobs that ended long ago could not be forgotten");
        }
        if turn.is_multiple_of(FORGET_EVERY)
            && let Err(error) = submissions.sweep(queue).await
        {
            warn!(%error, "submissions that belong to no job could not be looked for");
        }
    }
}
