//! Result rows of the engine's own queries, read by column name.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use datafusion::common::{DataFusionError, Result, exec_err};

/// All rows of a query.
#[derive(Debug, Clone)]
pub struct ResultRows {
    batches: Vec<RecordBatch>,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct ResultRow<'a> {
    batch: &'a RecordBatch,
    row: usize,
}

impl ResultRows {
    /// Rows of batches that share a schema.
    pub fn new(batches: Vec<RecordBatch>) -> Self {
        Self { batches }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows in order.
    pub fn iter(&self) -> impl Iterator<Item = ResultRow<'_>> {
        self.batches
            .iter()
            .flat_map(|batch| (0..batch.num_rows()).map(move |row| ResultRow { batch, row }))
    }

    /// The first row.
    pub fn first(&self) -> Option<ResultRow<'_>> {
        self.iter().next()
    }

    /// The batches.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }
}

impl<'a> ResultRow<'a> {
    fn column(&self, name: &str) -> Result<&'a dyn Array> {
        match self.batch.column_by_name(name) {
            Some(column) => Ok(column.as_ref()),
            None => exec_err!("the query has no column {name}"),
        }
    }

    fn required<T>(name: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| DataFusionError::Execution(format!("column {name} is NULL")))
    }

    /// Text of a column, or NULL.
    ///
    /// # Errors
    /// When there is no such column or it holds no text.
    pub fn optional_text(&self, name: &str) -> Result<Option<String>> {
        let column = self.column(name)?;
        if column.is_null(self.row) {
            return Ok(None);
        }
        Ok(Some(match column.data_type() {
            DataType::Utf8 => column.as_string::<i32>().value(self.row).to_owned(),
            DataType::LargeUtf8 => column.as_string::<i64>().value(self.row).to_owned(),
            DataType::Utf8View => column.as_string_view().value(self.row).to_owned(),
            other => return exec_err!("column {name} is {other}, not text"),
        }))
    }

    /// Text of a column.
    ///
    /// # Errors
    /// Also when it is NULL.
    pub fn text(&self, name: &str) -> Result<String> {
        Self::required(name, self.optional_text(name)?)
    }

    /// Number of a column, or NULL.
    ///
    /// # Errors
    /// When there is no such column or it holds no number.
    pub fn optional_float(&self, name: &str) -> Result<Option<f64>> {
        let column = self.column(name)?;
        if column.is_null(self.row) {
            return Ok(None);
        }
        Ok(Some(match column.data_type() {
            DataType::Float64 => column.as_primitive::<Float64Type>().value(self.row),
            DataType::Int64 => column.as_primitive::<Int64Type>().value(self.row) as f64,
            DataType::UInt64 => column.as_primitive::<UInt64Type>().value(self.row) as f64,
            other => return exec_err!("column {name} is {other}, not a number"),
        }))
    }

    /// Integer of a column, or NULL.
    ///
    /// # Errors
    /// When there is no such column or it holds no integer.
    pub fn optional_int(&self, name: &str) -> Result<Option<i64>> {
        let column = self.column(name)?;
        if column.is_null(self.row) {
            return Ok(None);
        }
        Ok(Some(match column.data_type() {
            DataType::Int64 => column.as_primitive::<Int64Type>().value(self.row),
            DataType::UInt64 => i64::try_from(column.as_primitive::<UInt64Type>().value(self.row)).unwrap_or(i64::MAX),
            DataType::Timestamp(..) => column.as_primitive::<TimestampMicrosecondType>().value(self.row),
            other => return exec_err!("column {name} is {other}, not an integer"),
        }))
    }

    /// Integer of a column.
    ///
    /// # Errors
    /// Also when it is NULL.
    pub fn int(&self, name: &str) -> Result<i64> {
        Self::required(name, self.optional_int(name)?)
    }

    /// Boolean of a column; none for NULL.
    ///
    /// # Errors
    /// When there is no such column, or it holds no boolean.
    pub fn optional_bool(&self, name: &str) -> Result<Option<bool>> {
        let column = self.column(name)?;
        if column.is_null(self.row) {
            return Ok(None);
        }
        match column.data_type() {
            DataType::Boolean => Ok(Some(column.as_boolean().value(self.row))),
            other => exec_err!("column {name} is {other}, not a boolean"),
        }
    }

    /// Boolean of a column.
    ///
    /// # Errors
    /// Also when it is NULL.
    pub fn bool(&self, name: &str) -> Result<bool> {
        Self::required(name, self.optional_bool(name)?)
    }

    /// Texts of a list column; NULL is an empty list.
    ///
    /// # Errors
    /// When there is no such column or it holds no list of texts.
    pub fn texts(&self, name: &str) -> Result<Vec<String>> {
        let column = self.column(name)?;
        if column.is_null(self.row) {
            return Ok(Vec::new());
        }
        match column.data_type() {
            DataType::List(_) => {
                let values = column.as_list::<i32>().value(self.row);
                Ok(values.as_string::<i32>().iter().flatten().map(str::to_owned).collect())
            }
            other => exec_err!("column {name} is {other}, not a list"),
        }
    }
}
