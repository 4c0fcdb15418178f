//! Opening the engine on a store.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use clade_catalog::{Clock, ColdLocation, MaintenanceOptions, S3Location, Store, StoreOptions, SystemClock};
use datafusion::execution::SessionState;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::defaults::Defaults;
use super::error::{EngineError, Result};
use super::expand_handler::SchedulerExpandHandler;
use super::folder::check_folder;
use super::history::StoreHistory;
use super::leases_table::LeasesTable;
use super::models::ModelsOfStore;
use super::models_table::ModelsTable;
use super::policies::{PoliciesTable, PolicyCache};
use super::recordings::StoreRecordings;
use super::session::{Session, SessionOptions};
use super::settings_table::SettingsTable;
use crate::config::{Config, Loaded};
use crate::model::{Evolver, Generator, ModelAccess, ModelRegistry, Replay};
use crate::operators::Interpreter;
use crate::plan::ExpandHandler;
use crate::policy::{PolicyCompare, PolicyTrace};
use crate::sandbox::{
    DockerExecutor, DockerOptions, Limits, NativeExecutor, NativeOptions, ProcessExecutor, ProcessOptions,
    RemoteExecutor, RemoteOptions,
};
use crate::scheduler::{
    Overviews, Sandbox, Sandboxes, Scheduler, Services, SummariesInWork, sweep_work_dir, this_process,
};
use crate::session::{Catalog, Queries, build};

/// How the store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// The store must exist.
    Existing,
    /// The store must exist and is not written.
    ReadOnly,
    /// The store is made.
    Create,
    /// The store is made when it does not exist.
    CreateIfMissing,
}

/// What a program that embeds the engine adds to it, or puts in the place of what is built in.
#[derive(Debug, Clone, Default)]
pub struct Extensions {
    /// Generators, under their own names.
    pub models: Vec<Arc<dyn Generator>>,
    /// Sandboxes by name.
    pub sandboxes: Sandboxes,
    /// Source of time.
    pub clock: Option<Arc<dyn Clock>>,
}

/// A store with everything that works on it.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    store: Store,
    queries: Arc<Queries>,
    scheduler: Arc<Scheduler>,
    defaults: Arc<Defaults>,
    base: SessionState,
    pub(super) catalog: Arc<Catalog>,
    pub(super) policy_cache: PolicyCache,
    background: TaskTracker,
    runtime: Handle,
}

impl Engine {
    /// Opens the engine on the configured store.
    ///
    /// # Errors
    /// When the store does not open, or the configuration names things that do not exist.
    pub async fn open(loaded: &Loaded, mode: OpenMode) -> Result<Arc<Self>> {
        Self::open_with(loaded, mode, Extensions::default()).await
    }

    /// Opens the engine with generators, sandboxes or a clock of the caller's.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub async fn open_with(loaded: &Loaded, mode: OpenMode, extensions: Extensions) -> Result<Arc<Self>> {
        Self::open_parts(loaded, mode, extensions)
            .await
            .map_err(|error| error.with_database(&loaded.config.store.path))
    }

    async fn open_parts(loaded: &Loaded, mode: OpenMode, extensions: Extensions) -> Result<Arc<Self>> {
        let config = loaded.config.clone();
        let clock = extensions.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let store = open_store(&config, mode, &clock)?;
        let (mut base, catalog) = build(&store, vec![("sandbox", Arc::new(LeasesTable(store.clone())))]).await?;
        let queries = Arc::new(Queries::new(store.clone(), base.clone()));
        let history = Arc::new(StoreHistory::new(store.clone(), Arc::clone(&queries)));
        base.register_udtf("policy_trace", Arc::new(PolicyTrace::new(Arc::clone(&history) as _)));
        base.register_udtf("policy_compare", Arc::new(PolicyCompare::new(history)));
        let models = models(&config, &store, &queries, extensions.models)?;
        let hidden = std::path::absolute(&config.store.path).map_err(|source| EngineError::Io {
            path: config.store.path.clone(),
            source,
        })?;
        let mut sandboxes = sandboxes(&config, hidden)?;
        sandboxes.extend(extensions.sandboxes);
        let (prompts, memory_prompts) = super::prompts::prompts(&config, &queries).await?;
        let services = Arc::new(Services {
            candidate_limits: candidate_limits(&config),
            evaluation_limits: evaluation_limits(&config),
            job_slots: Semaphore::new(
                usize::try_from(config.sandbox.effective_concurrency())
                    .unwrap_or(1)
                    .max(1),
            ),
            work_dir: work_dir(&store),
            clock: Arc::clone(&clock),
            owner: this_process(),
            prompts,
            memory_prompts,
            summaries: SummariesInWork::default(),
            interpreter: Interpreter::new(
                interpreter(&config)?,
                (mode != OpenMode::ReadOnly).then(|| store.dir().join("cache")),
            ),
            overviews: Overviews::default(),
            queries: Arc::clone(&queries),
            tasks: Mutex::default(),
            store: store.clone(),
            models,
            sandboxes,
        });
        let tables = |schema: &str| {
            catalog
                .get(schema)
                .ok_or_else(|| EngineError::Config(format!("the catalog has no schema {schema}")))
        };
        let system = tables("system")?;
        system.register_virtual(Arc::new(ModelsTable::new(services.models.clone(), store.clone())))?;
        system.register_virtual(Arc::new(PoliciesTable(store.clone())))?;
        system.register_virtual(Arc::new(SettingsTable::new(loaded)))?;
        system.register_virtual(Arc::new(super::functions_table::FunctionsTable::new(&base)))?;
        catalog.seal();
        let engine = Arc::new(Self {
            defaults: Arc::new(Defaults::of(&config)),
            scheduler: Arc::new(Scheduler::new(services)),
            policy_cache: PolicyCache::default(),
            background: TaskTracker::new(),
            runtime: Handle::current(),
            queries,
            catalog,
            config,
            store,
            base,
        });
        if !engine.store.is_read_only() {
            sweep_work_dir(&work_dir(&engine.store));
            for sandbox in engine.scheduler.services().sandboxes.values() {
                sandbox.executor.sweep().await?;
            }
        }
        Ok(engine)
    }

    /// A session.
    pub fn session(self: &Arc<Self>, options: &SessionOptions) -> Session {
        Session::new(Arc::clone(self), options)
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Internal queries.
    pub fn queries(&self) -> &Arc<Queries> {
        &self.queries
    }

    /// The scheduler.
    pub fn scheduler(&self) -> &Arc<Scheduler> {
        &self.scheduler
    }

    /// Defaults of acting statements.
    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// The sandbox of a name.
    ///
    /// # Errors
    /// When there is none.
    pub fn sandbox(&self, name: &str) -> Result<&Sandbox> {
        Ok(self.scheduler.services().sandbox(name)?)
    }

    /// Microseconds since the Unix epoch.
    pub fn now(&self) -> i64 {
        self.scheduler.services().now()
    }

    pub(super) fn base_state(&self) -> &SessionState {
        &self.base
    }

    pub(super) fn expand_handler(&self) -> Arc<dyn ExpandHandler> {
        Arc::new(SchedulerExpandHandler::new(
            Arc::clone(&self.scheduler),
            Arc::clone(&self.defaults),
        ))
    }

    /// Runs something that no statement waits for; [`Engine::close`] does.
    pub(super) fn spawn_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.background.spawn_on(work, &self.runtime);
    }

    /// Waits for what this process still conducts and writes, so that nothing is left half done by an orderly exit.
    pub async fn close(&self) {
        self.scheduler.idle().await;
        self.background.close();
        self.background.wait().await;
        self.store.close().await;
    }
}

fn store_options(config: &Config) -> StoreOptions {
    let store = &config.store;
    let cold = match &store.cold {
        None => ColdLocation::Local,
        Some(url) => ColdLocation::S3(S3Location {
            endpoint: store.s3.endpoint.clone(),
            region: store.s3.region.clone().unwrap_or_else(|| S3Location::new(url).region),
            allow_http: store.s3.allow_http,
            access_key_env: store.s3.access_key_id_env.clone(),
            secret_key_env: store.s3.secret_access_key_env.clone(),
            session_token_env: store.s3.session_token_env.clone(),
            ..S3Location::new(url)
        }),
    };
    StoreOptions {
        cold,
        maintenance: MaintenanceOptions {
            flush_rows: store.flush_rows,
            flush_bytes: store.flush_size.bytes(),
            flush_age: store.flush_age(),
            ..MaintenanceOptions::default()
        },
        hot_cache_bytes: usize::try_from(store.cache.bytes()).unwrap_or(usize::MAX),
        cold_cache_bytes: usize::try_from(store.cache.bytes()).unwrap_or(usize::MAX),
        ..StoreOptions::default()
    }
}

fn open_store(config: &Config, mode: OpenMode, clock: &Arc<dyn Clock>) -> Result<Store> {
    let (path, mut options) = (&config.store.path, store_options(config));
    options.clock = Arc::clone(clock);
    let exists = path.join("store.toml").exists();
    Ok(match mode {
        OpenMode::ReadOnly => {
            options.read_only = true;
            Store::open(path, options)?
        }
        OpenMode::Existing => Store::open(path, options)?,
        OpenMode::CreateIfMissing if exists => Store::open(path, options)?,
        OpenMode::Create | OpenMode::CreateIfMissing => {
            if !exists {
                check_folder(path)?;
            }
            Store::create(path, options)?
        }
    })
}

/// The built-in models, those of the program that embeds the engine, those of the configuration, those of the store.
fn models(
    config: &Config,
    store: &Store,
    queries: &Arc<Queries>,
    extensions: Vec<Arc<dyn Generator>>,
) -> Result<ModelRegistry> {
    let access = ModelAccess::new(&config.access.model_hosts, &config.access.key_variables);
    let mut models = ModelRegistry::new(Some(Arc::new(ModelsOfStore(store.clone()))), access);
    models.register(Arc::new(Evolver::default()));
    models.register(Arc::new(Replay::new(Arc::new(StoreRecordings::new(
        Arc::clone(queries),
        store.clone(),
    )))));
    for model in extensions {
        models.register(model);
    }
    for (name, options) in &config.models {
        models.configure(name, options)?;
    }
    Ok(models)
}

/// The interpreter of candidates.
fn interpreter(config: &Config) -> Result<PathBuf> {
    let cwd = std::env::current_dir().map_err(|source| EngineError::Io {
        path: PathBuf::from("."),
        source,
    })?;
    Ok(config.python.resolve(&config.store.path, &cwd))
}

/// The back ends of a configuration; programs of the native one do not see the hidden folder.
///
/// # Errors
/// When the configuration names things that do not exist.
pub fn sandboxes(config: &Config, hidden: PathBuf) -> Result<Sandboxes> {
    let python = interpreter(config)?;
    let rootfs = config.sandbox.native.rootfs.clone();
    let native_python = match &rootfs {
        Some(_) => config.sandbox.native.rootfs_python.clone(),
        None => python.clone(),
    };
    let native = Arc::new(NativeExecutor::new(NativeOptions {
        rootfs,
        hidden: vec![hidden.clone()],
        warm_cpus: config.sandbox.cpus,
        ..NativeOptions::new(native_python).with_warm_pool()
    })?);
    let process = Arc::new(ProcessExecutor::new(ProcessOptions::new(python))?);
    let docker = &config.sandbox.docker;
    let docker = Arc::new(DockerExecutor::new(DockerOptions {
        address: docker.address.clone(),
        python: docker.python.clone(),
        runtime: docker.runtime.clone(),
        gpus: docker.gpus.into(),
        starts: docker.starts as usize,
        standby: docker.standby as usize,
        ..DockerOptions::new(&docker.image)
    }));
    let remote = &config.sandbox.remote;
    let [connect, answer, transfer, give_up] = remote.times();
    let remote = RemoteExecutor::new(RemoteOptions {
        key_env: remote.key_env.clone(),
        resource_type: remote.resource_type,
        priority: remote.priority,
        insecure: remote.insecure,
        connect,
        answer,
        transfer,
        give_up,
        ..RemoteOptions::new(&remote.url, hidden.join("remote"))
    });
    Ok([
        (
            "docker".to_owned(),
            Sandbox {
                executor: Arc::clone(&docker) as _,
                evaluator: docker,
            },
        ),
        (
            "native".to_owned(),
            Sandbox {
                executor: Arc::clone(&native) as _,
                evaluator: Arc::clone(&native) as _,
            },
        ),
        (
            "remote".to_owned(),
            // What scores a submission stays here.
            Sandbox {
                executor: Arc::new(remote),
                evaluator: native,
            },
        ),
        (
            "process".to_owned(),
            Sandbox {
                executor: Arc::clone(&process) as _,
                evaluator: process,
            },
        ),
    ]
    .into())
}

fn candidate_limits(config: &Config) -> Limits {
    let sandbox = &config.sandbox;
    Limits {
        wall: sandbox.wall(),
        cpu_seconds: sandbox.cpu_seconds,
        memory_bytes: sandbox.memory.bytes(),
        processes: sandbox.processes,
        file_bytes: sandbox.file_size.bytes(),
        scratch_bytes: sandbox.scratch_size.bytes(),
        scratch_files: sandbox.scratch_files,
        log_bytes: sandbox.log_size.bytes(),
        submission_bytes: sandbox.submission_size.bytes(),
        cpus: sandbox.cpus,
    }
}

fn evaluation_limits(config: &Config) -> Limits {
    Limits {
        wall: config.sandbox.evaluation_wall(),
        memory_bytes: config.sandbox.memory.bytes(),
        submission_bytes: config.sandbox.submission_size.bytes(),
        ..Limits::for_evaluation()
    }
}

/// Folder of collected submissions; inside the store, so that it is on a disk the user chose.
fn work_dir(store: &Store) -> PathBuf {
    store.dir().join("work")
}
