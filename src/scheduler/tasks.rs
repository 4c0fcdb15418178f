//! Tasks by id: read from `gym.tasks` once a process and package.

use std::sync::Arc;

use chrono::DateTime;
use datafusion::common::{DataFusionError, ScalarValue};

use super::error::{Result, SchedulerError};
use super::services::Services;
use crate::gym::{Submission, Task, TaskRow, load_task};

/// What a task wants; a row of an earlier version says nothing, and wants a table.
fn submission(name: Option<&str>) -> datafusion::error::Result<Submission> {
    match name {
        None => Ok(Submission::Table),
        Some(name) => Submission::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| {
                DataFusionError::Execution(format!(
                    "the submission '{name}' is unknown: the store is of a newer version"
                ))
            }),
    }
}

impl Services {
    /// The task of an id.
    ///
    /// # Errors
    /// When there is none, or its files are gone.
    pub async fn task(&self, task_id: &str) -> Result<Arc<Task>> {
        if let Some(task) = self.tasks.lock().get(task_id) {
            return Ok(Arc::clone(task));
        }
        let row = self.task_row(task_id).await?;
        let task = Arc::new(load_task(self.store.dir(), row).map_err(|error| SchedulerError::Task {
            task_id: task_id.to_owned(),
            reason: error.to_string(),
        })?);
        self.tasks.lock().insert(task_id.to_owned(), Arc::clone(&task));
        Ok(task)
    }

    /// Forgets a task that was imported anew.
    pub fn forget_task(&self, task_id: &str) {
        self.tasks.lock().remove(task_id);
    }

    async fn task_row(&self, task_id: &str) -> Result<TaskRow> {
        let rows = self
            .queries
            .rows(
                "SELECT * FROM gym.tasks WHERE task_id = $task",
                &[("task", ScalarValue::from(task_id))],
                None,
                None,
            )
            .await
            .map_err(SchedulerError::query("tasks"))?;
        let Some(row) = rows.first() else {
            return Err(SchedulerError::Task {
                task_id: task_id.to_owned(),
                reason: self.known_tasks().await?,
            });
        };
        let read = || -> datafusion::error::Result<TaskRow> {
            Ok(TaskRow {
                task_id: row.text("task_id")?,
                title: row.text("title")?,
                description: row.text("description")?,
                modality: row.text("modality")?,
                task_type: row.text("task_type")?,
                metric: row.text("metric")?,
                higher_is_better: row.bool("higher_is_better")?,
                theoretical_min: row.optional_float("theoretical_min")?,
                theoretical_max: row.optional_float("theoretical_max")?,
                package_hash: row.text("package_hash")?,
                package_path: row.text("package_path")?,
                source: row.text("source")?,
                validation: row.text("validation")?,
                validation_note: row.optional_text("validation_note")?,
                id_column: row.optional_text("id_column")?,
                target_columns: row.texts("target_columns")?,
                train_rows: row.optional_int("train_rows")?,
                test_rows: row.optional_int("test_rows")?,
                known_leak: row.optional_text("known_leak")?,
                imported_at: DateTime::from_timestamp_micros(row.int("imported_at")?).unwrap_or_default(),
                submission: submission(row.optional_text("submission")?.as_deref())?,
                preflight: row.optional_bool("preflight")?.unwrap_or(false),
            })
        };
        read().map_err(SchedulerError::query("tasks"))
    }

    async fn known_tasks(&self) -> Result<String> {
        let rows = self
            .queries
            .rows(
                "SELECT task_id FROM gym.tasks ORDER BY task_id LIMIT 20",
                &[],
                None,
                None,
            )
            .await
            .map_err(SchedulerError::query("tasks"))?;
        let known = rows
            .iter()
            .map(|row| row.text("task_id"))
            .collect::<datafusion::error::Result<Vec<_>>>()
            .map_err(SchedulerError::query("tasks"))?;
        Ok(if known.is_empty() {
            "there is no such task, and the store has none: import one with `clade task add PATH`".to_owned()
        } else {
            format!("there is no such task; the store has {}", known.join(", "))
        })
    }
}
