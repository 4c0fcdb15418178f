//! Runs SQL with the functions and reads the answers as JSON.

use std::sync::Arc;

use clade_udfs::register_all;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Float64Builder, Int64Array, ListBuilder, RecordBatch,
    StringArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use serde_json::{Map, Value, json};

/// A session with DataFusion's own functions and ours.
pub fn session() -> SessionContext {
    let mut context = SessionContext::new();
    register_all(&mut context).unwrap();
    context
}

/// Rows of a query, each a list of its columns.
pub async fn rows(context: &SessionContext, sql: &str) -> Result<Vec<Vec<Value>>, DataFusionError> {
    let batches = context.sql(sql).await?.collect().await?;
    let mut rows = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            rows.push(batch.columns().iter().map(|column| value_at(column, row)).collect());
        }
    }
    Ok(rows)
}

/// First column of a query.
pub async fn column(context: &SessionContext, sql: &str) -> Result<Vec<Value>, DataFusionError> {
    Ok(rows(context, sql)
        .await?
        .into_iter()
        .map(|mut row| row.remove(0))
        .collect())
}

/// The only value of a query.
pub async fn value(context: &SessionContext, sql: &str) -> Value {
    let mut values = column(context, sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(values.len(), 1, "{sql}");
    values.remove(0)
}

/// Message of the error that a query gives.
pub async fn error(context: &SessionContext, sql: &str) -> String {
    rows(context, sql).await.expect_err(sql).strip_backtrace()
}

/// Replaces a table.
pub fn put_table(context: &SessionContext, name: &str, columns: Vec<(&str, ArrayRef)>) {
    context.deregister_table(name).unwrap();
    context
        .register_batch(
            name,
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, values)| (name, values, true)))
                .unwrap(),
        )
        .unwrap();
}

pub fn texts<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}

pub fn floats(values: impl IntoIterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Float64Array>())
}

pub fn integers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

pub fn booleans(values: impl IntoIterator<Item = Option<bool>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<BooleanArray>())
}

fn number_value(number: f64) -> Value {
    if number.is_nan() {
        json!("NaN")
    } else if number.is_infinite() {
        json!(if number > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        json!(number)
    }
}

fn value_at(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Utf8View | DataType::LargeUtf8 | DataType::Utf8 => {
            let texts = cast(column, &DataType::Utf8).unwrap();
            json!(texts.as_string::<i32>().value(row))
        }
        DataType::Float64 => number_value(column.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => json!(column.as_boolean().value(row)),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            (0..items.len()).map(|index| value_at(&items, index)).collect()
        }
        DataType::Struct(fields) => {
            let columns = column.as_struct();
            let object: Map<String, Value> = fields
                .iter()
                .zip(columns.columns())
                .map(|(field, column)| (field.name().clone(), value_at(column, row)))
                .collect();
            Value::Object(object)
        }
        _ => json!(
            cast(column, &DataType::Int64)
                .unwrap()
                .as_primitive::<Int64Type>()
                .value(row)
        ),
    }
}

/// A column with one list of numbers.
pub fn number_list(values: &[f64]) -> ArrayRef {
    let mut lists = ListBuilder::new(Float64Builder::new());
    lists.values().append_slice(values);
    lists.append(true);
    Arc::new(lists.finish())
}
