//! Removal of cold files that no statement can need any more, and notice of files that are not ours.

use std::collections::HashSet;
use std::sync::Arc;

use object_store::ObjectStoreExt;
use object_store::path::Path;
use rusqlite::{Connection, params};

use super::Store;
use super::maintenance::MaintenanceLock;
use crate::cold::delta::DeltaLog;
use crate::cold::parquet_file::is_ours;
use crate::error::{Result, StoreError};
use crate::spec::TableSpec;

impl Store {
    /// Removes files that were replaced longer ago than the grace period.
    pub(super) async fn vacuum_table(&self, _: &MaintenanceLock<'_>, spec: &Arc<TableSpec>) -> Result<()> {
        let until = self.grace_start();
        let table = spec.name.clone();
        let expired: Vec<String> = self
            .control_read(move |connection: &Connection| -> rusqlite::Result<Vec<String>> {
                let mut query = connection.prepare_cached(
                    "SELECT path FROM cold_files JOIN tables USING (table_no) WHERE name = ?1 AND removed_at <= ?2",
                )?;
                query.query_map(params![table, until], |row| row.get(0))?.collect()
            })
            .await?;
        if expired.is_empty() {
            return Ok(());
        }
        for path in &expired {
            self.remove_file(&self.inner.location.file(spec, path)).await?;
        }
        let table = spec.name.clone();
        self.control(move |tx| {
            let mut delete = tx.prepare(
                "DELETE FROM cold_files WHERE path = ?2 AND table_no = (SELECT table_no FROM tables WHERE name = ?1)",
            )?;
            expired
                .iter()
                .try_for_each(|path| delete.execute(params![table, path]).map(|_| ()))
        })
        .await
    }

    /// Looks for files in the table's folder or its Delta log that are not in the index: left-overs of an interrupted
    /// process are removed after the grace period, foreign files are noted and left alone.
    pub(super) async fn note_foreign_files(&self, lock: &MaintenanceLock<'_>, spec: &Arc<TableSpec>) -> Result<()> {
        let location = &self.inner.location;
        let table = spec.name.clone();
        let indexed: HashSet<String> = self
            .control_read(move |connection: &Connection| -> rusqlite::Result<HashSet<String>> {
                let mut query = connection
                    .prepare_cached("SELECT path FROM cold_files JOIN tables USING (table_no) WHERE name = ?1")?;
                query.query_map([table], |row| row.get(0))?.collect()
            })
            .await?;
        let folder = location.table(spec);
        let list = location.store().list_with_delimiter(Some(&folder)).await;
        let list = list.map_err(|source| StoreError::ObjectStore {
            context: format!("list {folder}"),
            source,
        })?;
        let until = self.grace_start();
        for object in list.objects {
            let name = object.location.filename().unwrap_or_default();
            if indexed.contains(name) || !name.ends_with(".parquet") {
                continue;
            }
            if !is_ours(name) {
                let message = "not a file of this store; it is not read. Move it elsewhere";
                self.note_problem("cold", object.location.as_ref(), message).await;
            } else if object.last_modified.timestamp_micros() <= until {
                self.remove_file(&object.location).await?;
            }
        }
        if DeltaLog::exists(location, spec).await? {
            let log = self.open_log(lock, spec).await?;
            for file in log.files()? {
                if !indexed.contains(&file.path) {
                    let message = "another program added this file to the Delta log; it is not read";
                    self.note_problem("cold", location.file(spec, &file.path).as_ref(), message)
                        .await;
                }
            }
        }
        Ok(())
    }

    /// Files replaced before this time are not needed any more.
    fn grace_start(&self) -> i64 {
        let grace = i64::try_from(self.inner.options.maintenance.grace.as_micros()).unwrap_or(i64::MAX);
        self.inner.options.clock.now_micros().saturating_sub(grace)
    }

    async fn remove_file(&self, place: &Path) -> Result<()> {
        match self.inner.location.store().delete(place).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(StoreError::ObjectStore {
                context: format!("remove {place}"),
                source,
            }),
        }
    }
}
