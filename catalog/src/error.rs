//! Errors of the store.

use std::error::Error as StdError;
use std::path::PathBuf;

use datafusion::error::DataFusionError;

/// Any error, as control closures return it.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Result of a store operation.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// What went wrong in the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The directory holds no store.
    #[error("no store at {dir}: create one with `clade init --store {dir}`")]
    NotFound {
        /// Directory that was asked for.
        dir: PathBuf,
    },
    /// The store has a marker and no database.
    #[error(
        "the database of the store is missing or empty: {path}. Restore the file (and its -wal) from a backup; nothing was \
         opened or changed"
    )]
    NoDatabase {
        /// Where it should be.
        path: PathBuf,
    },
    /// The directory already holds a store.
    #[error("a store already exists at {dir}: open it, or choose another directory")]
    AlreadyExists {
        /// Directory that was asked for.
        dir: PathBuf,
    },
    /// The store was written by a newer version.
    #[error(
        "the store at {dir} has format {found}, this version reads up to format {supported}: use a newer version of clade"
    )]
    NewerFormat {
        /// Directory of the store.
        dir: PathBuf,
        /// Format of the store.
        found: i64,
        /// Newest format this version knows.
        supported: i64,
    },
    /// The store is older and cannot be migrated because it is opened read-only.
    #[error(
        "the store at {dir} has format {found}, this version reads format {supported}: open it once for writing to migrate it"
    )]
    OlderFormat {
        /// Directory of the store.
        dir: PathBuf,
        /// Format of the store.
        found: i64,
        /// Format of this version.
        supported: i64,
    },
    /// The store holds columns that this version does not know.
    #[error(
        "table {table} of the store has the columns {columns}, unknown to this version: use a newer version of clade"
    )]
    NewerTable {
        /// Table.
        table: String,
        /// Columns that are not known.
        columns: String,
    },
    /// A spec changed in a way that old rows cannot follow.
    #[error("table {table}: {reason}")]
    SpecChange {
        /// Table.
        table: String,
        /// What changed.
        reason: String,
    },
    /// A write on a store that is opened read-only.
    #[error("the store at {dir} is opened read-only: nothing was written")]
    ReadOnly {
        /// Directory of the store.
        dir: PathBuf,
    },
    /// The store cannot be written where it lies.
    #[error("{path} cannot be written: open the store read-only, or check its permissions")]
    NotWritable {
        /// The store's database.
        path: PathBuf,
    },
    /// A table spec is wrong.
    #[error("spec of table {table}: {reason}")]
    InvalidSpec {
        /// Table.
        table: String,
        /// What is wrong.
        reason: String,
    },
    /// A table that does not exist.
    #[error("unknown table {table}; known tables: {known}")]
    UnknownTable {
        /// Name that was asked for.
        table: String,
        /// Names that exist.
        known: String,
    },
    /// Rows that do not fit their table.
    #[error("table {table}, column {column}: {reason}")]
    Row {
        /// Table.
        table: String,
        /// Column.
        column: String,
        /// What is wrong.
        reason: String,
    },
    /// A snapshot that does not exist.
    #[error("snapshot {requested} does not exist: the newest is {latest}")]
    UnknownSnapshot {
        /// Snapshot that was asked for.
        requested: i64,
        /// Newest snapshot.
        latest: i64,
    },
    /// A control closure refused its commit.
    #[error("{0}")]
    Control(#[source] BoxError),
    /// SQLite failed.
    #[error("{context}: {source}")]
    Sqlite {
        /// What was being done.
        context: &'static str,
        /// Cause.
        #[source]
        source: rusqlite::Error,
    },
    /// No space is left.
    #[error("{context}: no space is left at {path}; nothing was written. Free some space and try again")]
    DiskFull {
        /// What was being done.
        context: &'static str,
        /// Directory or file.
        path: PathBuf,
    },
    /// The whole group of commits failed with one cause.
    #[error("commit failed, nothing was written: {0}")]
    Group(#[source] std::sync::Arc<StoreError>),
    /// A file operation failed.
    #[error("{path}: {source}")]
    Io {
        /// File.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// Stored data that cannot be read.
    #[error("{subject} is damaged: {reason}")]
    Corrupt {
        /// What is damaged.
        subject: String,
        /// How.
        reason: String,
    },
    /// A blob that is not there.
    #[error("no blob {hash} in the store")]
    NoBlob {
        /// Hash that was asked for.
        hash: String,
    },
    /// A setting of the store is wrong.
    #[error("{setting}: {reason}")]
    Setting {
        /// Setting.
        setting: String,
        /// What is wrong.
        reason: String,
    },
    /// Arrow failed.
    #[error("{context}: {source}")]
    Arrow {
        /// What was being done.
        context: String,
        /// Cause.
        #[source]
        source: arrow::error::ArrowError,
    },
    /// Parquet failed.
    #[error("{path}: {source}")]
    Parquet {
        /// File.
        path: String,
        /// Cause.
        #[source]
        source: parquet::errors::ParquetError,
    },
    /// The object store failed.
    #[error("{context}: {source}")]
    ObjectStore {
        /// What was being done.
        context: String,
        /// Cause.
        #[source]
        source: object_store::Error,
    },
    /// The Delta log failed.
    #[error("Delta table {table}: {source}")]
    Delta {
        /// Table.
        table: String,
        /// Cause.
        #[source]
        source: Box<deltalake_core::DeltaTableError>,
    },
    /// Another process holds a lock for too long.
    #[error("{what} is in use by another process: try again later")]
    Locked {
        /// What is locked.
        what: &'static str,
    },
    /// The writer ended.
    #[error("the store's writer has ended: open the store again")]
    Closed,
    /// A background task failed.
    #[error("a task of the store failed: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl StoreError {
    /// Error of SQLite with what was being done; a full disk is told apart.
    pub(crate) fn sqlite(context: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::DiskFull {
                context,
                path: "the store's database".into(),
            },
            _ => Self::Sqlite { context, source },
        }
    }

    /// Error of a file operation with the file; a full disk is told apart.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| match source.kind() {
            std::io::ErrorKind::StorageFull => Self::DiskFull {
                context: "write",
                path: path.into(),
            },
            _ => Self::Io {
                path: path.into(),
                source,
            },
        }
    }

    /// Whether trying again later can help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::DiskFull { .. } | Self::Locked { .. } => true,
            Self::Sqlite { source, .. } => matches!(
                source.sqlite_error_code(),
                Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
            ),
            Self::Group(cause) => cause.is_retryable(),
            Self::ObjectStore { .. } => true,
            _ => false,
        }
    }
}

impl From<StoreError> for DataFusionError {
    fn from(error: StoreError) -> Self {
        Self::External(Box::new(error))
    }
}
