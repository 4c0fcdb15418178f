//! Table and schema providers for DataFusion.

pub(crate) mod decoded;
pub(crate) mod late_scan_exec;
pub(crate) mod newest_exec;
pub(crate) mod repeated;
pub(crate) mod scan;
pub(crate) mod schema;
pub(crate) mod storage;
pub(crate) mod stored_scan;
pub(crate) mod table;
pub(crate) mod virtual_table;
