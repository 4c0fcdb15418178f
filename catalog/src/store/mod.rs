//! The store: a directory with a SQLite database (hot rows, control tables), Delta tables (cold rows) and blobs.

mod blobs;
mod compact;
pub(crate) mod database;
mod flush;
pub(crate) mod layout;
pub(crate) mod maintenance;
pub(crate) mod options;
mod problems;
mod readers;
mod snapshot;
pub(crate) mod table_state;
pub(crate) mod txn;
mod vacuum;
pub(crate) mod writer;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use datafusion::common::runtime::SpawnedTask;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use self::database::{Access, check_format, check_layouts, connect, migrate, register_tables};
use self::layout::{Layout, Marker};
use self::options::{ColdLocation, StoreOptions};
use self::readers::Readers;
pub use self::snapshot::Snapshot;
use self::table_state::{StoreState, TableCache, TableState};
use self::txn::Txn;
use self::writer::{Encoder, Seq, Writer};
use crate::cold::columns::ColumnCache;
use crate::cold::location::Location;
use crate::cold::parquet_file;
use crate::error::{BoxError, Result, StoreError};
use crate::spec::{Specs, TableSpec};

/// A store that is open in this process. Cloning is cheap; the store is closed with its last clone.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

/// What clones of a store share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) layout: Layout,
    pub(crate) id: String,
    pub(crate) options: StoreOptions,
    pub(crate) specs: Arc<Specs>,
    pub(crate) location: Location,
    pub(crate) readers: Readers,
    /// Decoded columns of cold files.
    pub(crate) columns: ColumnCache,
    writer: Option<Writer>,
    tables: HashMap<String, TableCache>,
    committed: watch::Receiver<Seq>,
    /// Held while this process moves rows between the tiers.
    maintaining: tokio::sync::Mutex<()>,
    /// Cold files whose footer this process has read.
    sound_files: Mutex<HashSet<String>>,
    /// Background maintenance; ends with the store.
    background: Mutex<Option<SpawnedTask<()>>>,
    /// Maintenance is to stop where it can.
    closing: watch::Sender<bool>,
}

impl Store {
    /// Makes a store in a directory that holds none, and opens it.
    pub fn create(dir: impl AsRef<Path>, options: StoreOptions) -> Result<Self> {
        let layout = Layout::new(dir.as_ref());
        if layout.marker().exists() {
            return Err(StoreError::AlreadyExists {
                dir: layout.dir().to_owned(),
            });
        }
        if options.read_only {
            return Err(StoreError::ReadOnly {
                dir: layout.dir().to_owned(),
            });
        }
        layout.create_folders()?;
        let mut connection = connect(&layout.database(), &Access::Write, options.busy_timeout)?;
        migrate(&mut connection, &layout)?;
        drop(connection);
        let marker = Marker {
            format: database::FORMAT,
            id: uuid::Uuid::now_v7().to_string(),
            created_at: chrono::Utc::now().to_rfc3339(),
            cold: match &options.cold {
                ColdLocation::Local => None,
                ColdLocation::S3(s3) => Some(s3.url.clone()),
            },
        };
        marker.create(&layout)?;
        Self::open(dir, options)
    }

    /// Opens a store. An older one is migrated, a newer one is refused.
    pub fn open(dir: impl AsRef<Path>, options: StoreOptions) -> Result<Self> {
        let layout = Layout::new(dir.as_ref());
        let mut marker = Marker::read(&layout)?;
        check_format(&layout, marker.format)?;
        // SQLite would make a new one, and the history would seem to be empty.
        if std::fs::metadata(layout.database()).map_or(true, |file| file.len() == 0) {
            return Err(StoreError::NoDatabase {
                path: layout.database(),
            });
        }
        check_cold(&marker, &options.cold)?;
        let specs = match &options.specs {
            Some(specs) => Arc::clone(specs),
            None => Arc::clone(Specs::builtin()?),
        };
        let location = Location::open(&layout.tables(), &options.cold)?;
        let (report, committed) = watch::channel(0);
        let (readers, writer) = if options.read_only {
            let readers = Readers::read_only(layout.database(), options.busy_timeout)?;
            readers.read(|connection| {
                let found = database::format(connection)?;
                check_format(&layout, found)?;
                if found < database::FORMAT {
                    let (dir, supported) = (layout.dir().to_owned(), database::FORMAT);
                    return Err(StoreError::OlderFormat { dir, found, supported });
                }
                check_layouts(connection, &specs)
            })?;
            (readers, None)
        } else {
            let mut connection = connect(&layout.database(), &Access::Write, options.busy_timeout)?;
            let migrated = migrate(&mut connection, &layout)?;
            if migrated || marker.format != database::FORMAT {
                marker.format = database::FORMAT;
                marker.write(&layout)?;
            }
            check_layouts(&connection, &specs)?;
            let registered = register_tables(&mut connection, &specs)?;
            report.send_replace(StoreState::read(&connection)?.last_seq);
            let encoder = Encoder {
                specs: Arc::clone(&specs),
                registered,
            };
            let writer = Writer::start(connection, encoder, Arc::clone(&options.clock), report)?;
            (
                Readers::new(layout.database(), Access::Read, options.busy_timeout),
                Some(writer),
            )
        };
        let tables = specs
            .iter()
            .map(|spec| (spec.name.clone(), TableCache::default()))
            .collect();
        let inner = Inner {
            layout,
            id: marker.id,
            columns: ColumnCache::new(options.cold_cache_bytes),
            options,
            specs,
            location,
            readers,
            writer,
            tables,
            committed,
            maintaining: tokio::sync::Mutex::default(),
            sound_files: Mutex::default(),
            background: Mutex::default(),
            closing: watch::Sender::new(false),
        };
        let store = Self { inner: Arc::new(inner) };
        store.start_background();
        Ok(store)
    }

    /// Writes a commit; when this returns it is durable. An empty commit writes nothing.
    ///
    /// Returns the number of the commit, or of the last one when no rows were written.
    pub async fn commit(&self, txn: Txn) -> Result<Seq> {
        self.inner.writer()?.commit(txn).await
    }

    /// Changes control tables in one transaction and returns what `change` returns. An error rolls all of it back.
    pub async fn control<T, E>(
        &self,
        change: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        E: Into<BoxError>,
    {
        let slot = Arc::new(Mutex::new(None));
        let result = Arc::clone(&slot);
        let mut txn = Txn::new();
        txn.control(move |transaction| change(transaction).map(|value| *result.lock() = Some(value)));
        self.commit(txn).await?;
        let value = slot.lock().take();
        value.ok_or(StoreError::Closed)
    }

    /// Reads control tables in one read transaction; never waits for the writer.
    pub async fn control_read<T, E>(&self, read: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
        E: Into<BoxError> + Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        spawn_blocking(move || {
            inner
                .readers
                .read(|connection| read(connection).map_err(|error| StoreError::Control(error.into())))
        })
        .await?
    }

    /// The newest snapshot, or the one after commit `at`.
    pub async fn snapshot(&self, at: Option<Seq>) -> Result<Arc<Snapshot>> {
        let inner = Arc::clone(&self.inner);
        let state = spawn_blocking(move || inner.readers.read(StoreState::read)).await??;
        let (seq, latest) = (at.unwrap_or(state.last_seq), state.last_seq);
        if !(0..=latest).contains(&seq) {
            return Err(StoreError::UnknownSnapshot { requested: seq, latest });
        }
        Ok(Arc::new(Snapshot {
            seq,
            cold_version: state.cold_version,
            policies_version: state.policies_version,
        }))
    }

    /// Tells when this process has committed: the number of its last commit.
    pub fn subscribe(&self) -> watch::Receiver<Seq> {
        self.inner.committed.clone()
    }

    /// Table specs of the store.
    pub fn specs(&self) -> &Arc<Specs> {
        &self.inner.specs
    }

    /// Directory of the store.
    pub fn dir(&self) -> &Path {
        self.inner.layout.dir()
    }

    /// Id of the store; it stays the same when the directory moves.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// Whether the store is opened for reading only.
    pub fn is_read_only(&self) -> bool {
        self.inner.options.read_only
    }

    /// A state of a table that contains the snapshot.
    pub(crate) async fn table_state(&self, spec: &Arc<TableSpec>, snapshot: &Snapshot) -> Result<Arc<TableState>> {
        let state = match self.inner.cache(spec)?.get(snapshot) {
            Some(state) => state,
            None => {
                let (inner, spec, snapshot) = (Arc::clone(&self.inner), Arc::clone(spec), *snapshot);
                spawn_blocking(move || {
                    let state = inner.cache(&spec)?.load(&spec, &inner.readers, &snapshot)?;
                    inner.bound_cache(&spec);
                    Ok::<_, StoreError>(state)
                })
                .await??
            }
        };
        self.leave_out_damaged(spec, state).await
    }

    /// Leaves cold files out that cannot be read, and notes them in `system.problems`.
    async fn leave_out_damaged(&self, spec: &Arc<TableSpec>, state: Arc<TableState>) -> Result<Arc<TableState>> {
        let unchecked: Vec<_> = {
            let sound = self.inner.sound_files.lock();
            state
                .files
                .iter()
                .filter(|file| !sound.contains(&file.path))
                .cloned()
                .collect()
        };
        let mut damaged = HashSet::new();
        for file in unchecked {
            match parquet_file::damage(&self.inner.location, spec, &file).await? {
                None => {
                    self.inner.sound_files.lock().insert(file.path.clone());
                }
                Some(reason) => {
                    let subject = self.inner.location.file(spec, &file.path).to_string();
                    let lost = format!(
                        "{reason}; its {} rows of {} are left out. Restore it from a backup",
                        file.rows, spec.name
                    );
                    self.note_problem("cold", &subject, &lost).await;
                    damaged.insert(file.path.clone());
                }
            }
        }
        if damaged.is_empty() {
            return Ok(state);
        }
        let mut rest = TableState::clone(&state);
        rest.files = Arc::new(
            rest.files
                .iter()
                .filter(|file| !damaged.contains(&file.path))
                .cloned()
                .collect(),
        );
        Ok(Arc::new(rest))
    }
}

impl Inner {
    pub(crate) fn writer(&self) -> Result<&Writer> {
        self.writer.as_ref().ok_or_else(|| StoreError::ReadOnly {
            dir: self.layout.dir().to_owned(),
        })
    }

    fn cache(&self, spec: &TableSpec) -> Result<&TableCache> {
        self.tables.get(&spec.name).ok_or_else(|| StoreError::UnknownTable {
            table: spec.name.clone(),
            known: "the store's specs".into(),
        })
    }

    /// Keeps the decoded hot rows of all tables within their memory; the table just used goes last.
    fn bound_cache(&self, used: &TableSpec) {
        let mut caches: Vec<_> = self
            .tables
            .iter()
            .filter(|(name, _)| **name != used.name)
            .map(|(_, c)| c)
            .collect();
        let mut bytes: usize = self.tables.values().map(TableCache::bytes).sum();
        // Read once each: other readers move these times on while the list is sorted.
        caches.sort_by_cached_key(|cache| cache.last_used());
        for cache in caches {
            if bytes <= self.options.hot_cache_bytes {
                break;
            }
            bytes -= cache.bytes().min(bytes);
            cache.clear();
        }
    }
}

/// The cold tier must be where it was when the store was created.
fn check_cold(marker: &Marker, cold: &ColdLocation) -> Result<()> {
    let given = match cold {
        ColdLocation::Local => None,
        ColdLocation::S3(s3) => Some(&s3.url),
    };
    if marker.cold.as_ref() == given {
        return Ok(());
    }
    let name = |url: Option<&String>| url.map_or_else(|| "the store's directory".to_owned(), Clone::clone);
    Err(StoreError::Setting {
        setting: "cold location".into(),
        reason: format!(
            "the store was created with {}, {} was given",
            name(marker.cold.as_ref()),
            name(given)
        ),
    })
}
