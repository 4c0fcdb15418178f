//! A store in a folder of its own, with a small task and an engine that has the instant generator and sandbox.

use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::pretty::pretty_format_batches;
use clade::config::{Override, Sources};
use clade::engine::{Engine, EngineError, Extensions, OpenMode, Session, SessionOptions};
use clade::model::Generator;
use clade::scheduler::Sandbox;
use clade_catalog::{Rows, Txn, Value};
use tempfile::TempDir;

use super::instant::{Instant, Scripted};

pub struct Fixture {
    pub folder: TempDir,
    pub model: Arc<Scripted>,
    pub sandbox: Arc<Instant>,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(Scripted::default(), Instant::default())
    }

    pub fn with(model: Scripted, sandbox: Instant) -> Self {
        let folder = tempfile::Builder::new().prefix("clade engine ").tempdir().unwrap();
        Self {
            folder,
            model: Arc::new(model),
            sandbox: Arc::new(sandbox),
        }
    }

    /// Jobs end in another order than they began.
    pub fn shuffled() -> Self {
        Self::with(
            Scripted::default(),
            Instant {
                shuffle: true,
                ..Instant::default()
            },
        )
    }

    pub fn store(&self) -> std::path::PathBuf {
        self.folder.path().join("store")
    }

    pub async fn open(&self, mode: OpenMode) -> Result<Arc<Engine>, EngineError> {
        let models = vec![Arc::clone(&self.model) as _];
        open_store(&self.store(), &[], models, instant(Arc::clone(&self.sandbox)), mode).await
    }

    /// A new store with the task `toy`, higher is better, and a leaderboard of ten teams.
    pub async fn create(&self) -> Arc<Engine> {
        let engine = self.open(OpenMode::Create).await.unwrap();
        add_task(&engine, "toy").await;
        engine
    }
}

/// The instant sandbox for both of its parts.
pub fn instant(sandbox: Arc<Instant>) -> Sandbox {
    Sandbox {
        executor: Arc::clone(&sandbox) as _,
        evaluator: sandbox,
    }
}

/// An engine on a store with the given generators and sandbox. Settings are written `key=value`.
pub async fn open_store(
    store: &Path,
    settings: &[&str],
    models: Vec<Arc<dyn Generator>>,
    sandbox: Sandbox,
    mode: OpenMode,
) -> Result<Arc<Engine>, EngineError> {
    let path = format!("store.path={}", store.display());
    let name = sandbox.executor.name().to_owned();
    let executor = format!("sandbox.executor={name}");
    let common = [
        &path,
        "python.interpreter=python3",
        &executor,
        "search.model=scripted",
        "search.workers=3",
    ];
    let sources = Sources {
        overrides: common
            .iter()
            .chain(settings)
            .map(|text| Override::parse(text, "test").unwrap())
            .collect(),
        ..Sources::default()
    };
    let extensions = Extensions {
        models,
        sandboxes: [(name, sandbox)].into(),
        clock: None,
    };
    Engine::open_with(&sources.load().unwrap(), mode, extensions).await
}

pub async fn add_task(engine: &Engine, task_id: &str) {
    let package = format!("tasks/{task_id}/test");
    let root = engine.store().dir().join(&package);
    for folder in [
        "data/public",
        "data/private",
        "utils",
        "validation/public",
        "validation/private",
    ] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    let write = |path: &str, text: &str| std::fs::write(root.join(Path::new(path)), text).unwrap();
    write("utils/metric.py", "class TestMetrics:\n    higher_is_better = True\n");
    for path in ["data/private/test_answer.csv", "validation/private/test_answer.csv"] {
        write(path, "id,y\n1,1\n");
    }
    let tasks = task_rows(task_id, &package, true);
    let mut board = Rows::new("gym.leaderboards").unwrap();
    for rank in 1..=10i64 {
        board
            .push([
                ("task_id", task_id.into()),
                ("rank", rank.into()),
                ("team", format!("team {rank}").into()),
                ("score", (1.0 - rank as f64 / 20.0).into()),
                ("package_hash", "test".into()),
            ])
            .unwrap();
    }
    let mut txn = Txn::new();
    txn.append("gym.tasks", tasks);
    txn.append("gym.leaderboards", board);
    engine.store().commit(txn).await.unwrap();
}

/// The row of a task whose package lies in a folder of the store.
pub fn task_rows(task_id: &str, package: &str, higher_is_better: bool) -> Rows {
    let mut tasks = Rows::new("gym.tasks").unwrap();
    tasks
        .push([
            ("task_id", task_id.into()),
            ("title", "A toy".into()),
            ("description", "Predict y from x.".into()),
            ("modality", "tabular".into()),
            ("task_type", "regression".into()),
            ("metric", "r2".into()),
            ("higher_is_better", higher_is_better.into()),
            ("package_hash", "test".into()),
            ("package_path", package.into()),
            ("source", "test".into()),
            ("validation", "split".into()),
            ("imported_at", Value::Timestamp(0)),
        ])
        .unwrap();
    tasks
}

pub fn session(engine: &Arc<Engine>) -> Session {
    engine.session(&SessionOptions::default())
}

pub fn run_session(engine: &Arc<Engine>, run_id: &str) -> Session {
    engine.session(&SessionOptions {
        run: Some(run_id.to_owned()),
        read_only: false,
    })
}

/// Rows of the last statement of a text.
pub async fn rows(session: &Session, sql: &str) -> Result<Vec<RecordBatch>, EngineError> {
    let mut outputs = session.execute(sql).await?;
    Ok(outputs.pop().unwrap().collect().await?)
}

/// Rows of the last statement as a table.
pub async fn table(session: &Session, sql: &str) -> String {
    match rows(session, sql).await {
        Ok(batches) => pretty_format_batches(&batches).unwrap().to_string(),
        Err(error) => format!("error: {error}"),
    }
}

/// The only number of a query.
pub async fn number(session: &Session, sql: &str) -> i64 {
    let batches = rows(session, sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let batch = batches
        .iter()
        .find(|batch| batch.num_rows() > 0)
        .unwrap_or_else(|| panic!("{sql}: no row"));
    let column = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Int64).unwrap();
    arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(&*column).value(0)
}

/// The first column of a query as texts.
pub async fn texts(session: &Session, sql: &str) -> Vec<String> {
    let batches = rows(session, sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let text = |batch: &RecordBatch| {
        let column = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Utf8).unwrap();
        let values = arrow::array::AsArray::as_string::<i32>(&*column);
        values.iter().flatten().map(str::to_owned).collect::<Vec<_>>()
    };
    batches.iter().flat_map(text).collect()
}
