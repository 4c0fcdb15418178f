//! The index of cold files.

use std::sync::Arc;

use datafusion::common::Statistics;
use rusqlite::Connection;

use super::stats::FileStats;
use crate::error::{Result, StoreError};
use crate::spec::TableSpec;
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
                }))
            })
            .and_then(Iterator::collect)
            .map_err(StoreError::sqlite(context))?;
        Ok(files)
    }
}
