//! Statistics of cold files: computed from the rows, kept in the Delta log's form, read by the query planner.

use std::collections::BTreeSet;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::{max, max_string, min, min_string};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use chrono::{DateTime, SecondsFormat};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::spec::{SEQ_COLUMN, TableSpec};

/// Longest text that is kept as a bound.
const TEXT_BOUND: usize = 32;

/// Statistics of one file, as in an `add` action of the Delta log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FileStats {
    pub(crate) num_records: i64,
    pub(crate) min_values: Map<String, Value>,
    pub(crate) max_values: Map<String, Value>,
    pub(crate) null_count: Map<String, Value>,
}

impl FileStats {
    /// Statistics of rows of one table.
    pub(crate) fn of(batches: &[RecordBatch]) -> Self {
        let mut stats = Self::default();
        let Some(schema) = batches.first().map(RecordBatch::schema) else {
            return stats;
        };
        stats.num_records = batches.iter().map(|b| b.num_rows() as i64).sum();
        for (index, field) in schema.fields().iter().enumerate() {
            let columns: Vec<&dyn Array> = batches.iter().map(|b| b.column(index).as_ref()).collect();
            let nulls: usize = columns.iter().map(|c| c.null_count()).sum();
            stats.null_count.insert(field.name().clone(), nulls.into());
            if let Some((low, high)) = bounds(&columns) {
                stats.min_values.insert(field.name().clone(), low);
                stats.max_values.insert(field.name().clone(), high);
            }
        }
        stats
    }

    /// Adds the statistics of more rows. A bound stays only where it is known for both.
    pub(crate) fn merge(&mut self, other: &Self) {
        let names: BTreeSet<String> = self.null_count.keys().chain(other.null_count.keys()).cloned().collect();
        for name in names {
            let nulls = |stats: &Self| {
                stats
                    .null_count
                    .get(&name)
                    .map_or(stats.num_records, |n| n.as_i64().unwrap_or(0))
            };
            let (left, right) = (nulls(self), nulls(other));
            // A side without values has no bounds and needs none.
            let (left_empty, right_empty) = (left == self.num_records, right == other.num_records);
            for (bounds, others, greater) in [
                (&mut self.min_values, &other.min_values, false),
                (&mut self.max_values, &other.max_values, true),
            ] {
                let bound = match (bounds.remove(&name), others.get(&name)) {
                    (Some(a), Some(b)) => Some(if is_greater(&a, b) == greater { a } else { b.clone() }),
                    (Some(a), None) if right_empty => Some(a),
                    (None, Some(b)) if left_empty => Some(b.clone()),
                    _ => None,
                };
                bounds.extend(bound.map(|bound| (name.clone(), bound)));
            }
            self.null_count.insert(name, (left + right).into());
        }
        self.num_records += other.num_records;
    }

    /// Reads statistics; what cannot be read is unknown.
    pub(crate) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Text form for the index and the Delta log.
    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Least and greatest commit, when known.
    pub(crate) fn seq_range(&self) -> Option<(i64, i64)> {
        Some((
            self.min_values.get(SEQ_COLUMN)?.as_i64()?,
            self.max_values.get(SEQ_COLUMN)?.as_i64()?,
        ))
    }

    /// Statistics over the full schema of a table. A column that the file lacks is all NULL.
    pub(crate) fn to_statistics(&self, spec: &TableSpec, rows: u64, bytes: u64) -> Statistics {
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let schema = spec.full_schema();
        let column_statistics = schema
            .fields()
            .iter()
            .map(|field| {
                let nulls = match self.null_count.get(field.name()) {
                    Some(count) => count.as_u64().and_then(|count| usize::try_from(count).ok()),
                    None if self.null_count.is_empty() => None,
                    None => Some(rows),
                };
                ColumnStatistics {
                    null_count: nulls.map_or(Precision::Absent, Precision::Exact),
                    min_value: bound(field.data_type(), self.min_values.get(field.name())),
                    max_value: bound(field.data_type(), self.max_values.get(field.name())),
                    ..ColumnStatistics::new_unknown()
                }
            })
            .collect();
        Statistics {
            num_rows: Precision::Exact(rows),
            // What is in the file is compressed; a factor of three is usual for text and ids.
            total_byte_size: Precision::Inexact(usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(3)),
            column_statistics,
        }
    }
}

fn bounds(columns: &[&dyn Array]) -> Option<(Value, Value)> {
    match columns.first()?.data_type() {
        DataType::Int64 => {
            let low = columns
                .iter()
                .filter_map(|c| min(c.as_primitive::<Int64Type>()))
                .min()?;
            let high = columns
                .iter()
                .filter_map(|c| max(c.as_primitive::<Int64Type>()))
                .max()?;
            Some((low.into(), high.into()))
        }
        DataType::Float64 => {
            // JSON has no infinities, and a NaN lies outside any bounds: such a column has none.
            let values = || {
                columns
                    .iter()
                    .flat_map(|c| c.as_primitive::<Float64Type>().iter().flatten())
            };
            if values().any(|v| !v.is_finite()) {
                return None;
            }
            Some((values().reduce(f64::min)?.into(), values().reduce(f64::max)?.into()))
        }
        DataType::Timestamp(..) => {
            let low = columns
                .iter()
                .filter_map(|c| min(c.as_primitive::<TimestampMicrosecondType>()))
                .min()?;
            let high = columns
                .iter()
                .filter_map(|c| max(c.as_primitive::<TimestampMicrosecondType>()))
                .max()?;
            Some((timestamp_text(low)?.into(), timestamp_text(high)?.into()))
        }
        DataType::Utf8 => {
            let low = columns.iter().filter_map(|c| min_string(c.as_string::<i32>())).min()?;
            let high = columns.iter().filter_map(|c| max_string(c.as_string::<i32>())).max()?;
            Some((lower_text(low).into(), upper_text(high)?.into()))
        }
        _ => None,
    }
}

/// Order of two bounds of one column; timestamps are texts of one length.
fn is_greater(a: &Value, b: &Value) -> bool {
    match (a.as_i64(), b.as_i64(), a.as_f64(), b.as_f64(), a.as_str(), b.as_str()) {
        (Some(a), Some(b), ..) => a > b,
        (_, _, Some(a), Some(b), ..) => a > b,
        (.., Some(a), Some(b)) => a > b,
        _ => false,
    }
}

fn timestamp_text(micros: i64) -> Option<String> {
    Some(DateTime::from_timestamp_micros(micros)?.to_rfc3339_opts(SecondsFormat::Micros, true))
}

/// A prefix is never greater than the text.
fn lower_text(text: &str) -> String {
    text.chars().take(TEXT_BOUND).collect()
}

/// A prefix whose last character is raised is never less than the text.
fn upper_text(text: &str) -> Option<String> {
    if text.chars().count() <= TEXT_BOUND {
        return Some(text.to_owned());
    }
    let mut prefix: Vec<char> = text.chars().take(TEXT_BOUND).collect();
    while let Some(last) = prefix.pop() {
        let raised = (last as u32 + 1..=char::MAX as u32).find_map(char::from_u32);
        if let Some(raised) = raised {
            prefix.push(raised);
            return Some(prefix.into_iter().collect());
        }
    }
    None
}

/// Bound of a column for the planner. Text bounds may be cut and -0.0 equals 0.0, so neither counts as exact.
fn bound(data_type: &DataType, value: Option<&Value>) -> Precision<ScalarValue> {
    let bound = value.and_then(|value| {
        Some(match data_type {
            DataType::Int64 => Precision::Exact(ScalarValue::Int64(Some(value.as_i64()?))),
            DataType::Float64 => Precision::Inexact(ScalarValue::Float64(Some(value.as_f64()?))),
            DataType::Timestamp(_, zone) => {
                let micros = DateTime::parse_from_rfc3339(value.as_str()?).ok()?.timestamp_micros();
                Precision::Exact(ScalarValue::TimestampMicrosecond(Some(micros), zone.clone()))
            }
            DataType::Utf8 => Precision::Inexact(ScalarValue::Utf8(Some(value.as_str()?.to_owned()))),
            _ => return None,
        })
    });
    bound.unwrap_or(Precision::Absent)
}
