//! Rows of the report's queries, on one snapshot.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use clade_catalog::Snapshot;
use datafusion::common::{ScalarValue, exec_err};
use minijinja::Value;

use super::error::ReportError;
use crate::session::{Queries, ResultRows};

/// Where the rows come from.
pub(super) struct Source<'a> {
    queries: &'a Queries,
    snapshot: Arc<Snapshot>,
}

/// A query of the report: its name, for messages, and its text.
#[derive(Clone, Copy)]
pub(super) struct Query {
    name: &'static str,
    sql: &'static str,
}

/// A query by the name of its file under `sql/report/`.
macro_rules! query {
    ($name:literal) => {
        Query {
            name: $name,
            sql: include_str!(concat!("../../sql/report/", $name, ".sql")),
        }
    };
}

pub(super) const RUN: Query = query!("run");
pub(super) const NODES: Query = query!("nodes");
pub(super) const OPERATORS: Query = query!("operators");
pub(super) const FAMILIES: Query = query!("families");
pub(super) const FAILURES: Query = query!("failures");
pub(super) const BUDGET: Query = query!("budget");
pub(super) const ROLES: Query = query!("roles");
pub(super) const TEACHERS: Query = query!("teachers");
pub(super) const SHOWN: Query = query!("shown");
pub(super) const DRAWS: Query = query!("draws");
pub(super) const SUITE: Query = query!("suite");
pub(super) const SUITE_SEARCHES: Query = query!("suite_searches");
pub(super) const SUITE_TASKS: Query = query!("suite_tasks");
pub(super) const SUITE_MODALITIES: Query = query!("suite_modalities");
pub(super) const SUITE_REPEATS: Query = query!("suite_repeats");
pub(super) const SUITE_SPEND: Query = query!("suite_spend");
pub(super) const SUITE_FAILURES: Query = query!("suite_failures");
pub(super) const SUITE_CURVES: Query = query!("suite_curves");
pub(super) const SUITE_MEDALS: Query = query!("suite_medals");

impl Query {
    /// Says of which query an error is.
    pub fn failed(self) -> impl FnOnce(datafusion::error::DataFusionError) -> ReportError {
        ReportError::query(self.name)
    }
}

impl<'a> Source<'a> {
    /// Rows as a snapshot has them.
    pub fn new(queries: &'a Queries, snapshot: Arc<Snapshot>) -> Self {
        Self { queries, snapshot }
    }

    /// Rows of a query about a run.
    pub async fn rows(&self, query: Query, run_id: &str) -> Result<ResultRows, ReportError> {
        self.ask(query, &[("run", ScalarValue::from(run_id))]).await
    }

    /// Rows of a query about a run that takes every so many steps.
    pub async fn every(&self, query: Query, run_id: &str, every: i64) -> Result<ResultRows, ReportError> {
        let parameters = [("run", ScalarValue::from(run_id)), ("every", ScalarValue::from(every))];
        self.ask(query, &parameters).await
    }

    /// Rows of a query about a run, as templates read them.
    pub async fn records(&self, query: Query, run_id: &str) -> Result<Vec<Value>, ReportError> {
        records(&self.rows(query, run_id).await?).map_err(query.failed())
    }

    /// Rows of a query about a suite, with bounds by name.
    pub async fn suite(&self, query: Query, suite: &str, bounds: &[(&str, i64)]) -> Result<ResultRows, ReportError> {
        let bounds = bounds.iter().map(|(name, bound)| (*name, ScalarValue::from(*bound)));
        let parameters: Vec<_> = std::iter::once(("suite", ScalarValue::from(suite)))
            .chain(bounds)
            .collect();
        self.ask(query, &parameters).await
    }

    async fn ask(&self, query: Query, parameters: &[(&str, ScalarValue)]) -> Result<ResultRows, ReportError> {
        let snapshot = Some(Arc::clone(&self.snapshot));
        let rows = self.queries.rows(query.sql, parameters, None, snapshot).await;
        rows.map_err(query.failed())
    }
}

/// Rows as maps from column to value.
pub(super) fn records(rows: &ResultRows) -> datafusion::error::Result<Vec<Value>> {
    let mut records = Vec::with_capacity(rows.len());
    for batch in rows.batches() {
        for row in 0..batch.num_rows() {
            let fields = batch.schema_ref().fields().iter().zip(batch.columns());
            let record = fields
                .map(|(field, column)| Ok((field.name().clone(), value(column.as_ref(), row)?)))
                .collect::<datafusion::error::Result<Vec<(String, Value)>>>()?;
            records.push(Value::from_iter(record));
        }
    }
    Ok(records)
}

/// One value; NULL is none.
fn value(column: &dyn Array, row: usize) -> datafusion::error::Result<Value> {
    if column.is_null(row) {
        return Ok(Value::from(()));
    }
    Ok(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row).into(),
        DataType::Utf8View => column.as_string_view().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Timestamp(..) => column.as_primitive::<TimestampMicrosecondType>().value(row).into(),
        DataType::Null => Value::from(()),
        other => return exec_err!("a report has no use for a column of type {other}"),
    })
}
