//! Flush: hot rows of one table become a Parquet file, exactly once.
//!
//! The order is: write the file and make it durable; mark the table as unsettled; commit to the Delta log under an
//! application transaction with the last commit number; then, in one SQLite transaction, enter the file in the index,
//! delete the hot rows and clear the mark. Statements look only at SQLite, so for them the rows move in one step. After a
//! crash in between the mark is found and the Delta log says whether its part was done.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use rusqlite::{Connection, OptionalExtension};
use tokio::task::spawn_blocking;

use super::Store;
use super::maintenance::MaintenanceLock;
use super::options::FaultPoint;
use super::table_state::{StoreState, read_hot};
use crate::cold::delta::{DeltaLog, set_aside};
use crate::cold::file::{ColdFile, IndexChange, IndexedFile};
use crate::cold::parquet_file::{FileWriter, NewFile, is_ours};
use crate::cold::stats::FileStats;
use crate::error::{Result, StoreError};
use crate::spec::TableSpec;

/// Compression of files that will soon be merged into others.
const LEVEL: i32 = 3;

/// A table as its registry row says.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableRow {
    pub(super) table_no: i64,
    pub(super) flushed_seq: i64,
    pub(super) delta_version: Option<i64>,
    pub(super) checkpointed: Option<i64>,
    pub(super) unsettled: bool,
}

impl TableRow {
    pub(super) fn read(connection: &Connection, spec: &TableSpec) -> Result<Option<Self>> {
        connection
            .prepare_cached(
                "SELECT table_no, flushed_seq, delta_version, checkpointed, unsettled FROM tables WHERE name = ?1",
            )
            .and_then(|mut query| {
                query
                    .query_row([&spec.name], |row| {
                        Ok(Self {
                            table_no: row.get(0)?,
                            flushed_seq: row.get(1)?,
                            delta_version: row.get(2)?,
                            checkpointed: row.get(3)?,
                            unsettled: row.get(4)?,
                        })
                    })
                    .optional()
            })
            .map_err(StoreError::sqlite("read the table registry"))
    }
}

impl Store {
    /// Moves the hot rows of a table into one cold file.
    pub(super) async fn flush_table(&self, lock: &MaintenanceLock<'_>, spec: &Arc<TableSpec>) -> Result<()> {
        let mut log = self.settle_table(lock, spec).await?;
        let (store, table) = (self.clone(), Arc::clone(spec));
        let batches = spawn_blocking(move || {
            store.inner.readers.read(|connection| {
                let Some(row) = TableRow::read(connection, &table)? else {
                    return Ok(Vec::new());
                };
                let state = StoreState::read(connection)?;
                read_hot(connection, &table, row.table_no, row.flushed_seq, state.last_seq)
            })
        })
        .await??;
        let Some(seq) = batches.last().and_then(|batch| last_seq(batch, spec)) else {
            return Ok(());
        };
        let file = self.write_file(spec, batches).await?;
        self.inner.reach(FaultPoint::FilesWritten)?;
        let log = match &mut log {
            Some(log) => log,
            empty => empty.insert(self.open_log(lock, spec).await?),
        };
        self.mark_unsettled(spec).await?;
        let now = self.inner.options.clock.now_micros();
        log.append(std::slice::from_ref(&file), seq, now).await?;
        self.inner.reach(FaultPoint::DeltaCommitted)?;
        self.apply_index(IndexChange {
            table: spec.name.clone(),
            added: vec![file.indexed()],
            removed: Vec::new(),
            flushed_seq: Some(seq),
            delta_version: log.version(),
            now,
        })
        .await?;
        tracing::debug!(
            table = spec.name,
            seq,
            rows = file.stats.num_records,
            bytes = file.bytes,
            "flushed"
        );
        self.inner.reach(FaultPoint::Indexed)
    }

    async fn write_file(&self, spec: &Arc<TableSpec>, batches: Vec<RecordBatch>) -> Result<NewFile> {
        let (store, table) = (self.clone(), Arc::clone(spec));
        let runtime = tokio::runtime::Handle::current();
        // Compression takes a while; the runtime's own threads stay free.
        spawn_blocking(move || {
            let stats = FileStats::of(&batches);
            let mut writer = FileWriter::new(&store.inner.location, &table, stats, LEVEL)?;
            for batch in &batches {
                writer.write(batch)?;
            }
            drop(batches);
            runtime.block_on(writer.finish())
        })
        .await?
    }

    /// From here to [`Store::apply_index`] the Delta log may know more than the index.
    pub(super) async fn mark_unsettled(&self, spec: &TableSpec) -> Result<()> {
        let table = spec.name.clone();
        self.control(move |tx| tx.execute("UPDATE tables SET unsettled = 1 WHERE name = ?1", [table]))
            .await?;
        Ok(())
    }

    pub(super) async fn apply_index(&self, change: IndexChange) -> Result<()> {
        self.control(move |transaction| change.apply(transaction)).await
    }

    /// Opens the Delta log of a table. A log that cannot be read is set aside and made anew from the index, which is the
    /// truth of this store.
    pub(super) async fn open_log(&self, _: &MaintenanceLock<'_>, spec: &Arc<TableSpec>) -> Result<DeltaLog> {
        let location = &self.inner.location;
        let error = match DeltaLog::open(location, spec, &self.inner.id).await {
            Ok(log) => return Ok(log),
            Err(error) => error,
        };
        let (StoreError::Delta { .. }, Some(folder)) = (&error, location.folder(spec)) else {
            return Err(error);
        };
        if !folder.join("_delta_log").exists() {
            return Err(error);
        }
        let aside = set_aside(&folder)?;
        let message = format!("{error}; it was set aside and made anew from the store's index");
        self.note_problem("cold", &aside.display().to_string(), &message).await;
        let mut log = DeltaLog::open(location, spec, &self.inner.id).await?;
        let (files, row) = self.read_files(spec).await?;
        let added: Vec<NewFile> = files
            .iter()
            .map(|file| NewFile {
                path: file.path.clone(),
                bytes: file.bytes,
                stats: file.stats.clone(),
                min_seq: file.min_seq,
                max_seq: file.max_seq,
            })
            .collect();
        if !added.is_empty() {
            log.append(
                &added,
                row.map_or(0, |row| row.flushed_seq),
                self.inner.options.clock.now_micros(),
            )
            .await?;
        }
        Ok(log)
    }

    /// Files and registry row of a table now.
    pub(super) async fn read_files(&self, spec: &Arc<TableSpec>) -> Result<(Vec<Arc<ColdFile>>, Option<TableRow>)> {
        let (store, spec) = (self.clone(), Arc::clone(spec));
        spawn_blocking(move || {
            store
                .inner
                .readers
                .read(|connection| match TableRow::read(connection, &spec)? {
                    Some(row) => Ok((ColdFile::read_index(connection, &spec, row.table_no)?, Some(row))),
                    None => Ok((Vec::new(), None)),
                })
        })
        .await?
    }

    /// Takes over what a flush or a compaction that was cut short had committed to the Delta log. Returns the log when it
    /// had to be opened.
    pub(super) async fn settle_table(
        &self,
        lock: &MaintenanceLock<'_>,
        spec: &Arc<TableSpec>,
    ) -> Result<Option<DeltaLog>> {
        let (files, Some(row)) = self.read_files(spec).await? else {
            return Ok(None);
        };
        if !row.unsettled {
            return Ok(None);
        }
        let log = self.open_log(lock, spec).await?;
        let known: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let logged = log.files()?;
        let added = logged
            .iter()
            .filter(|file| !known.contains(file.path.as_str()) && is_ours(&file.path));
        let added: Vec<IndexedFile> = added
            .filter_map(|file| {
                let (min_seq, max_seq) = file.stats.seq_range()?;
                let (path, bytes, rows) = (file.path.clone(), file.bytes, file.stats.num_records);
                Some(IndexedFile {
                    path,
                    bytes,
                    rows,
                    min_seq,
                    max_seq,
                    stats: file.stats.to_text(),
                })
            })
            .collect();
        // A compaction replaces files by one that spans them. Files that another program took out of the log stay.
        let live: HashSet<&str> = logged.iter().map(|file| file.path.as_str()).collect();
        let replaced = |file: &ColdFile| {
            added
                .iter()
                .any(|new| new.min_seq <= file.min_seq && file.max_seq <= new.max_seq)
        };
        let removed = files
            .iter()
            .filter(|file| !live.contains(file.path.as_str()) && replaced(file))
            .map(|file| file.path.clone())
            .collect();
        self.apply_index(IndexChange {
            table: spec.name.clone(),
            added,
            removed,
            flushed_seq: log.flushed_seq().await?,
            delta_version: log.version(),
            now: self.inner.options.clock.now_micros(),
        })
        .await?;
        tracing::info!(table = spec.name, "took over what an interrupted process had written");
        Ok(Some(log))
    }
}

fn last_seq(batch: &RecordBatch, spec: &TableSpec) -> Option<i64> {
    batch
        .column(spec.seq_index())
        .as_primitive::<Int64Type>()
        .values()
        .last()
        .copied()
}
