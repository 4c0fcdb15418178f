//! Importing task packages into the store.

use std::path::Path;

use chrono::Utc;
use clade_catalog::{Rows, Txn, Value};
use datafusion::common::ScalarValue;
use tokio_util::sync::CancellationToken;

use super::error::Result;
use super::open::Engine;
use crate::gym::{Import, ImportedTask, Layout, Progress, TaskRow, import_package};

impl Engine {
    /// Imports a task package and commits its rows; `progress` is told what begins. A newer import of the same task replaces the
    /// older.
    ///
    /// # Errors
    /// When the package fails its checks (unless `force`), its metric does not run, or the store fails.
    pub async fn import_task(
        &self,
        path: &Path,
        layout: Layout,
        force: bool,
        progress: Progress,
    ) -> Result<ImportedTask> {
        let sandbox = self.sandbox(&self.defaults().sandbox)?;
        let services = self.scheduler().services();
        let import = Import {
            evaluator: std::sync::Arc::clone(&sandbox.evaluator),
            executor: std::sync::Arc::clone(&sandbox.executor),
            metric_limits: services.evaluation_limits.clone(),
            split_limits: services.candidate_limits.clone(),
            layout,
            force,
            now: Utc::now(),
            progress,
        };
        let imported = import_package(path, self.store().dir(), &import, &CancellationToken::new()).await?;
        let mut txn = Txn::new();
        txn.append("gym.tasks", task_rows(&imported)?);
        txn.append("gym.task_files", file_rows(&imported)?);
        txn.append("gym.leaderboards", leaderboard_rows(&imported)?);
        txn.append("gym.instances", instance_rows(&imported)?);
        txn.append("gym.quality_checks", check_rows(&imported)?);
        txn.append("gym.build_events", event_rows(&imported)?);
        self.store().commit(txn).await?;
        services.forget_task(&imported.task.task_id);
        let task = services.task(&imported.task.task_id).await?;
        services.keep_overview(&task).await?;
        Ok(imported)
    }

    /// Other packages that a task was imported from before.
    pub(super) async fn earlier_packages(&self, task: &TaskRow) -> Result<i64> {
        let rows = self
            .queries()
            .rows(
                "SELECT count(DISTINCT package_hash) AS packages FROM gym.tasks_versions
                 WHERE task_id = $task AND package_hash <> $package",
                &[
                    ("task", ScalarValue::from(task.task_id.as_str())),
                    ("package", ScalarValue::from(task.package_hash.as_str())),
                ],
                None,
                None,
            )
            .await?;
        Ok(rows.first().map_or(Ok(0), |row| row.int("packages"))?)
    }
}

fn task_rows(imported: &ImportedTask) -> Result<Rows> {
    let task = &imported.task;
    let mut rows = Rows::new("gym.tasks")?;
    rows.push([
        ("task_id", task.task_id.clone().into()),
        ("title", task.title.clone().into()),
        ("description", task.description.clone().into()),
        ("modality", task.modality.clone().into()),
        ("task_type", task.task_type.clone().into()),
        ("metric", task.metric.clone().into()),
        ("higher_is_better", task.higher_is_better.into()),
        ("theoretical_min", task.theoretical_min.into()),
        ("theoretical_max", task.theoretical_max.into()),
        ("package_hash", task.package_hash.clone().into()),
        ("package_path", task.package_path.clone().into()),
        ("source", task.source.clone().into()),
        ("validation", task.validation.clone().into()),
        ("validation_note", task.validation_note.clone().into()),
        ("id_column", task.id_column.clone().into()),
        ("target_columns", task.target_columns.clone().into()),
        ("train_rows", task.train_rows.into()),
        ("test_rows", task.test_rows.into()),
        ("known_leak", task.known_leak.clone().into()),
        ("imported_at", task.imported_at.into()),
        ("submission", task.submission.name().into()),
        ("preflight", task.preflight.into()),
    ])?;
    Ok(rows)
}

fn file_rows(imported: &ImportedTask) -> Result<Rows> {
    let mut rows = Rows::new("gym.task_files")?;
    for file in &imported.files {
        rows.push([
            ("task_id", file.task_id.clone().into()),
            ("path", file.path.clone().into()),
            ("role", file.role.clone().into()),
            ("bytes", file.bytes.into()),
            ("sha256", file.sha256.clone().into()),
            ("package_hash", file.package_hash.clone().into()),
        ])?;
    }
    Ok(rows)
}

fn leaderboard_rows(imported: &ImportedTask) -> Result<Rows> {
    let mut rows = Rows::new("gym.leaderboards")?;
    for entry in &imported.leaderboard {
        rows.push([
            ("task_id", entry.task_id.clone().into()),
            ("rank", entry.rank.into()),
            ("team", entry.team.clone().into()),
            ("score", entry.score.into()),
            ("package_hash", entry.package_hash.clone().into()),
        ])?;
    }
    Ok(rows)
}

fn instance_rows(imported: &ImportedTask) -> Result<Rows> {
    let mut rows = Rows::new("gym.instances")?;
    for instance in &imported.instances {
        rows.push([
            ("task_id", imported.task.task_id.clone().into()),
            ("instance", instance.instance.clone().into()),
            ("metric", instance.metric.clone().into()),
            ("higher_is_better", instance.higher_is_better.into()),
            ("sota", instance.sota.into()),
            ("baseline", instance.baseline.into()),
            ("package_hash", imported.task.package_hash.clone().into()),
        ])?;
    }
    Ok(rows)
}

fn check_rows(imported: &ImportedTask) -> Result<Rows> {
    let mut rows = Rows::new("gym.quality_checks")?;
    for check in &imported.checks {
        rows.push([
            ("task_id", check.task_id.clone().into()),
            ("package_hash", check.package_hash.clone().into()),
            ("check_id", check.check_id.clone().into()),
            ("status", check.status.clone().into()),
            ("detail", check.detail.clone().into()),
        ])?;
    }
    Ok(rows)
}

fn event_rows(imported: &ImportedTask) -> Result<Rows> {
    let mut rows = Rows::new("gym.build_events")?;
    for event in &imported.events {
        rows.push([
            ("task_id", event.task_id.clone().into()),
            ("package_hash", event.package_hash.clone().into()),
            ("event", event.event.clone().into()),
            ("detail", event.detail.clone().into()),
            ("at", Value::Timestamp(event.at.timestamp_micros())),
        ])?;
    }
    Ok(rows)
}
