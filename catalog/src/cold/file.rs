//! The index of cold files.

use std::sync::Arc;

use datafusion::common::Statistics;
use rusqlite::{Connection, Transaction, params};

use super::stats::FileStats;
use crate::error::{Result, StoreError};
use crate::spec::TableSpec;
use crate::store::database::{TABLE_BITS, TABLE_MASK};
use crate::store::writer::Seq;

/// One Parquet file of a table.
#[derive(Debug, Clone)]
pub(crate) struct ColdFile {
    /// Path relative to the table.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    pub(crate) min_seq: Seq,
    pub(crate) max_seq: Seq,
    /// Statistics as the log has them.
    pub(crate) stats: FileStats,
    /// Statistics as the query engine takes them, over the full schema.
    pub(crate) statistics: Arc<Statistics>,
}

impl ColdFile {
    /// The files of a table that make it up now, in commit order.
    pub(crate) fn read_index(connection: &Connection, spec: &TableSpec, table_no: i64) -> Result<Vec<Arc<Self>>> {
        let context = "read the index of cold files";
        let mut query = connection
            .prepare_cached(
                "SELECT path, bytes, rows, min_seq, max_seq, stats FROM cold_files \
                 WHERE table_no = ?1 AND removed_at IS NULL ORDER BY min_seq, path",
            )
            .map_err(StoreError::sqlite(context))?;
        let files = query
            .query_map([table_no], |row| {
                let stats = FileStats::parse(&row.get::<_, String>(5)?);
                let (bytes, rows) = (
                    row.get::<_, i64>(1)?.cast_unsigned(),
                    row.get::<_, i64>(2)?.cast_unsigned(),
                );
                Ok(Arc::new(Self {
                    path: row.get(0)?,
                    bytes,
                    rows,
                    min_seq: row.get(3)?,
                    max_seq: row.get(4)?,
                    statistics: Arc::new(stats.to_statistics(spec, rows, bytes)),
                    stats,
                }))
            })
            .and_then(Iterator::collect)
            .map_err(StoreError::sqlite(context))?;
        Ok(files)
    }
}

/// Change of the index of one table.
#[derive(Debug, Default)]
pub(crate) struct IndexChange {
    pub(crate) table: String,
    pub(crate) added: Vec<IndexedFile>,
    pub(crate) removed: Vec<String>,
    /// Hot rows of commits up to here are in the files.
    pub(crate) flushed_seq: Option<Seq>,
    pub(crate) delta_version: i64,
    pub(crate) now: i64,
}

/// A file that enters the index.
#[derive(Debug, Clone)]
pub(crate) struct IndexedFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) rows: i64,
    pub(crate) min_seq: Seq,
    pub(crate) max_seq: Seq,
    pub(crate) stats: String,
}

impl IndexChange {
    /// Applies the change; hot rows go in the same transaction as their files come.
    pub(crate) fn apply(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let table_no: i64 =
            transaction.query_row("SELECT table_no FROM tables WHERE name = ?1", [&self.table], |row| {
                row.get(0)
            })?;
        let mut add = transaction.prepare_cached(
            "INSERT INTO cold_files (table_no, path, bytes, rows, min_seq, max_seq, stats, added_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET removed_at = NULL",
        )?;
        for file in &self.added {
            let bytes = file.bytes.cast_signed();
            let IndexedFile {
                path,
                rows,
                min_seq,
                max_seq,
                stats,
                ..
            } = file;
            add.execute(params![table_no, path, bytes, rows, min_seq, max_seq, stats, self.now])?;
        }
        let mut remove = transaction.prepare_cached(
            "UPDATE cold_files SET removed_at = ?3 WHERE table_no = ?1 AND path = ?2 AND removed_at IS NULL",
        )?;
        for path in &self.removed {
            remove.execute(params![table_no, path, self.now])?;
        }
        if let Some(seq) = self.flushed_seq {
            transaction.execute(
                "DELETE FROM hot WHERE id >= (SELECT flushed_seq << ?4 FROM tables WHERE table_no = ?3) AND id < ?1 \
                 AND (id & ?2) = ?3",
                params![(seq + 1) << TABLE_BITS, TABLE_MASK, table_no, TABLE_BITS],
            )?;
        }
        transaction.execute(
            "UPDATE store_state SET cold_version = cold_version + 1 WHERE id = 1",
            [],
        )?;
        transaction.execute(
            "UPDATE tables SET flushed_seq = max(flushed_seq, coalesce(?2, 0)), delta_version = ?3, unsettled = 0, \
             cold_version = (SELECT cold_version FROM store_state WHERE id = 1) WHERE table_no = ?1",
            params![table_no, self.flushed_seq, self.delta_version],
        )?;
        Ok(())
    }
}
