//! Compaction: neighbouring small files of a table become one. Rows stay the same, so statements notice nothing.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::Store;
use super::flush::TableRow;
use super::maintenance::MaintenanceLock;
use super::options::{FaultPoint, MaintenanceOptions};
use crate::cold::file::{ColdFile, IndexChange};
use crate::cold::parquet_file::{self, FileWriter, NewFile};
use crate::cold::stats::FileStats;
use crate::error::Result;
use crate::spec::TableSpec;

/// Compression of files that stay.
const LEVEL: i32 = 7;
/// Files up to this size count as equally small.
const FLOOR: u64 = 1 << 20;

impl Store {
    /// Merges one run of small files, if there is one. `all` takes every run of two or more; else only runs that are
    /// worth it. Returns whether something was merged.
    pub(super) async fn compact_table(
        &self,
        lock: &MaintenanceLock<'_>,
        spec: &Arc<TableSpec>,
        all: bool,
    ) -> Result<bool> {
        self.settle_table(lock, spec).await?;
        let (files, _) = self.read_files(spec).await?;
        let options = &self.inner.options.maintenance;
        let run = if all {
            whole_run(&files, options)
        } else {
            grown_run(&files, options)
        };
        let run = run.to_vec();
        if run.len() < 2 {
            return Ok(false);
        }
        // A damaged file is left as it is: its rows may come back from a backup.
        for file in &run {
            if parquet_file::damage(&self.inner.location, spec, file).await?.is_some() {
                return Ok(false);
            }
        }
        let merged = self.merge(spec, run.clone()).await?;
        self.inner.reach(FaultPoint::FilesWritten)?;
        let mut log = self.open_log(lock, spec).await?;
        self.mark_unsettled(spec).await?;
        let now = self.inner.options.clock.now_micros();
        log.replace(&run, &merged, now).await?;
        self.inner.reach(FaultPoint::DeltaCommitted)?;
        self.apply_index(IndexChange {
            table: spec.name.clone(),
            added: vec![merged.indexed()],
            removed: run.iter().map(|file| file.path.clone()).collect(),
            flushed_seq: None,
            delta_version: log.version(),
            now,
        })
        .await?;
        tracing::debug!(table = spec.name, files = run.len(), bytes = merged.bytes, "compacted");
        self.inner.reach(FaultPoint::Indexed)?;
        Ok(true)
    }

    /// Writes the rows of the files, which follow each other in commit order, into one.
    async fn merge(&self, spec: &Arc<TableSpec>, run: Vec<Arc<ColdFile>>) -> Result<NewFile> {
        let (store, table) = (self.clone(), Arc::clone(spec));
        let runtime = tokio::runtime::Handle::current();
        spawn_blocking(move || {
            let mut stats = FileStats::default();
            for file in &run {
                stats.merge(&file.stats);
            }
            let location = &store.inner.location;
            let mut writer = FileWriter::new(location, &table, stats, LEVEL)?;
            for file in &run {
                for batch in runtime.block_on(parquet_file::read(location, &table, file))? {
                    writer.write(&batch?)?;
                }
            }
            runtime.block_on(writer.finish())
        })
        .await?
    }

    /// Writes a Delta checkpoint when the table has had `commits` commits since its last.
    pub(super) async fn checkpoint_table(
        &self,
        lock: &MaintenanceLock<'_>,
        spec: &Arc<TableSpec>,
        commits: u64,
    ) -> Result<()> {
        let (_, Some(row)) = self.read_files(spec).await? else {
            return Ok(());
        };
        let TableRow {
            delta_version: Some(version),
            checkpointed,
            ..
        } = row
        else {
            return Ok(());
        };
        if version - checkpointed.unwrap_or(0) < commits.cast_signed() {
            return Ok(());
        }
        let version = self.open_log(lock, spec).await?.checkpoint().await?;
        let table = spec.name.clone();
        self.control(move |tx| {
            tx.execute(
                "UPDATE tables SET checkpointed = ?2 WHERE name = ?1",
                rusqlite::params![table, version],
            )
        })
        .await?;
        Ok(())
    }
}

/// The first run of two or more neighbouring small files, up to the size that is aimed at.
fn whole_run<'a>(files: &'a [Arc<ColdFile>], options: &MaintenanceOptions) -> &'a [Arc<ColdFile>] {
    let mut start = 0;
    let mut bytes = 0;
    for (index, file) in files.iter().enumerate() {
        if bytes + file.bytes > options.compact_bytes {
            if index - start >= 2 {
                return &files[start..index];
            }
            (start, bytes) = (index, 0);
        }
        bytes += file.bytes;
    }
    &files[start..]
}

/// The newest files of like size, when there are enough of them: so every row is rewritten a few times only.
fn grown_run<'a>(files: &'a [Arc<ColdFile>], options: &MaintenanceOptions) -> &'a [Arc<ColdFile>] {
    let mut bytes = 0;
    let mut start = files.len();
    for file in files.iter().rev() {
        if file.bytes > (2 * bytes).max(FLOOR) || bytes + file.bytes > options.compact_bytes {
            break;
        }
        bytes += file.bytes;
        start -= 1;
    }
    if files.len() - start < options.compact_files.max(2) {
        &[]
    } else {
        &files[start..]
    }
}
