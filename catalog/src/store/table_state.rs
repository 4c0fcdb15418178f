//! What this process knows of one table: its cold files and its decoded hot rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, params};

use super::database::{TABLE_BITS, TABLE_MASK, layouts};
use super::readers::Readers;
use super::snapshot::Snapshot;
use super::writer::Seq;
use crate::cold::file::ColdFile;
use crate::error::{Result, StoreError};
use crate::hot::codec::Decoder;
use crate::hot::table::{HotBatches, HotBuilder};
use crate::spec::TableSpec;

/// Batches that are decoded at once; more would only be split again.
const DECODE_ROWS: usize = 8192;
/// A state older than this is read again before it is used, so that replaced files are not used past their grace.
const FRESH: Duration = Duration::from_secs(60);

/// One consistent state of a table: every row of commits up to `seq` is in one of the two tiers, once.
#[derive(Debug, Clone)]
pub(crate) struct TableState {
    /// Last commit that is contained.
    pub(crate) seq: Seq,
    /// Commits up to here are in cold files.
    pub(crate) flushed_seq: Seq,
    /// `store_state.cold_version` when it was read.
    store_cold_version: i64,
    /// `tables.cold_version` of the files.
    cold_version: i64,
    pub(crate) files: Arc<Vec<Arc<ColdFile>>>,
    pub(crate) hot: HotBatches,
    read_at: Instant,
}

impl TableState {
    fn empty() -> Self {
        Self {
            seq: 0,
            flushed_seq: 0,
            store_cold_version: -1,
            cold_version: 0,
            files: Arc::default(),
            hot: HotBatches::default(),
            read_at: Instant::now(),
        }
    }

    fn serves(&self, snapshot: &Snapshot) -> bool {
        self.seq >= snapshot.seq && self.store_cold_version >= snapshot.cold_version && self.read_at.elapsed() < FRESH
    }
}

/// The state of one table that is kept between statements.
#[derive(Debug, Default)]
pub(crate) struct TableCache {
    state: Mutex<Option<Arc<TableState>>>,
    loading: Mutex<()>,
    used: Mutex<Option<Instant>>,
}

impl TableCache {
    /// A state that contains the snapshot, if one is at hand.
    pub(crate) fn get(&self, snapshot: &Snapshot) -> Option<Arc<TableState>> {
        *self.used.lock() = Some(Instant::now());
        self.state.lock().clone().filter(|state| state.serves(snapshot))
    }

    /// A state that contains the snapshot; only what is new is read. Blocks.
    pub(crate) fn load(
        &self,
        spec: &Arc<TableSpec>,
        readers: &Readers,
        snapshot: &Snapshot,
    ) -> Result<Arc<TableState>> {
        let _one = self.loading.lock();
        if let Some(state) = self.get(snapshot) {
            return Ok(state);
        }
        let known = self.state.lock().clone();
        let state = Arc::new(readers.read(|connection| read_state(connection, spec, known.as_deref()))?);
        *self.state.lock() = Some(Arc::clone(&state));
        Ok(state)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.state.lock().as_ref().map_or(0, |state| state.hot.bytes())
    }

    pub(crate) fn last_used(&self) -> Option<Instant> {
        *self.used.lock()
    }

    pub(crate) fn clear(&self) {
        *self.state.lock() = None;
    }
}

/// Reads the newest state in the read transaction of `connection`, building on an older one.
fn read_state(connection: &Connection, spec: &Arc<TableSpec>, known: Option<&TableState>) -> Result<TableState> {
    let context = "read a table's state";
    let mut state = known.cloned().unwrap_or_else(TableState::empty);
    let StoreState {
        last_seq: seq,
        cold_version: store_cold_version,
        ..
    } = StoreState::read(connection)?;
    let row = connection
        .prepare_cached("SELECT table_no, flushed_seq, cold_version FROM tables WHERE name = ?1")
        .and_then(|mut query| {
            query
                .query_row([&spec.name], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
                })
                .optional()
        })
        .map_err(StoreError::sqlite(context))?;
    if let Some((table_no, flushed_seq, cold_version)) = row {
        if cold_version != state.cold_version {
            state.files = Arc::new(ColdFile::read_index(connection, spec, table_no)?);
            state.cold_version = cold_version;
        }
        if flushed_seq != state.flushed_seq {
            state.hot.drop_through(flushed_seq);
            state.flushed_seq = flushed_seq;
        }
        for batch in read_hot(connection, spec, table_no, state.seq.max(flushed_seq), seq)? {
            state.hot.push(batch)?;
        }
    }
    state.seq = seq;
    state.store_cold_version = store_cold_version;
    state.read_at = Instant::now();
    Ok(state)
}

/// The one row that says how far the store is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreState {
    /// Last commit.
    pub(crate) last_seq: Seq,
    /// Version of the index of cold files.
    pub(crate) cold_version: i64,
    /// Number of changes of the policies.
    pub(crate) policies_version: i64,
}

impl StoreState {
    pub(crate) fn read(connection: &Connection) -> Result<Self> {
        connection
            .prepare_cached("SELECT last_seq, cold_version, policies_version FROM store_state WHERE id = 1")
            .and_then(|mut query| {
                query.query_row([], |row| {
                    Ok(Self {
                        last_seq: row.get(0)?,
                        cold_version: row.get(1)?,
                        policies_version: row.get(2)?,
                    })
                })
            })
            .map_err(StoreError::sqlite("read the store's state"))
    }
}

/// Decodes the hot rows of a table of the commits after `after`, up to `through`.
pub(crate) fn read_hot(
    connection: &Connection,
    spec: &Arc<TableSpec>,
    table_no: i64,
    after: Seq,
    through: Seq,
) -> Result<Vec<arrow::array::RecordBatch>> {
    let context = "read hot rows";
    let mut batches = Vec::new();
    if after >= through {
        return Ok(batches);
    }
    let decoders = layouts(connection, spec)?
        .into_iter()
        .filter_map(|(id, layout)| Some((id, Decoder::new(&layout, spec)?)))
        .collect::<std::collections::HashMap<_, _>>();
    let mut builder = HotBuilder::new(spec);
    let mut query = connection
        .prepare_cached(
            "SELECT id, layout_id, rows, committed_at, data FROM hot \
             WHERE id >= ?1 AND id < ?2 AND (id & ?3) = ?4 ORDER BY id",
        )
        .map_err(StoreError::sqlite(context))?;
    let mut rows = query
        .query(params![
            (after + 1) << TABLE_BITS,
            (through + 1) << TABLE_BITS,
            TABLE_MASK,
            table_no
        ])
        .map_err(StoreError::sqlite(context))?;
    while let Some(row) = rows.next().map_err(StoreError::sqlite(context))? {
        let (id, layout_id, count, committed_at) = (|| {
            Ok::<_, rusqlite::Error>((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, i64>(2)?,
                row.get(3)?,
            ))
        })()
        .map_err(StoreError::sqlite(context))?;
        let corrupt = |reason: &str| StoreError::Corrupt {
            subject: format!("commit {} of table {}", id >> TABLE_BITS, spec.name),
            reason: reason.into(),
        };
        let blob = row.get_ref(4).map_err(StoreError::sqlite(context))?;
        let blob = blob.as_blob().map_err(|_| corrupt("the hot rows are no blob"))?;
        let decoder = decoders
            .get(&layout_id)
            .ok_or_else(|| corrupt("its layout is not known"))?;
        let count = usize::try_from(count).map_err(|_| corrupt("its row count is negative"))?;
        builder.add(decoder, id >> TABLE_BITS, committed_at, count, blob)?;
        if builder.rows() >= DECODE_ROWS {
            batches.push(builder.finish()?);
        }
    }
    if builder.rows() > 0 {
        batches.push(builder.finish()?);
    }
    Ok(batches)
}
