//! Rows of suites and of their searches.

use std::collections::BTreeMap;

use clade_catalog::{Rows, Value};
use datafusion::common::ScalarValue;
use serde_json::Value as Json;

use super::error::{Result, SuiteError};
use super::plan::{Search, SearchStatus, Suite};
use crate::dialect::EvolveOptions;
use crate::engine::Engine;
use crate::scheduler::ENGINE_VERSION;
use crate::session::ResultRow;

/// Statuses of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuiteStatus {
    /// Its searches go on.
    Running,
    /// It was stopped.
    Interrupted,
    /// Nothing is left to do.
    Finished,
}

impl SuiteStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Finished => "finished",
        }
    }
}

impl Suite {
    /// The suite's row.
    ///
    /// # Errors
    /// When a value does not fit its column.
    pub(super) fn rows(&self, status: SuiteStatus, now: i64) -> Result<Rows> {
        let finished_at = match status {
            SuiteStatus::Running => Value::Null,
            SuiteStatus::Interrupted | SuiteStatus::Finished => Value::Timestamp(now),
        };
        let mut rows = Rows::new("bench.suites")?;
        rows.push([
            ("suite_id", self.suite_id.clone().into()),
            ("definition", self.definition.clone().into()),
            ("tasks", self.tasks.clone().into()),
            ("repeats", self.repeats.into()),
            ("seed", self.seed.into()),
            ("policy", self.policy.clone().into()),
            ("policy_sql", self.policy_sql.clone().into()),
            ("model", self.model.clone().into()),
            ("sandbox", self.sandbox.clone().into()),
            ("options", self.options.to_json().to_string().into()),
            ("settings", Json::Object(self.settings.clone()).to_string().into()),
            ("runs_at_once", self.runs_at_once.into()),
            ("status", status.as_str().into()),
            ("engine_version", ENGINE_VERSION.into()),
            ("created_at", Value::Timestamp(self.created_at)),
            ("finished_at", finished_at),
        ])?;
        Ok(rows)
    }

    /// A suite of the store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn find(engine: &Engine, suite_id: &str) -> Result<Option<Self>> {
        let parameters = [("suite", ScalarValue::from(suite_id))];
        let rows = engine
            .queries()
            .rows(
                "SELECT * FROM bench.suites WHERE suite_id = $suite",
                &parameters,
                None,
                None,
            )
            .await?;
        rows.first().map(|row| Self::of(&row)).transpose()
    }

    fn of(row: &ResultRow<'_>) -> Result<Self> {
        let suite_id = row.text("suite_id")?;
        let unreadable = |what: &str, why: String| {
            SuiteError::Request(format!("the {what} of suite {suite_id} cannot be read: {why}"))
        };
        let json = |what: &str| -> Result<Json> {
            serde_json::from_str(&row.text(what)?).map_err(|error| unreadable(what, error.to_string()))
        };
        let options =
            EvolveOptions::from_json(&json("options")?).map_err(|error| unreadable("options", error.message))?;
        let Json::Object(settings) = json("settings")? else {
            return Err(unreadable("settings", "they are no object".to_owned()));
        };
        Ok(Self {
            definition: row.optional_text("definition")?,
            tasks: row.texts("tasks")?,
            repeats: row.int("repeats")?,
            seed: row.int("seed")?,
            policy: row.text("policy")?,
            policy_sql: row.text("policy_sql")?,
            model: row.text("model")?,
            sandbox: row.text("sandbox")?,
            options,
            settings,
            runs_at_once: row.int("runs_at_once")?,
            created_at: row.int("created_at")?,
            suite_id,
        })
    }
}

/// Rows of searches.
///
/// # Errors
/// When a value does not fit its column.
pub fn search_rows<'a>(suite_id: &str, searches: impl IntoIterator<Item = &'a Search>, now: i64) -> Result<Rows> {
    let mut rows = Rows::new("bench.suite_runs")?;
    for search in searches {
        rows.push([
            ("run_id", search.run_id.clone().into()),
            ("suite_id", suite_id.into()),
            ("task_id", search.task_id.clone().into()),
            ("repeat", search.repeat.into()),
            ("seed", search.seed.into()),
            ("package_hash", search.package_hash.clone().into()),
            ("status", search.status.as_str().into()),
            ("error", search.error.clone().into()),
            ("updated_at", Value::Timestamp(now)),
        ])?;
    }
    Ok(rows)
}

/// The searches of a suite in their order, each with the status of its run where it has begun.
///
/// # Errors
/// When the store cannot be read.
pub async fn load_searches(engine: &Engine, suite_id: &str) -> Result<Vec<(Search, Option<String>)>> {
    let parameters = [("suite", ScalarValue::from(suite_id))];
    let rows = engine
        .queries()
        .rows(
            "SELECT s.run_id, s.task_id, s.repeat, s.seed, s.package_hash, s.status, s.error, r.status AS run_status,
                    array_position(q.tasks, s.task_id) AS place
             FROM bench.suite_runs s
             JOIN bench.suites q ON q.suite_id = s.suite_id
             LEFT JOIN evo.runs r ON r.run_id = s.run_id
             WHERE s.suite_id = $suite ORDER BY s.repeat, place",
            &parameters,
            None,
            None,
        )
        .await?;
    rows.iter()
        .map(|row| {
            let status = row.text("status")?;
            let search = Search {
                run_id: row.text("run_id")?,
                task_id: row.text("task_id")?,
                repeat: row.int("repeat")?,
                seed: row.int("seed")?,
                package_hash: row.optional_text("package_hash")?,
                status: SearchStatus::of(&status).ok_or_else(|| {
                    SuiteError::Request(format!("a search of suite {suite_id} has the unknown status {status}"))
                })?,
                error: row.optional_text("error")?,
            };
            Ok((search, row.optional_text("run_status")?))
        })
        .collect()
}

/// The imported tasks with their packages.
///
/// # Errors
/// When the store cannot be read.
pub async fn packages(engine: &Engine) -> Result<BTreeMap<String, String>> {
    let rows = engine
        .queries()
        .rows("SELECT task_id, package_hash FROM gym.tasks", &[], None, None)
        .await?;
    rows.iter()
        .map(|row| Ok((row.text("task_id")?, row.text("package_hash")?)))
        .collect()
}
