//! Connections for reading. Readers never wait for the writer.

use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Connection, TransactionBehavior};

use super::database::{Access, connect};
use crate::error::{Result, StoreError};

/// Idle connections that are kept.
const IDLE: usize = 8;

/// Pool of connections for reading.
#[derive(Debug)]
pub(crate) struct Readers {
    database: PathBuf,
    access: Access,
    busy: Duration,
    idle: Mutex<Vec<Connection>>,
    /// Copy of a database that could not be opened in place; removed when the store is closed.
    copy: Option<PathBuf>,
}

impl Readers {
    pub(crate) fn new(database: PathBuf, access: Access, busy: Duration) -> Self {
        Self {
            database,
            access,
            busy,
            idle: Mutex::default(),
            copy: None,
        }
    }

    /// Opens a database that may lie on a file system that cannot be written.
    pub(crate) fn read_only(database: PathBuf, busy: Duration) -> Result<Self> {
        let readers = Self::new(database.clone(), Access::Read, busy);
        let Err(error) = readers.read(probe) else {
            return Ok(readers);
        };
        // Without write access SQLite cannot share a write-ahead log. Without such a log the file can be read as it is;
        // with one it is read from a copy, which brings the last commits along.
        let wal = PathBuf::from(format!("{}-wal", database.display()));
        if std::fs::metadata(&wal).is_ok_and(|wal| wal.len() > 0) {
            let folder = std::env::temp_dir().join(format!("clade-{}", uuid::Uuid::now_v7().simple()));
            std::fs::create_dir(&folder).map_err(StoreError::io(&folder))?;
            let copy = folder.join("clade.sqlite");
            let copied =
                std::fs::copy(&database, &copy).and_then(|_| std::fs::copy(&wal, folder.join("clade.sqlite-wal")));
            let mut readers = Self::new(copy, Access::Read, busy);
            readers.copy = Some(folder);
            copied.map_err(StoreError::io(&wal))?;
            return readers.read(probe).map(|()| readers).map_err(|_| error);
        }
        let readers = Self::new(database, Access::Immutable, busy);
        readers.read(probe).map(|()| readers).map_err(|_| error)
    }

    /// Runs reads in one read transaction.
    pub(crate) fn read<T, E: From<StoreError>>(&self, read: impl FnOnce(&Connection) -> Result<T, E>) -> Result<T, E> {
        let context = "read the store's database";
        let idle = self.idle.lock().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => connect(&self.database, &self.access, self.busy)?,
        };
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Deferred)
            .map_err(StoreError::sqlite(context))?;
        let outcome = read(&transaction);
        transaction.finish().map_err(StoreError::sqlite(context))?;
        let mut idle = self.idle.lock();
        if idle.len() < IDLE {
            idle.push(connection);
        }
        outcome
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.idle.lock().clear();
        if let Some(folder) = &self.copy {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn probe(connection: &Connection) -> Result<()> {
    connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
        .map_err(StoreError::sqlite("open the store's database"))
}
