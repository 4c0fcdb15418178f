//! The file of the router, read again when it changes, at SIGHUP, and when an admin says so. One with something wrong in it changes
//! nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::api::{App, Reloaded};
use super::config::RouterConfig;
use super::error::RouterError;
use super::servers::{Setup, poll_forever};

/// Time without a change after which a file counts as written.
const SETTLED: Duration = Duration::from_millis(200);

/// Reads the file again; what it says holds from now on.
///
/// # Errors
/// When something in it is wrong; then all is as before.
pub(super) async fn reload(app: &App) -> Result<Reloaded, RouterError> {
    let mut read = app.reading.lock().await;
    *read = text_of(&app.path);
    let reloaded = take_up(app).await;
    match &reloaded {
        Ok(reloaded) => {
            info!(?reloaded, "the file of the router was read again");
            if !reloaded.needs_restart.is_empty() {
                warn!(
                    keys = reloaded.needs_restart.join(", "),
                    "these settings hold after a restart"
                );
            }
        }
        Err(fault) => error!(%fault, "the file of the router is wrong; all is as before"),
    }
    reloaded
}

async fn take_up(app: &App) -> Result<Reloaded, RouterError> {
    let config = RouterConfig::load(&app.path, app.insecure)?;
    let before = app.setup();
    let setup = Setup::new(config, Some(&before)).map_err(|error| RouterError::Config {
        path: app.path.clone(),
        problem: error.to_string(),
    })?;
    let differs = |name: &str| match (before.server(name), setup.server(name)) {
        (Some(old), Some(new)) => old.url != new.url || old.drain != new.drain,
        _ => false,
    };
    let names = |of: &Setup, is_meant: &dyn Fn(&str) -> bool| -> Vec<String> {
        let names = of.servers.iter().map(|server| server.name.to_string());
        names.filter(|name| is_meant(name)).collect()
    };
    let reloaded = Reloaded {
        added: names(&setup, &|name| before.server(name).is_none()),
        removed: names(&before, &|name| setup.server(name).is_none()),
        changed: names(&setup, &differs),
        needs_restart: before
            .config
            .fixed_changes(&setup.config)
            .into_iter()
            .map(str::to_owned)
            .collect(),
    };
    start(app, setup).await;
    Ok(reloaded)
}

/// Takes servers up: they are asked how they do once before they are used, and then again and again.
pub(super) async fn start(app: &App, setup: Setup) {
    let setup = Arc::new(setup);
    let first = setup
        .servers
        .iter()
        .filter(|server| !server.is_up())
        .map(|server| server.poll());
    futures::future::join_all(first).await;
    let polling = app.stop.child_token();
    for server in &setup.servers {
        tokio::spawn(poll_forever(Arc::clone(server), polling.clone()));
    }
    *app.setup.write() = setup;
    let before: CancellationToken = std::mem::replace(&mut *app.polling.lock(), polling);
    before.cancel();
}

fn text_of(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// What tells of changes, as long as it is there.
#[derive(Debug)]
pub(super) struct Watch {
    _watcher: RecommendedWatcher,
    changes: mpsc::Receiver<()>,
}

impl Watch {
    /// Watches the folder of a file: editors put a new file in the place of the old one.
    pub(super) fn new(path: &Path) -> Result<Self, RouterError> {
        let (told, changes) = mpsc::channel(1);
        let failed = |source| RouterError::Watch {
            path: path.to_owned(),
            source,
        };
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| is_change(&event.kind)) {
                // One that waits says the same.
                let _ = told.try_send(());
            }
        })
        .map_err(failed)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        watcher.watch(folder, RecursiveMode::NonRecursive).map_err(failed)?;
        Ok(Self {
            _watcher: watcher,
            changes,
        })
    }

    /// Waits for a change, and until nothing more changes.
    async fn settled(&mut self) -> Option<()> {
        self.changes.recv().await?;
        while let Ok(Some(())) = timeout(SETTLED, self.changes.recv()).await {}
        Some(())
    }
}

/// Reading the file is told as well.
fn is_change(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if *access != AccessKind::Close(AccessMode::Write))
}

/// Reads the file again whenever it changes, and at SIGHUP, until the router stops.
pub(super) async fn keep_up(app: App, mut watch: Watch) -> Result<(), RouterError> {
    let mut hangups = signal(SignalKind::hangup()).map_err(RouterError::Signal)?;
    loop {
        tokio::select! {
            Some(()) = watch.settled() => {
                let text = text_of(&app.path);
                // Something else in the folder changed, or the file was taken away for a moment.
                if text.is_none() || *app.reading.lock().await == text {
                    continue;
                }
            }
            _ = hangups.recv() => {}
            () = app.stop.cancelled() => return Ok(()),
        }
        // What came out is in the log.
        let _ = reload(&app).await;
    }
}
