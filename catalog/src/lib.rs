//! Clade's store: table specs, the hot and the cold tier, snapshots, table providers and system tables.
//!
//! A [`Store`] is a directory. Commits ([`Txn`]) are rows of Arrow batches for any tables plus changes to control tables,
//! atomic and durable. Statements read one [`Snapshot`] through the providers of [`catalog_schemas`].

mod cold;
mod column;
mod error;
mod hot;
mod newest;
mod provider;
mod rows;
mod spec;
mod store;
mod value;

pub use error::{BoxError, Result, StoreError};
pub use provider::repeated::RepeatedQueries;
pub use provider::schema::{StoreSchema, TableDoc, catalog_schemas};
pub use provider::virtual_table::VirtualTable;
pub use rows::Rows;
pub use spec::{COMMITTED_AT_COLUMN, ColumnSpec, ColumnType, SEQ_COLUMN, Specs, TableKind, TableSpec, VERSIONS_SUFFIX};
pub use store::maintenance::FlushScope;
pub use store::options::{
    Clock, ColdLocation, FaultHook, FaultPoint, MaintenanceOptions, S3Location, StoreOptions, SystemClock,
};
pub use store::txn::{Appends, IntoRows, Txn};
pub use store::writer::Seq;
pub use store::{Snapshot, Store};
pub use value::Value;
