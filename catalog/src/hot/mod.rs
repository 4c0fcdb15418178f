//! Hot tier: rows that wait in SQLite until they are flushed to Parquet.

pub(crate) mod codec;
pub(crate) mod table;
