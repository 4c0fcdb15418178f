//! Arrow builders for the column types of specs.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, TimestampMicrosecondBuilder,
};

use crate::spec::ColumnType;
use crate::value::Value;

/// Builder of one column.
#[derive(Debug)]
pub(crate) enum ColumnBuilder {
    Text(StringBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    List(ListBuilder<StringBuilder>),
}

impl ColumnBuilder {
    pub(crate) fn new(column_type: ColumnType, rows: usize) -> Self {
        match column_type {
            ColumnType::Text => Self::Text(StringBuilder::with_capacity(rows, rows * 16)),
            ColumnType::Int => Self::Int(Int64Builder::with_capacity(rows)),
            ColumnType::Float => Self::Float(Float64Builder::with_capacity(rows)),
            ColumnType::Bool => Self::Bool(BooleanBuilder::with_capacity(rows)),
            ColumnType::Timestamp => {
                Self::Timestamp(TimestampMicrosecondBuilder::with_capacity(rows).with_timezone("UTC"))
            }
            ColumnType::List => Self::List(ListBuilder::with_capacity(StringBuilder::new(), rows)),
        }
    }

    pub(crate) fn append_null(&mut self) {
        match self {
            Self::Text(b) => b.append_null(),
            Self::Int(b) => b.append_null(),
            Self::Float(b) => b.append_null(),
            Self::Bool(b) => b.append_null(),
            Self::Timestamp(b) => b.append_null(),
            Self::List(b) => b.append_null(),
        }
    }

    /// Appends a value; `false` when its type is another one.
    pub(crate) fn append(&mut self, value: &Value) -> bool {
        match (self, value) {
            (builder, Value::Null) => builder.append_null(),
            (Self::Text(b), Value::Text(v)) => b.append_value(v),
            (Self::Int(b), Value::Int(v)) => b.append_value(*v),
            (Self::Float(b), Value::Float(v)) => b.append_value(*v),
            (Self::Bool(b), Value::Bool(v)) => b.append_value(*v),
            (Self::Timestamp(b), Value::Timestamp(v)) => b.append_value(*v),
            (Self::List(b), Value::List(v)) => b.append_value(v.iter().map(Some)),
            _ => return false,
        }
        true
    }

    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(b) => Arc::new(b.finish()),
            Self::Int(b) => Arc::new(b.finish()),
            Self::Float(b) => Arc::new(b.finish()),
            Self::Bool(b) => Arc::new(b.finish()),
            Self::Timestamp(b) => Arc::new(b.finish()),
            Self::List(b) => Arc::new(b.finish()),
        }
    }
}
