//! An engine on a store of its own, with the instant generator and sandbox and a small task.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use clade::config::{Override, Sources};
use clade::engine::{Engine, Extensions, OpenMode, SessionOptions};
use clade::scheduler::Sandbox;
use clade_catalog::{Rows, Txn, Value};
use datafusion::arrow::array::RecordBatch;

use crate::instant::{Instant, Scripted};
use crate::verbose::Verbose;

/// The task of every store.
pub const TASK: &str = "toy";

pub async fn open(store: &Path, mode: OpenMode) -> Result<Arc<Engine>> {
    let path = format!("store.path={}", store.display());
    let settings = [
        path.as_str(),
        "python.interpreter=python3",
        "sandbox.executor=instant",
        "search.model=scripted",
        "search.workers=1",
    ];
    let sources = Sources {
        overrides: settings
            .iter()
            .map(|text| Override::parse(text, "measure"))
            .collect::<Result<_, _>>()?,
        ..Sources::default()
    };
    let instant = Arc::new(Instant::default());
    let sandbox = Sandbox {
        executor: Arc::clone(&instant) as _,
        evaluator: instant,
    };
    let extensions = Extensions {
        models: vec![Arc::new(Scripted::default()), Arc::new(Verbose { lines: 80 })],
        sandboxes: [("instant".to_owned(), sandbox)].into(),
        clock: None,
    };
    Ok(Engine::open_with(&sources.load()?, mode, extensions).await?)
}

/// A new store with the task.
pub async fn create(store: &Path) -> Result<Arc<Engine>> {
    let engine = open(store, OpenMode::Create).await?;
    let package = format!("tasks/{TASK}/test");
    let root = engine.store().dir().join(&package);
    for part in ["data/private", "validation/private"] {
        std::fs::create_dir_all(root.join(part))?;
        std::fs::write(root.join(part).join("test_answer.csv"), "id,y\n1,1\n")?;
    }
    for part in ["data/public", "validation/public", "utils"] {
        std::fs::create_dir_all(root.join(part))?;
    }
    std::fs::write(
        root.join("utils/metric.py"),
        "class ToyMetrics:\n    higher_is_better = True\n",
    )?;
    let mut tasks = Rows::new("gym.tasks")?;
    tasks.push([
        ("task_id", TASK.into()),
        ("title", "A toy".into()),
        ("description", "Predict y from x.".into()),
        ("modality", "tabular".into()),
        ("task_type", "regression".into()),
        ("metric", "r2".into()),
        ("higher_is_better", true.into()),
        ("package_hash", "test".into()),
        ("package_path", package.into()),
        ("source", "test".into()),
        ("validation", "split".into()),
        ("imported_at", Value::Timestamp(0)),
    ])?;
    let mut txn = Txn::new();
    txn.append("gym.tasks", tasks);
    engine.store().commit(txn).await?;
    Ok(engine)
}

/// Rows of the last statement of a text.
pub async fn rows(engine: &Arc<Engine>, sql: &str) -> Result<Vec<RecordBatch>> {
    let session = engine.session(&SessionOptions::default());
    let mut batches = Vec::new();
    for output in session.execute(sql).await? {
        batches = output.collect().await?;
    }
    Ok(batches)
}
