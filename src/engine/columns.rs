//! Columns of result rows and system tables, from values of Rust.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};

/// A column of texts.
pub(super) fn texts<T: AsRef<str>>(values: impl IntoIterator<Item = Option<T>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}

/// A column of whole numbers.
pub(super) fn ints(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

/// A column of numbers.
pub(super) fn floats(values: impl IntoIterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Float64Array>())
}

/// A column of truth values.
pub(super) fn bools<T: Into<Option<bool>>>(values: impl IntoIterator<Item = T>) -> ArrayRef {
    Arc::new(values.into_iter().map(Into::into).collect::<BooleanArray>())
}

/// A column of times, microseconds UTC.
pub(super) fn timestamps(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(
        values
            .into_iter()
            .collect::<TimestampMicrosecondArray>()
            .with_timezone("UTC"),
    )
}
