//! A router from its start to its end.

use std::path::PathBuf;
use std::sync::Arc;

use axum_server::Handle;
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;

use super::api::{Shared, routes};
use super::config::RouterConfig;
use super::error::RouterError;
use super::memory::Memory;
use super::reload::{Watch, keep_up, start};
use super::servers::Setup;
use crate::service::{Listener, Tls};

/// How a router is run; the rest is in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterOptions {
    /// The file.
    pub path: PathBuf,
    /// Address and port, where not that of the file.
    pub address: Option<String>,
    /// Certificate and key, where not those of the file.
    pub tls: Option<Tls>,
    /// Serve an address that is not loopback without TLS, and send keys to servers on other machines in the clear.
    pub insecure: bool,
}

/// A router that is about to listen.
#[derive(Debug)]
pub struct RouterServer {
    listener: Listener,
    app: Arc<Shared>,
    watch: Watch,
}

impl RouterServer {
    /// Prepares a router: its address is taken, and its servers were asked how they do.
    ///
    /// # Errors
    /// When something in the file is wrong, or the address cannot be used.
    pub async fn open(options: RouterOptions) -> Result<Self, RouterError> {
        let path = std::path::absolute(&options.path).map_err(|source| RouterError::Read {
            path: options.path.clone(),
            source,
        })?;
        let text = std::fs::read_to_string(&path).map_err(|source| RouterError::Read {
            path: options.path.clone(),
            source,
        })?;
        // Watched before it is taken up, so that no change is missed.
        let watch = Watch::new(&path)?;
        let config = RouterConfig::load(&path, options.insecure)?;
        let of_file = config.tls_cert.clone().zip(config.tls_key.clone());
        let tls = options
            .tls
            .or_else(|| of_file.map(|(certificate, key)| Tls { certificate, key }));
        let address = options.address.as_ref().unwrap_or(&config.address);
        let listener = Listener::open(address, tls.as_ref(), options.insecure).await?;
        let (jobs, keys) = (config.remembered_jobs, config.remembered_keys);
        let wrong = |error: reqwest::Error| RouterError::Config {
            path: options.path.clone(),
            problem: error.to_string(),
        };
        let empty = Setup {
            config: config.clone(),
            servers: Vec::new(),
        };
        let app = Arc::new(Shared {
            setup: RwLock::new(Arc::new(empty)),
            path,
            insecure: options.insecure,
            jobs: Memory::new(jobs),
            keys: Memory::new(keys),
            turns: crate::turns::Turns::default(),
            callers: super::caller::Callers::default(),
            places: Arc::default(),
            figures: super::figures::Figures::default(),
            placing: Mutex::default(),
            reading: tokio::sync::Mutex::new(Some(text)),
            polling: Mutex::default(),
            turn: std::sync::atomic::AtomicUsize::default(),
            stop: CancellationToken::new(),
        });
        start(&app, Setup::new(config, None).map_err(wrong)?).await;
        Ok(Self { listener, app, watch })
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        self.listener.url()
    }

    /// Number of its servers, and of those that answer.
    pub fn servers(&self) -> (usize, usize) {
        let setup = self.app.setup();
        (setup.servers.len(), setup.up().len())
    }

    /// Serves until `stop` is cancelled; what is under way then may end.
    ///
    /// # Errors
    /// When the server fails.
    pub async fn run(self, stop: CancellationToken) -> Result<(), RouterError> {
        let Self { listener, app, watch } = self;
        let head_time = app.setup().config.head_time;
        let handle = Handle::new();
        let mut server = tokio::spawn(listener.serve(routes(Arc::clone(&app)), handle.clone(), head_time));
        let mut keeping_up = tokio::spawn(keep_up(Arc::clone(&app), watch));
        let mut ended = None;
        tokio::select! {
            () = stop.cancelled() => {}
            end = &mut server => ended = Some(end),
            failed = &mut keeping_up => failed??,
        }
        app.stop.cancel();
        handle.graceful_shutdown(Some(app.setup().config.stop_time));
        match ended {
            Some(end) => end?.map_err(RouterError::Server),
            None => server.await?.map_err(RouterError::Server),
        }
    }
}
