//! Rows for one table, built by column name and checked against the table's spec.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};

use crate::column::ColumnBuilder;
use crate::error::{Result, StoreError};
use crate::spec::{Specs, TableSpec};
use crate::value::Value;

/// Rows for one table.
#[derive(Debug)]
pub struct Rows {
    spec: Arc<TableSpec>,
    builders: Vec<ColumnBuilder>,
    rows: usize,
}

impl Rows {
    /// Empty rows for a built-in table, as `evo.nodes`.
    pub fn new(table: &str) -> Result<Self> {
        Ok(Self::for_spec(Specs::builtin()?.get(table)?))
    }

    /// Empty rows for a table.
    pub fn for_spec(spec: &Arc<TableSpec>) -> Self {
        let builders = spec
            .columns
            .iter()
            .map(|c| ColumnBuilder::new(c.column_type, 1))
            .collect();
        Self {
            spec: Arc::clone(spec),
            builders,
            rows: 0,
        }
    }

    /// Adds one row. Columns that are not named are NULL. On an error the rows are as before.
    pub fn push<'a>(&mut self, row: impl IntoIterator<Item = (&'a str, Value)>) -> Result<&mut Self> {
        let spec = Arc::clone(&self.spec);
        let mut cells = vec![Value::Null; spec.columns.len()];
        for (name, value) in row {
            let index = spec.column_index(name).ok_or_else(|| {
                let known: Vec<&str> = spec.columns.iter().map(|c| c.name.as_str()).collect();
                self.error(name, format!("no such column; columns: {}", known.join(", ")))
            })?;
            let expected = spec.columns[index].column_type;
            if let Some(actual) = value.column_type().filter(|actual| *actual != expected) {
                return Err(self.error(name, format!("expected {}, got {}", expected.as_str(), actual.as_str())));
            }
            cells[index] = value;
        }
        for (column, cell) in spec.columns.iter().zip(&cells) {
            if !column.nullable && *cell == Value::Null {
                return Err(self.error(&column.name, "a value is needed, NULL is not allowed".into()));
            }
        }
        for (builder, cell) in self.builders.iter_mut().zip(&cells) {
            if !builder.append(cell) {
                builder.append_null();
            }
        }
        self.rows += 1;
        Ok(self)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The rows as one Arrow batch of the table's public schema.
    pub fn finish(mut self) -> Result<RecordBatch> {
        let columns = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        batch(&self.spec, columns, self.rows)
    }

    fn error(&self, column: &str, reason: String) -> StoreError {
        StoreError::Row {
            table: self.spec.name.clone(),
            column: column.into(),
            reason,
        }
    }
}

fn batch(spec: &TableSpec, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(spec.public_schema(), columns, &options).map_err(|source| StoreError::Arrow {
        context: format!("rows of table {}", spec.name),
        source,
    })
}

/// Brings a batch to the public schema of a table: columns by name, string and timestamp encodings cast.
pub(crate) fn conform(spec: &TableSpec, given: &RecordBatch) -> Result<RecordBatch> {
    let error = |column: &str, reason: String| StoreError::Row {
        table: spec.name.clone(),
        column: column.into(),
        reason,
    };
    for field in given.schema_ref().fields() {
        if spec.column_index(field.name()).is_none() {
            return Err(error(field.name(), "no such column".into()));
        }
    }
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let mut columns = Vec::with_capacity(spec.columns.len());
    for column in &spec.columns {
        let expected = column.column_type.data_type();
        let array = match given.column_by_name(&column.name) {
            Some(array) if *array.data_type() == expected => Arc::clone(array),
            Some(array) => cast_with_options(array, &expected, &options)
                .map_err(|e| error(&column.name, format!("expected {}: {e}", column.column_type.as_str())))?,
            None => new_null_array(&expected, given.num_rows()),
        };
        if !column.nullable && array.null_count() > 0 {
            return Err(error(&column.name, "a value is needed, NULL is not allowed".into()));
        }
        columns.push(array);
    }
    batch(spec, columns, given.num_rows())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use arrow::array::{Int64Array, StringViewArray};
    use arrow::datatypes::{DataType, Field, Schema};

    #[test]
    fn wrong_rows_name_table_and_column() {
        let mut rows = Rows::new("evo.edges").unwrap();
        let ok = [
            ("task_id", Value::from("t")),
            ("parent_id", "p".into()),
            ("child_id", "c".into()),
            ("role", "parent".into()),
            ("operator", "improve".into()),
        ];
        rows.push(ok.clone()).unwrap().push(ok.clone()).unwrap();
        for (extra, part) in [
            (("colour", Value::from("red")), "column colour: no such column"),
            (("delta", Value::from("red")), "column delta: expected float, got text"),
            (("role", Value::Null), "column role: a value is needed"),
        ] {
            let error = rows
                .push(ok.clone().into_iter().chain([extra]))
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("table evo.edges") && error.contains(part), "{error}");
        }
        assert_eq!(rows.len(), 2);
        assert_eq!(rows.finish().unwrap().num_rows(), 2);
        assert!(Rows::new("evo.nope").is_err());
    }

    #[test]
    fn batches_are_brought_to_the_schema_by_name() {
        let spec = TableSpec::parse(
            "s",
            "t",
            "doc='d'\nkind='log'\nkey=[]\ncolumns=[['a','text','x'],['b','int!','x']]",
        );
        let spec = spec.unwrap();
        let b: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let a: ArrayRef = Arc::new(StringViewArray::from(vec![Some("x"), None]));
        let schema = Schema::new(vec![
            Field::new("b", DataType::Int64, true),
            Field::new("a", DataType::Utf8View, true),
        ]);
        let given = RecordBatch::try_new(Arc::new(schema), vec![Arc::clone(&b), a]).unwrap();
        assert_eq!(conform(&spec, &given).unwrap().schema(), spec.public_schema());
        let missing =
            RecordBatch::try_from_iter([("a", Arc::new(StringViewArray::from(vec!["x"])) as ArrayRef)]).unwrap();
        assert!(conform(&spec, &missing).unwrap_err().to_string().contains("column b"));
        let unknown = RecordBatch::try_from_iter([("b", Arc::clone(&b)), ("z", b)]).unwrap();
        assert!(
            conform(&spec, &unknown)
                .unwrap_err()
                .to_string()
                .contains("column z: no such column")
        );
    }
}
