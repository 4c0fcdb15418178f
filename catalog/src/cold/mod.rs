//! Cold tier: Parquet files in Delta tables, and the index of them that is kept in SQLite.

#![allow(dead_code)]

pub(crate) mod file;
pub(crate) mod location;
pub(crate) mod stats;
