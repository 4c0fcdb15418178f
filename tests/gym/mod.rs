//! Imports of real packages, with metrics run by the interpreter.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use clade::grading::grade_submission;
use clade::gym::{Import, ImportedTask, Progress, import_package, load_task};
use clade::sandbox::{Limits, ProcessExecutor, ProcessOptions, ResultState};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

/// Interpreter of the tests.
fn python() -> PathBuf {
    std::env::var_os("CLADE_PYTHON")
        .expect("set CLADE_PYTHON to a Python interpreter with numpy, pandas and scikit-learn")
        .into()
}

fn tools(scratch: &Path) -> (Arc<ProcessExecutor>, Import) {
    let mut options = ProcessOptions::new(python());
    options.scratch_root = scratch.to_owned();
    let executor = Arc::new(ProcessExecutor::new(options).unwrap());
    let import = Import {
        evaluator: executor.clone(),
        executor: executor.clone(),
        metric_limits: Limits::for_evaluation(),
        split_limits: Limits::default(),
        layout: clade::gym::Layout::Package,
        force: false,
        now: chrono::Utc::now(),
        progress: Progress::default(),
    };
    (executor, import)
}

fn check<'a>(imported: &'a ImportedTask, id: &str) -> &'a str {
    imported
        .checks
        .iter()
        .find(|c| c.check_id == id)
        .map_or("absent", |c| c.status.as_str())
}

#[tokio::test]
async fn example_tasks_import_and_grade() {
    let dir = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tasks/build.py");
    let built = dir.path().join("tasks");
    let status = Command::new(python())
        .arg(script)
        .arg(&built)
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let store = dir.path().join("store");
    let (executor, import) = tools(dir.path());
    let cancel = CancellationToken::new();
    for (id, metric, kind, medal) in [
        ("breast-cancer", "auc", "binary", "none"),
        ("diabetes-progression", "rmse", "regression", "none"),
        ("handwritten-digits", "accuracy", "multiclass", "none"),
    ] {
        let imported = import_package(&built.join(id), &store, &import, &cancel).await.unwrap();
        assert!(
            imported.checks.iter().all(|c| c.status == "passed"),
            "{id}: {:?}",
            imported.checks
        );
        let task = &imported.task;
        assert_eq!(
            (task.metric.as_str(), task.task_type.as_str(), task.validation.as_str()),
            (metric, kind, "split")
        );
        let board: Vec<f64> = imported.leaderboard.iter().map(|t| t.score).collect();
        let task = load_task(&store, imported.task.clone()).unwrap();
        let sample = task.final_.public_dir.join("sample_submission.csv");
        let grade = grade_submission(
            &task,
            &sample,
            &board,
            executor.as_ref(),
            Limits::for_evaluation(),
            &cancel,
        )
        .await
        .unwrap();
        assert_eq!(
            (grade.status, grade.standing.medal),
            (ResultState::Success, Some(medal)),
            "{id}"
        );
        assert_eq!(grade.standing.teams, Some(board.len() as i64));
        let bad = dir.path().join("bad.csv");
        std::fs::write(&bad, "id,nothing\n1,2\n").unwrap();
        let grade = grade_submission(
            &task,
            &bad,
            &board,
            executor.as_ref(),
            Limits::for_evaluation(),
            &cancel,
        )
        .await
        .unwrap();
        assert_eq!(
            (grade.status, grade.valid, grade.standing.rank),
            (ResultState::ScoringFailed, false, None)
        );
        assert!(grade.detail.is_some());
    }
}

/// The shared packages, when they are here.
fn shared_tasks() -> Vec<PathBuf> {
    let Some(shared) = crate::shared::folder() else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(shared.join("tasks")).unwrap();
    let mut tasks: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    tasks.sort();
    tasks
}

#[tokio::test]
async fn shared_tasks_import_with_a_derived_split() {
    let dir = tempfile::tempdir().unwrap();
    let (_, import) = tools(dir.path());
    let cancel = CancellationToken::new();
    let tasks = shared_tasks();
    let imports = tasks
        .iter()
        .map(|path| import_package(path, dir.path(), &import, &cancel));
    for imported in futures::stream::iter(imports).buffered(4).collect::<Vec<_>>().await {
        let imported = imported.unwrap();
        let task = &imported.task;
        assert_eq!(task.validation, "split", "{}: {:?}", task.task_id, task.validation_note);
        assert_eq!(
            check(&imported, "validation_perfect_submission"),
            "passed",
            "{}",
            task.task_id
        );
        assert_eq!(
            (check(&imported, "metric"), check(&imported, "tables")),
            ("passed", "passed"),
            "{}",
            task.task_id
        );
        let note = task.validation_note.as_deref().unwrap();
        let (kind, how) = match task.task_id.as_str() {
            "abalone-age" | "ames-sale-price" | "loan-interest-rate" => ("regression", "drawn"),
            "bundesliga-outcome" => ("multiclass", "'Year'"),
            "cell-segmentation" | "spanish-credit-risk" => ("binary", "keep their shares"),
            "critic-verdict" => ("binary", "'movie_name'"),
            "movie-topn" => ("ranking", "'timestamp'"),
            "solar-flare-counts" => ("multi_target", "keep their shares"),
            "tiny-digits" | "vowel-speakers" => ("multiclass", "keep their shares"),
            "us-daily-births" => ("forecasting", "'date'"),
            _ => continue,
        };
        assert!(
            task.task_type == kind && note.contains(how),
            "{}: {} {note}",
            task.task_id,
            task.task_type
        );
    }
}
