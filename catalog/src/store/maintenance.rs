//! When rows move between the tiers, and who may move them: one process at a time.

use std::fs::File;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use datafusion::common::runtime::SpawnedTask;
use rusqlite::{Connection, params};
use rustix::fs::{FlockOperation, flock};

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
        let lock = self.lock_maintenance().await?;
        self.flush_locked(&lock, &scope).await
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
        let lock = self.lock_maintenance().await?;
        for spec in self.chosen(table)? {
            while self.compact_table(&lock, &spec, true).await? {}
            self.vacuum_table(&lock, &spec).await?;
            self.note_foreign_files(&lock, &spec).await?;
        }
        Ok(())
    }

    /// Moves all hot rows to the cold tier and writes a Delta checkpoint for every table that changed since its last.
    pub async fn checkpoint(&self) -> Result<()> {
        let lock = self.lock_maintenance().await?;
        self.flush_locked(&lock, &FlushScope::All).await?;
        for spec in self.chosen(None)? {
            self.checkpoint_table(&lock, &spec, 1).await?;
            self.vacuum_table(&lock, &spec).await?;
            self.note_foreign_files(&lock, &spec).await?;
        }
        Ok(())
    }

    /// Does what is due by the thresholds. When another process is at it, there is nothing to do.
    pub async fn maintain(&self) -> Result<()> {
        let Some(lock) = self.try_lock_maintenance()? else {
            return Ok(());
        };
        self.flush_locked(&lock, &FlushScope::Due).await?;
        for spec in self.chosen(None)? {
            self.compact_table(&lock, &spec, false).await?;
            self.checkpoint_table(&lock, &spec, self.inner.options.maintenance.checkpoint_commits)
                .await?;
            self.vacuum_table(&lock, &spec).await?;
        }
        Ok(())
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
        let inner = Arc::downgrade(&self.inner);
        *self.inner.background.lock() = Some(SpawnedTask::spawn(maintain_in_background(inner, interval)));
    }
}

/// Looks after the store until it is closed.
async fn maintain_in_background(inner: Weak<Inner>, interval: Duration) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        ticks.tick().await;
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
