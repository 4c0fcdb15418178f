//! One atomic commit: rows for any tables and changes to the control tables.

use std::fmt;

use arrow::array::RecordBatch;
use rusqlite::Transaction;

use crate::error::{BoxError, Result, StoreError};
use crate::rows::Rows;

pub(crate) type ControlFn = Box<dyn FnOnce(&Transaction<'_>, &mut Appends) -> Result<(), BoxError> + Send>;

/// Rows to append, by table.
#[derive(Debug, Default)]
pub struct Appends {
    pub(crate) batches: Vec<(String, RecordBatch)>,
    pub(crate) error: Option<StoreError>,
}

impl Appends {
    /// Appends rows to a table, as `evo.nodes`.
    pub fn append(&mut self, table: &str, rows: impl IntoRows) {
        match rows.into_batch() {
            Ok(batch) if batch.num_rows() > 0 => self.batches.push((table.to_owned(), batch)),
            Ok(_) => {}
            Err(error) => self.error = self.error.take().or(Some(error)),
        }
    }
}

/// Things that can be appended to a table.
pub trait IntoRows {
    /// The rows as one batch.
    fn into_batch(self) -> Result<RecordBatch>;
}

impl IntoRows for Rows {
    fn into_batch(self) -> Result<RecordBatch> {
        self.finish()
    }
}

impl IntoRows for RecordBatch {
    fn into_batch(self) -> Result<RecordBatch> {
        Ok(self)
    }
}

/// One commit: all of it happens or none of it.
#[derive(Default)]
pub struct Txn {
    pub(crate) appends: Appends,
    pub(crate) controls: Vec<ControlFn>,
    /// Some rows come from control closures, so rows can only be encoded after these ran.
    pub(crate) late_rows: bool,
}

impl Txn {
    /// An empty commit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends rows to a table, as `evo.nodes`. Rows that do not fit make the commit fail.
    pub fn append(&mut self, table: &str, rows: impl IntoRows) -> &mut Self {
        self.appends.append(table, rows);
        self
    }

    /// Changes control tables in the same transaction. An error rolls this commit back, and no other.
    pub fn control<E: Into<BoxError>>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> Result<(), E> + Send + 'static,
    ) -> &mut Self {
        self.controls
            .push(Box::new(|transaction, _| change(transaction).map_err(Into::into)));
        self
    }

    /// Like [`Txn::control`]; rows that depend on what the control tables say can be appended as well.
    pub fn control_rows<E: Into<BoxError>>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>, &mut Appends) -> Result<(), E> + Send + 'static,
    ) -> &mut Self {
        self.late_rows = true;
        self.controls.push(Box::new(|transaction, appends| {
            change(transaction, appends).map_err(Into::into)
        }));
        self
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.appends.batches.is_empty() && self.appends.error.is_none() && self.controls.is_empty()
    }
}

impl fmt::Debug for Txn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables: Vec<&str> = self.appends.batches.iter().map(|(table, _)| table.as_str()).collect();
        f.debug_struct("Txn")
            .field("tables", &tables)
            .field("controls", &self.controls.len())
            .finish()
    }
}
