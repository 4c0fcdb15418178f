//! Connections to the store's SQLite database, its migrations and the table registry.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};

use super::layout::Layout;
use crate::error::{Result, StoreError};
use crate::hot::codec;
use crate::spec::{MIGRATIONS, Specs, TableSpec};

/// Bits of a hot row's id that hold the table number.
pub(crate) const TABLE_BITS: u32 = 12;
/// Mask of the table number in a hot row's id.
pub(crate) const TABLE_MASK: i64 = (1 << TABLE_BITS) - 1;

/// Format that this version reads and writes.
pub(crate) const FORMAT: i64 = MIGRATIONS.len() as i64;

/// How to reach the database.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// Reads and writes.
    Write,
    /// Reads only.
    Read,
    /// Reads only, from a file system that cannot be written.
    Immutable,
}

/// Opens a connection.
pub(crate) fn connect(database: &Path, access: &Access, busy: Duration) -> Result<Connection> {
    let context = "open the store's database";
    let common = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = match access {
        Access::Write => Connection::open_with_flags(
            database,
            common | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        ),
        Access::Read => Connection::open_with_flags(database, common | OpenFlags::SQLITE_OPEN_READ_ONLY),
        Access::Immutable => {
            let path = std::path::absolute(database).map_err(StoreError::io(database))?;
            let url = url::Url::from_file_path(&path)
                .map_err(|()| StoreError::io(&path)(std::io::ErrorKind::InvalidFilename.into()))?;
            Connection::open_with_flags(
                format!("file:{}?immutable=1", url.path()),
                common | OpenFlags::SQLITE_OPEN_READ_ONLY,
            )
        }
    }
    .map_err(StoreError::sqlite(context))?;
    connection.busy_timeout(busy).map_err(StoreError::sqlite(context))?;
    connection.set_prepared_statement_cache_capacity(64);
    if matches!(access, Access::Write) {
        // SQLite falls back to reading when it cannot write.
        if connection.is_readonly("main").map_err(StoreError::sqlite(context))? {
            return Err(StoreError::NotWritable {
                path: database.to_owned(),
            });
        }
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF; \
                 PRAGMA cache_size = -16384; PRAGMA journal_size_limit = 67108864; PRAGMA wal_autocheckpoint = 2000;",
            )
            .map_err(StoreError::sqlite(context))?;
    }
    Ok(connection)
}

/// Format of the database.
pub(crate) fn format(connection: &Connection) -> Result<i64> {
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(StoreError::sqlite("read the store's format"))
}

/// Brings the database to this version's format. Returns whether anything changed.
pub(crate) fn migrate(connection: &mut Connection, layout: &Layout) -> Result<bool> {
    let context = "migrate the store";
    if format(connection)? == FORMAT {
        return Ok(false);
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(StoreError::sqlite(context))?;
    let found = format(&transaction)?;
    check_format(layout, found)?;
    for (name, sql) in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        tracing::info!(migration = name, "migrate the store");
        transaction.execute_batch(sql).map_err(StoreError::sqlite(context))?;
    }
    transaction
        .pragma_update(None, "user_version", FORMAT)
        .map_err(StoreError::sqlite(context))?;
    transaction.commit().map_err(StoreError::sqlite(context))?;
    Ok(true)
}

/// Refuses a store that a newer version wrote.
pub(crate) fn check_format(layout: &Layout, found: i64) -> Result<()> {
    if found > FORMAT {
        return Err(StoreError::NewerFormat {
            dir: layout.dir().to_owned(),
            found,
            supported: FORMAT,
        });
    }
    Ok(())
}

/// A table as the database knows it.
#[derive(Debug, Clone)]
pub(crate) struct Registered {
    pub(crate) table_no: i64,
    /// Layout that this version writes.
    pub(crate) layout_id: i64,
}

/// Registers the tables and the layouts of all specs; returns them by table name.
pub(crate) fn register_tables(connection: &mut Connection, specs: &Specs) -> Result<HashMap<String, Registered>> {
    if let Some(known) = registered_tables(connection, specs)? {
        return Ok(known);
    }
    let context = "register tables";
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(StoreError::sqlite(context))?;
    for spec in specs.iter() {
        register_table(&transaction, spec).map_err(StoreError::sqlite(context))?;
    }
    transaction.commit().map_err(StoreError::sqlite(context))?;
    registered_tables(connection, specs)?.ok_or_else(|| StoreError::Corrupt {
        subject: "the table registry".into(),
        reason: "a table is missing right after it was written".into(),
    })
}

fn register_table(transaction: &Transaction<'_>, spec: &TableSpec) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO tables (name) VALUES (?1) ON CONFLICT DO NOTHING",
        [&spec.name],
    )?;
    transaction.execute(
        "INSERT INTO layouts (table_no, columns) SELECT table_no, ?2 FROM tables WHERE name = ?1 ON CONFLICT DO NOTHING",
        params![spec.name, codec::Layout::of(spec).to_text()],
    )?;
    Ok(())
}

/// The tables by name; `None` when one is not registered yet.
fn registered_tables(connection: &Connection, specs: &Specs) -> Result<Option<HashMap<String, Registered>>> {
    let context = "read the table registry";
    let mut known = HashMap::new();
    let mut query = connection
        .prepare(
            "SELECT t.table_no, l.layout_id FROM tables t JOIN layouts l USING (table_no) \
             WHERE t.name = ?1 AND l.columns = ?2",
        )
        .map_err(StoreError::sqlite(context))?;
    for spec in specs.iter() {
        let found = query
            .query_row(params![spec.name, codec::Layout::of(spec).to_text()], |row| {
                Ok(Registered {
                    table_no: row.get(0)?,
                    layout_id: row.get(1)?,
                })
            })
            .optional()
            .map_err(StoreError::sqlite(context))?;
        match found {
            Some(registered) => known.insert(spec.name.clone(), registered),
            None => return Ok(None),
        };
    }
    Ok(Some(known))
}

/// Checks the layouts that the store holds against the specs. Later versions may add columns that allow NULL; columns are
/// never dropped, so one that this version does not know was written by a newer version.
pub(crate) fn check_layouts(connection: &Connection, specs: &Specs) -> Result<()> {
    let context = "read the table layouts";
    let mut query = connection
        .prepare("SELECT t.name, l.columns FROM layouts l JOIN tables t USING (table_no) ORDER BY l.layout_id")
        .map_err(StoreError::sqlite(context))?;
    let rows = query
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))
        .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
        .map_err(StoreError::sqlite(context))?;
    for (name, columns) in rows {
        let Ok(spec) = specs.get(&name) else { continue };
        let layout = codec::Layout::parse(&name, &columns)?;
        let mut unknown = Vec::new();
        for (column, ty) in layout.columns() {
            match spec.columns.iter().find(|c| c.name == column) {
                None => unknown.push(column.to_owned()),
                Some(present) if present.column_type != ty => {
                    let (old, new) = (ty.as_str(), present.column_type.as_str());
                    let reason =
                        format!("column {column} was {old} and is {new} now; the type of a column cannot change");
                    return Err(StoreError::SpecChange { table: name, reason });
                }
                Some(_) => {}
            }
        }
        if !unknown.is_empty() {
            return Err(StoreError::NewerTable {
                table: name,
                columns: unknown.join(", "),
            });
        }
        let added = spec
            .columns
            .iter()
            .find(|c| !c.nullable && !layout.columns().any(|(known, _)| known == c.name));
        if let Some(column) = added {
            let reason = format!(
                "column {} was added and must allow NULL, older rows do not have it",
                column.name
            );
            return Err(StoreError::SpecChange { table: name, reason });
        }
    }
    Ok(())
}

/// Registered layouts of the store by id.
pub(crate) fn layouts(connection: &Connection, table: &Arc<TableSpec>) -> Result<HashMap<i64, codec::Layout>> {
    let context = "read the table layouts";
    let mut query = connection
        .prepare_cached("SELECT l.layout_id, l.columns FROM layouts l JOIN tables t USING (table_no) WHERE t.name = ?1")
        .map_err(StoreError::sqlite(context))?;
    let rows = query
        .query_map([&table.name], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        })
        .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
        .map_err(StoreError::sqlite(context))?;
    rows.into_iter()
        .map(|(id, text)| Ok((id, codec::Layout::parse(&table.name, &text)?)))
        .collect()
}
