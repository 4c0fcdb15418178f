//! Rows of acting statements in `evo.statements`.

use clade_catalog::{Rows, Value};
use datafusion::common::ScalarValue;

use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::run::Progress;
use crate::scheduler::services::Services;

/// An acting statement.
#[derive(Debug, Clone, PartialEq)]
pub struct StatementRecord {
    /// Statement id.
    pub statement_id: String,
    /// expand or evolve.
    pub kind: String,
    /// Run of an EVOLVE, or the run an EXPAND adds to.
    pub run_id: Option<String>,
    /// Text as sent.
    pub sql: String,
    /// Snapshot of its input.
    pub snapshot_id: i64,
    /// Operator of an EXPAND.
    pub operator: Option<String>,
    /// Generator.
    pub model: String,
    /// Executor.
    pub sandbox: String,
    /// Options as JSON.
    pub options: String,
    /// Attempts planned.
    pub attempts: i64,
    /// running, done, cancelled or failed.
    pub status: String,
    /// Error that ended it.
    pub error: Option<String>,
    /// When it was recorded.
    pub created_at: i64,
    /// When it ended.
    pub finished_at: Option<i64>,
}

impl StatementRecord {
    /// The statement's row.
    ///
    /// # Errors
    /// When a value does not fit its column.
    pub fn rows(&self) -> Result<Rows> {
        let mut rows = Rows::new("evo.statements")?;
        rows.push([
            ("statement_id", self.statement_id.clone().into()),
            ("kind", self.kind.clone().into()),
            ("run_id", self.run_id.clone().into()),
            ("sql", self.sql.clone().into()),
            ("snapshot_id", self.snapshot_id.into()),
            ("operator", self.operator.clone().into()),
            ("model", self.model.clone().into()),
            ("sandbox", self.sandbox.clone().into()),
            ("options", self.options.clone().into()),
            ("attempts", self.attempts.into()),
            ("status", self.status.clone().into()),
            ("error", self.error.clone().into()),
            ("created_at", Value::Timestamp(self.created_at)),
            ("finished_at", self.finished_at.map_or(Value::Null, Value::Timestamp)),
        ])?;
        Ok(rows)
    }

    /// A statement of the store.
    ///
    /// # Errors
    /// When the query fails.
    pub async fn find(services: &Services, statement_id: &str) -> Result<Option<Self>> {
        let rows = services
            .queries
            .rows(
                "SELECT * FROM evo.statements WHERE statement_id = $id",
                &[("id", ScalarValue::from(statement_id))],
                None,
                None,
            )
            .await
            .map_err(SchedulerError::query("statements"))?;
        let Some(row) = rows.first() else { return Ok(None) };
        let read = || -> datafusion::error::Result<Self> {
            Ok(Self {
                statement_id: row.text("statement_id")?,
                kind: row.text("kind")?,
                run_id: row.optional_text("run_id")?,
                sql: row.text("sql")?,
                snapshot_id: row.int("snapshot_id")?,
                operator: row.optional_text("operator")?,
                model: row.text("model")?,
                sandbox: row.text("sandbox")?,
                options: row.text("options")?,
                attempts: row.int("attempts")?,
                status: row.text("status")?,
                error: row.optional_text("error")?,
                created_at: row.int("created_at")?,
                finished_at: row.optional_int("finished_at")?,
            })
        };
        read().map(Some).map_err(SchedulerError::query("statements"))
    }
}

/// Last row of the statement of a run that ended.
///
/// # Errors
/// When the store fails.
pub async fn ended(services: &Services, statement_id: &str, progress: &Progress) -> Result<Rows> {
    let Some(statement) = StatementRecord::find(services, statement_id).await? else {
        return Ok(Rows::new("evo.statements")?);
    };
    StatementRecord {
        attempts: progress.steps_done,
        status: match progress.status {
            "finished" => "done".to_owned(),
            other => other.to_owned(),
        },
        error: progress.error.clone(),
        finished_at: progress.finished_at,
        ..statement
    }
    .rows()
}
