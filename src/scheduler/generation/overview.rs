//! Overviews of the public files of tasks: read from the store, or made from the files where the store has none yet.

use std::collections::HashMap;
use std::sync::Arc;

use clade_catalog::{Rows, Txn};
use datafusion::common::ScalarValue;
use parking_lot::Mutex;

use crate::gym::{ColumnOverview, DataOverview, FileOverview, Task, TaskRow};
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::services::Services;
use crate::session::ResultRow;

/// Overviews that this process has read or made, by task and package.
#[derive(Debug, Default)]
pub struct Overviews(Mutex<HashMap<(String, String), Known>>);

#[derive(Debug, Clone)]
struct Known {
    overview: Arc<DataOverview>,
    /// Its rows are in the store.
    kept: bool,
}

impl Services {
    /// What the files that candidates see hold. Nothing is written.
    ///
    /// # Errors
    /// When the store or the folder cannot be read.
    pub async fn overview(&self, task: &Task) -> Result<Arc<DataOverview>> {
        Ok(self.known_overview(task).await?.overview)
    }

    /// Makes ready what prompts on a task state: the overview of its files, and the packages of the interpreter. It is done before
    /// anything that takes time is counted.
    ///
    /// # Errors
    /// As [`Services::keep_overview`].
    pub async fn ready_prompts(&self, task: &Task) -> Result<()> {
        self.interpreter.packages().await;
        self.keep_overview(task).await
    }

    /// Keeps the overview of a task in the store, unless it is there.
    ///
    /// # Errors
    /// When the folder cannot be read, or the store fails.
    pub async fn keep_overview(&self, task: &Task) -> Result<()> {
        let known = self.known_overview(task).await?;
        if known.kept {
            return Ok(());
        }
        let (files, columns) = rows_of(&task.row, &known.overview)?;
        let mut txn = Txn::new();
        txn.append("gym.overview_files", files);
        if !columns.is_empty() {
            txn.append("gym.overview_columns", columns);
        }
        self.store.commit(txn).await?;
        self.remember(&task.row, &Known { kept: true, ..known });
        Ok(())
    }

    async fn known_overview(&self, task: &Task) -> Result<Known> {
        if let Some(known) = self.overviews.0.lock().get(&key(&task.row)) {
            return Ok(known.clone());
        }
        let known = match self.stored_overview(&task.row).await? {
            Some(overview) => Known {
                overview: Arc::new(overview),
                kept: true,
            },
            None => {
                let folder = task.search_data().to_owned();
                let made = tokio::task::spawn_blocking(move || DataOverview::of(&folder)).await?;
                let overview = made.map_err(|error| SchedulerError::Task {
                    task_id: task.row.task_id.clone(),
                    reason: format!("its public files cannot be described: {error}"),
                })?;
                Known {
                    overview: Arc::new(overview),
                    kept: false,
                }
            }
        };
        self.remember(&task.row, &known);
        Ok(known)
    }

    fn remember(&self, row: &TaskRow, known: &Known) {
        self.overviews.0.lock().insert(key(row), known.clone());
    }

    async fn stored_overview(&self, row: &TaskRow) -> Result<Option<DataOverview>> {
        let parameters = [
            ("task", ScalarValue::from(row.task_id.as_str())),
            ("package", ScalarValue::from(row.package_hash.as_str())),
        ];
        let files = self.queries.rows(FILES, &parameters, None, None);
        let files = files.await.map_err(SchedulerError::query("the data overview"))?;
        if files.is_empty() {
            return Ok(None);
        }
        let columns = self.queries.rows(COLUMNS, &parameters, None, None);
        let columns = columns.await.map_err(SchedulerError::query("the data overview"))?;
        let read = || -> datafusion::error::Result<DataOverview> {
            let mut overview = DataOverview::default();
            for (place, row) in files.iter().enumerate() {
                let mut file = file_of(row)?;
                if place == 0 {
                    overview.files_left_out = std::mem::take(&mut file.columns_left_out);
                }
                overview.files.push(file);
            }
            for row in columns.iter() {
                let place = usize::try_from(row.int("place")?).unwrap_or(usize::MAX);
                if let Some(file) = overview.files.get_mut(place) {
                    file.column_facts.push(column_of(row)?);
                }
            }
            overview.kinds = overview.files[0].format.split_whitespace().map(str::to_owned).collect();
            overview.files[0].format.clear();
            Ok(overview)
        };
        read().map(Some).map_err(SchedulerError::query("the data overview"))
    }
}

const FILES: &str = "SELECT * FROM gym.overview_files WHERE task_id = $task AND package_hash = $package ORDER BY place";
const COLUMNS: &str =
    "SELECT * FROM gym.overview_columns WHERE task_id = $task AND package_hash = $package ORDER BY place, position";

fn key(row: &TaskRow) -> (String, String) {
    (row.task_id.clone(), row.package_hash.clone())
}

/// Rows of an overview. The row of the public folder has what is said of all files: the kinds in `format`, what is not described in
/// `left_out`.
fn rows_of(task: &TaskRow, overview: &DataOverview) -> Result<(Rows, Rows)> {
    let (mut files, mut columns) = (Rows::new("gym.overview_files")?, Rows::new("gym.overview_columns")?);
    for (place, file) in (0i64..).zip(&overview.files) {
        let (format, left_out) = match place {
            0 => (overview.kinds.join(" "), overview.files_left_out),
            _ => (file.format.clone(), file.columns_left_out),
        };
        files.push([
            ("task_id", task.task_id.clone().into()),
            ("package_hash", task.package_hash.clone().into()),
            ("place", place.into()),
            ("path", file.path.clone().into()),
            ("kind", file.kind.clone().into()),
            ("format", format.into()),
            ("bytes", file.bytes.into()),
            ("files", file.files.into()),
            ("rows", file.rows.into()),
            ("rows_exact", file.rows_exact.into()),
            ("columns", file.columns.into()),
            ("width", file.width.into()),
            ("height", file.height.into()),
            ("channels", file.channels.into()),
            ("seconds", file.seconds.into()),
            ("sample_rate", file.sample_rate.into()),
            ("summary", file.summary.clone().into()),
            ("note", file.note.clone().into()),
            ("left_out", left_out.into()),
        ])?;
        for (position, column) in (0i64..).zip(&file.column_facts) {
            columns.push([
                ("task_id", task.task_id.clone().into()),
                ("package_hash", task.package_hash.clone().into()),
                ("place", place.into()),
                ("position", position.into()),
                ("name", column.name.clone().into()),
                ("type", column.kind.clone().into()),
                ("missing", column.missing.into()),
                ("distinct_values", column.distinct.into()),
                ("minimum", column.minimum.clone().into()),
                ("maximum", column.maximum.clone().into()),
                ("samples", column.samples.clone().into()),
            ])?;
        }
    }
    Ok((files, columns))
}

fn file_of(row: ResultRow<'_>) -> datafusion::error::Result<FileOverview> {
    Ok(FileOverview {
        path: row.text("path")?,
        kind: row.text("kind")?,
        format: row.text("format")?,
        bytes: row.int("bytes")?,
        files: row.optional_int("files")?,
        rows: row.optional_int("rows")?,
        rows_exact: row.bool("rows_exact")?,
        columns: row.optional_int("columns")?,
        width: row.optional_int("width")?,
        height: row.optional_int("height")?,
        channels: row.optional_int("channels")?,
        seconds: row.optional_float("seconds")?,
        sample_rate: row.optional_int("sample_rate")?,
        summary: row.optional_text("summary")?,
        note: row.optional_text("note")?,
        column_facts: Vec::new(),
        columns_left_out: row.int("left_out")?,
    })
}

fn column_of(row: ResultRow<'_>) -> datafusion::error::Result<ColumnOverview> {
    Ok(ColumnOverview {
        name: row.text("name")?,
        kind: row.text("type")?,
        missing: row.optional_float("missing")?,
        distinct: row.optional_int("distinct_values")?,
        minimum: row.optional_text("minimum")?,
        maximum: row.optional_text("maximum")?,
        samples: row.texts("samples")?,
    })
}
