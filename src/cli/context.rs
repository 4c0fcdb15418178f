//! What every command starts from: the configuration and the terminals.

use std::sync::Arc;
use std::time::Duration;

use clade_catalog::Store;
use parking_lot::Mutex;

use super::args::GlobalArgs;
use super::error::CliError;
use super::printer::{Format, Printer};
use super::terminal::Terminal;
use crate::config::{Loaded, Override};
use crate::engine::{Engine, OpenMode};

/// The configuration and the terminals.
#[derive(Debug, Clone)]
pub struct Context {
    /// The configuration with its origins.
    pub loaded: Loaded,
    /// Standard output.
    pub stdout: Terminal,
    /// Standard error.
    pub stderr: Terminal,
    global: GlobalArgs,
    opened: Arc<Mutex<Vec<Store>>>,
}

/// Longest wait at the end for what moves rows in a store.
const STORE_LIMIT: Duration = Duration::from_secs(10);

impl Context {
    /// Reads the configuration.
    pub fn new(global: &GlobalArgs) -> Result<Self, CliError> {
        Ok(Self {
            loaded: global.sources()?.load()?,
            stdout: Terminal::stdout(global.color),
            stderr: Terminal::stderr(global.color),
            global: global.clone(),
            opened: Arc::default(),
        })
    }

    /// The same with values that a command sets itself; they win over all others.
    pub fn with(&self, overrides: impl IntoIterator<Item = Override>) -> Result<Self, CliError> {
        let mut sources = self.global.sources()?;
        sources.overrides.extend(overrides);
        Ok(Self {
            loaded: sources.load()?,
            ..self.clone()
        })
    }

    /// Whether the user named a store: on the command line, in the environment or in a file.
    pub fn names_store(&self) -> bool {
        let key = ["store".to_owned(), "path".to_owned()];
        self.loaded
            .origin(&key)
            .is_some_and(|origin| origin != crate::config::DEFAULT_ORIGIN)
    }

    /// A printer to standard output.
    pub fn printer(&self, format: Format) -> Result<Printer, CliError> {
        Printer::stdout(format, self.stdout, self.stderr)
    }

    /// The engine on the configured store.
    pub async fn engine(&self, mode: OpenMode) -> Result<Arc<Engine>, CliError> {
        let path = &self.loaded.config.store.path;
        if matches!(mode, OpenMode::Existing | OpenMode::ReadOnly) && !path.join("store.toml").exists() {
            return Err(CliError::Failed(format!(
                "there is no store at {}: make one with `clade init`, or name another with --store or CLADE_STORE",
                path.display()
            )));
        }
        let engine = Engine::open(&self.loaded, mode).await?;
        self.opened.lock().push(engine.store().clone());
        Ok(engine)
    }

    /// Ends the maintenance of the stores that the command has opened, also when it failed: its threads need the runtime.
    pub async fn close_stores(&self) {
        let stores = std::mem::take(&mut *self.opened.lock());
        for store in stores {
            if tokio::time::timeout(STORE_LIMIT, store.close()).await.is_err() {
                tracing::warn!(store = %store.dir().display(), "maintenance is broken off; the next process goes on with it");
            }
        }
    }
}
