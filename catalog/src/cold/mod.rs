//! Cold tier: Parquet files in Delta tables, and the index of them that is kept in SQLite.

pub(crate) mod columns;
pub(crate) mod delta;
pub(crate) mod file;
pub(crate) mod location;
pub(crate) mod parquet_file;
pub(crate) mod stats;
