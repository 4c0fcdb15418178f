//! When rows move between the tiers, and who may move them: one process at a time.

use std::fs::File;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use datafusion::common::runtime::SpawnedTask;
use rusqlite::{Connection, params};
use rustix::fs::{FlockOperation, flock};
use tokio::sync::watch;

use super::database::TABLE_MASK;
use super::options::FaultPoint;
use super::{Inner, Store};
use crate::error::{Result, StoreError};
use crate::spec::TableSpec;

/// How often a lock that another process holds is tried.
const LOCK_POLL: Duration = Duration::from_millis(20);

/// What [`Store::flush`] moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlushScope {
    /// Every table.
    All,
    /// One table, as `evo.nodes`.
    Table(String),
    /// Tables that are over a threshold of [`crate::MaintenanceOptions`].
    Due,
}

/// Proof that this process may move rows between the tiers. Ends with the value, also when the process dies.
#[derive(Debug)]
pub(crate) struct MaintenanceLock<'a> {
    _process: tokio::sync::MutexGuard<'a, ()>,
    _file: File,
}

impl Store {
    /// Moves hot rows to the cold tier. Commits and statements go on meanwhile.
    pub async fn flush(&self, scope: FlushScope) -> Result<()> {
        self.to_the_end(async move |store| {
            let lock = store.lock_maintenance().await?;
            store.flush_locked(&lock, &scope).await
        })
        .await
    }

    /// Does maintenance that goes on to its end when its caller is gone: half of it may stand in threads of the Delta log, which
    /// must not be left without their runtime.
    async fn to_the_end<F>(&self, work: impl FnOnce(Self) -> F) -> Result<()>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        tokio::spawn(work(self.clone())).await?
    }

    /// Stops the background maintenance, and waits for what moves rows between the tiers now. Everything else still works.
    pub async fn close(&self) {
        self.inner.closing.send_replace(true);
        let background = self.inner.background.lock().take();
        if let Some(task) = background
            && let Err(error) = task.join().await
        {
            tracing::warn!(%error, "the background maintenance of the store broke off");
        }
        drop(self.inner.maintaining.lock().await);
    }

    async fn flush_locked(&self, lock: &MaintenanceLock<'_>, scope: &FlushScope) -> Result<()> {
        let tables = match scope {
            FlushScope::All => self.specs().iter().map(|spec| spec.name.clone()).collect(),
            FlushScope::Table(table) => vec![self.specs().get(table)?.name.clone()],
            FlushScope::Due => self.due_tables().await?,
        };
        for table in tables {
            let spec = Arc::clone(self.specs().get(&table)?);
            self.flush_table(lock, &spec).await?;
        }
        Ok(())
    }

    /// Merges small cold files of one table, or of all; removes files that no statement can need any more.
    pub async fn optimize(&self, table: Option<&str>) -> Result<()> {
        let chosen = self.chosen(table)?;
        self.to_the_end(async move |store| {
            let lock = store.lock_maintenance().await?;
            for spec in chosen {
                while store.compact_table(&lock, &spec, true).await? {}
                store.vacuum_table(&lock, &spec).await?;
                store.note_foreign_files(&lock, &spec).await?;
            }
            Ok(())
        })
        .await
    }

    /// Moves all hot rows to the cold tier and writes a Delta checkpoint for every table that changed since its last.
    pub async fn checkpoint(&self) -> Result<()> {
        self.to_the_end(async move |store| {
            let lock = store.lock_maintenance().await?;
            store.flush_locked(&lock, &FlushScope::All).await?;
            for spec in store.chosen(None)? {
                store.checkpoint_table(&lock, &spec, 1).await?;
                store.vacuum_table(&lock, &spec).await?;
                store.note_foreign_files(&lock, &spec).await?;
            }
            Ok(())
        })
        .await
    }

    /// Does what is due by the thresholds, until the store is closed. When another process is at it, there is nothing to do.
    pub async fn maintain(&self) -> Result<()> {
        self.to_the_end(async move |store| {
            let Some(lock) = store.try_lock_maintenance()? else {
                return Ok(());
            };
            let is_closing = || *store.inner.closing.borrow();
            for table in store.due_tables().await? {
                if is_closing() {
                    return Ok(());
                }
                store.flush_locked(&lock, &FlushScope::Table(table)).await?;
            }
            for spec in store.chosen(None)? {
                if is_closing() {
                    return Ok(());
                }
                store.compact_table(&lock, &spec, false).await?;
                store
                    .checkpoint_table(&lock, &spec, store.inner.options.maintenance.checkpoint_commits)
                    .await?;
                store.vacuum_table(&lock, &spec).await?;
            }
            Ok(())
        })
        .await
    }

    fn chosen(&self, table: Option<&str>) -> Result<Vec<Arc<TableSpec>>> {
        Ok(match table {
            Some(table) => vec![Arc::clone(self.specs().get(table)?)],
            None => self.specs().iter().cloned().collect(),
        })
    }

    /// Tables whose hot rows are over a threshold.
    async fn due_tables(&self) -> Result<Vec<String>> {
        let options = self.inner.options.maintenance;
        let now = self.inner.options.clock.now_micros();
        let oldest = now.saturating_sub(i64::try_from(options.flush_age.as_micros()).unwrap_or(i64::MAX));
        self.control_read(move |connection: &Connection| -> rusqlite::Result<Vec<String>> {
            let mut query = connection.prepare_cached(
                "SELECT t.name FROM (SELECT id & ?1 AS table_no, sum(rows) AS rows, sum(length(data)) AS bytes, \
                 min(committed_at) AS oldest FROM hot GROUP BY 1) h JOIN tables t USING (table_no) \
                 WHERE h.rows >= ?2 OR h.bytes >= ?3 OR h.oldest <= ?4",
            )?;
            let (rows, bytes) = (options.flush_rows.cast_signed(), options.flush_bytes.cast_signed());
            query
                .query_map(params![TABLE_MASK, rows, bytes, oldest], |row| row.get(0))?
                .collect()
        })
        .await
    }

    async fn lock_maintenance(&self) -> Result<MaintenanceLock<'_>> {
        self.inner.writer()?;
        let process = self.inner.maintaining.lock().await;
        let deadline = Instant::now() + self.inner.options.busy_timeout;
        loop {
            if let Some(file) = self.inner.lock_file()? {
                return Ok(MaintenanceLock {
                    _process: process,
                    _file: file,
                });
            }
            if Instant::now() >= deadline {
                return Err(StoreError::Locked {
                    what: "the maintenance of the store",
                });
            }
            tokio::time::sleep(LOCK_POLL).await;
        }
    }

    fn try_lock_maintenance(&self) -> Result<Option<MaintenanceLock<'_>>> {
        self.inner.writer()?;
        let Ok(process) = self.inner.maintaining.try_lock() else {
            return Ok(None);
        };
        Ok(self.inner.lock_file()?.map(|file| MaintenanceLock {
            _process: process,
            _file: file,
        }))
    }

    /// Starts the background task of a store that is open for writing, inside a runtime, with an interval set.
    pub(super) fn start_background(&self) {
        let Some(interval) = self.inner.options.maintenance.interval else {
            return;
        };
        if self.is_read_only() || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (inner, closing) = (Arc::downgrade(&self.inner), self.inner.closing.subscribe());
        *self.inner.background.lock() = Some(SpawnedTask::spawn(maintain_in_background(inner, interval, closing)));
    }
}

/// Looks after the store until it is closed.
async fn maintain_in_background(inner: Weak<Inner>, interval: Duration, mut closing: watch::Receiver<bool>) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
        let Some(inner) = inner.upgrade() else { return };
        if let Err(error) = (Store { inner }).maintain().await {
            tracing::warn!(%error, "maintenance of the store failed and is tried again");
        }
    }
}

impl Inner {
    /// The lock file, locked; `None` when another process holds it.
    fn lock_file(&self) -> Result<Option<File>> {
        let path = self.layout.maintenance_lock();
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(StoreError::io(&path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(StoreError::io(path)(error.into())),
        }
    }

    /// Calls the fault hook, if there is one.
    pub(super) fn reach(&self, point: FaultPoint) -> Result<()> {
        match &self.options.fault_hook {
            Some(hook) => (hook.0)(point).map_err(StoreError::io(self.layout.dir())),
            None => Ok(()),
        }
    }
}
