//! Imports of small packages by a metric runner that needs no interpreter.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use chrono::Utc;
use tokio_util::sync::CancellationToken;

use crate::gym::table::Table;
use crate::gym::{GymError, Import, ImportedTask, Layout, Progress, import_package, load_task};
use crate::sandbox::{
    CapabilityReport, CapturedLog, Cause, Collected, Evaluation, EvaluationSpec, Evaluator, Executor, IsolationReport,
    JobEnd, JobOutcome, JobSpec, Limits, ResultState, SandboxError,
};

/// A file of golden vectors; nothing when they are not here and `CLADE_SKIP_SHARED` says that this is fine.
pub(crate) fn golden_vectors(name: &str) -> Option<serde_json::Value> {
    let folder = std::env::var_os("CLADE_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/vectors"),
        PathBuf::from,
    );
    match fs::read_to_string(folder.join(name)) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap()),
        Err(_) if std::env::var("CLADE_SKIP_SHARED").as_deref() == Ok("1") => None,
        Err(error) => panic!(
            "cannot read {name} in {}: {error}; set CLADE_VECTORS to the folder of the golden vectors, or CLADE_SKIP_SHARED=1 to go without them",
            folder.display()
        ),
    }
}

/// Scores by the share of rows with the right last column; the direction is read from the text of the metric.
#[derive(Debug)]
struct ShareOfEqualRows;

#[async_trait]
impl Evaluator for ShareOfEqualRows {
    async fn evaluate(&self, spec: EvaluationSpec, _: &CancellationToken) -> Result<Evaluation, SandboxError> {
        let metric = fs::read_to_string(&spec.metric_py).unwrap();
        if metric.contains("broken sandbox") {
            return Err(SandboxError::Helper("broken".into()));
        }
        let (truth, made) = (
            Table::read(&spec.answers[0]).unwrap(),
            Table::read(&spec.submission).unwrap(),
        );
        let equal = (0..truth.len())
            .filter(|r| truth.row(*r).last() == made.row(*r).last())
            .count();
        let score = (truth.len() == made.len() && !metric.contains("raise")).then(|| equal as f64 / truth.len() as f64);
        Ok(Evaluation {
            score,
            valid: score.is_some(),
            higher_is_better: metric.contains("higher_is_better = True").then_some(true),
            metric_class: None,
            instances: std::collections::BTreeMap::new(),
            state: if score.is_some() {
                ResultState::Success
            } else {
                ResultState::ScoringFailed
            },
            detail: score.is_none().then(|| "ValueError: no".to_owned()),
            wall_seconds: if metric.contains("loops") {
                spec.limits.wall.as_secs_f64()
            } else {
                0.0
            },
        })
    }
}

/// Stands for a sandbox in which the package's splitter left a file beside its program.
#[derive(Debug)]
struct WritesSplit(String);

#[async_trait]
impl Executor for WritesSplit {
    fn name(&self) -> &str {
        "test"
    }
    async fn run(&self, job: JobSpec, _: &CancellationToken) -> Result<JobOutcome, SandboxError> {
        assert!(job.data_dir.join("train.csv").is_file());
        let path = job.output_dir.join(&job.output_name);
        fs::write(&path, &self.0).unwrap();
        let submission = Some(Collected {
            path,
            bytes: self.0.len() as u64,
            sha256: String::new(),
        });
        Ok(JobOutcome {
            end: JobEnd::Exited { code: 0 },
            state: None,
            detail: None,
            cause: Cause::Exit,
            exit_code: Some(0),
            signal: None,
            oom: false,
            cpu_seconds: None,
            wall_seconds: None,
            peak_memory_bytes: None,
            stdout: CapturedLog::default(),
            stderr: CapturedLog::default(),
            submission,
            isolation: IsolationReport::unsandboxed("test"),
            warm: false,
            queued_at: Utc::now(),
            started_at: None,
            finished_at: Utc::now(),
        })
    }

    async fn capabilities(&self) -> Result<CapabilityReport, SandboxError> {
        Err(SandboxError::Config("not asked in these tests".into()))
    }

    async fn isolation(&self) -> Result<IsolationReport, SandboxError> {
        Ok(IsolationReport::unsandboxed("test"))
    }

    async fn sweep(&self) -> Result<usize, SandboxError> {
        Ok(0)
    }
}

const METRIC: &str = "class TestMetrics:\n    higher_is_better = True\n";

struct Fixture {
    dir: tempfile::TempDir,
    split_json: String,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self {
            dir: tempfile::tempdir().unwrap(),
            split_json: String::new(),
        };
        let class = |n: usize| if n.is_multiple_of(4) { "yes" } else { "no" };
        let mut train = "id,x,y\n".to_owned();
        (0..60).for_each(|n| train.push_str(&format!("{n},{},{}\n", n % 7, class(n))));
        let (mut test, mut sample, mut answer) = ("id,x\n".to_owned(), "id,y\n".to_owned(), "id,y\n".to_owned());
        for n in 60..75 {
            test.push_str(&format!("{n},{}\n", n % 7));
            sample.push_str(&format!("{n},no\n"));
            answer.push_str(&format!("{n},{}\n", class(n)));
        }
        fixture.write("data/public/train.csv", &train);
        fixture.write("data/public/test.csv", &test);
        fixture.write("data/public/sample_submission.csv", &sample);
        fixture.write("data/private/test_answer.csv", &answer);
        fixture.write(
            "data/public/description.txt",
            "Yes or no\n=========\n\nEvaluation\n----------\nScored by accuracy.\n",
        );
        fixture.write("utils/metric.py", METRIC);
        fixture.write("leaderboard.csv", "Team,Score\nworst,0.5\nbest,0.9\nodd,n/a\n");
        fixture
    }

    fn package(&self) -> PathBuf {
        self.dir.path().join("yes-or-no")
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.package().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    async fn import(&self, force: bool) -> Result<ImportedTask, GymError> {
        self.import_with(force, Progress::default()).await
    }

    async fn import_with(&self, force: bool, progress: Progress) -> Result<ImportedTask, GymError> {
        let import = Import {
            evaluator: Arc::new(ShareOfEqualRows),
            executor: Arc::new(WritesSplit(self.split_json.clone())),
            metric_limits: Limits::for_evaluation(),
            split_limits: Limits::default(),
            layout: Layout::Package,
            force,
            now: Utc::now(),
            progress,
        };
        import_package(&self.package(), &self.store(), &import, &CancellationToken::new()).await
    }

    /// Entries of the store's folder of tasks.
    fn tasks(&self) -> Vec<String> {
        let folder = self.store().join("tasks");
        fs::read_dir(folder)
            .map(|d| {
                d.map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
                    .collect()
            })
            .unwrap_or_default()
    }
}

fn check<'t>(imported: &'t ImportedTask, id: &str) -> Option<(&'t str, &'t str)> {
    imported
        .checks
        .iter()
        .find(|c| c.check_id == id)
        .map(|c| (c.status.as_str(), c.detail.as_str()))
}

#[tokio::test]
async fn rows_and_files_of_an_import() {
    let fixture = Fixture::new();
    let imported = fixture.import(false).await.unwrap();
    let task = &imported.task;
    assert_eq!(
        (task.task_id.as_str(), task.title.as_str(), task.metric.as_str()),
        ("yes-or-no", "Yes or no", "accuracy")
    );
    assert_eq!(
        (
            task.modality.as_str(),
            task.task_type.as_str(),
            task.validation.as_str()
        ),
        ("tabular", "binary", "split")
    );
    assert_eq!(
        (task.theoretical_min, task.theoretical_max, task.higher_is_better),
        (Some(0.0), Some(1.0), true)
    );
    assert_eq!(
        (task.train_rows, task.test_rows, task.id_column.as_deref()),
        (Some(60), Some(15), Some("id"))
    );
    assert_eq!(task.target_columns, ["y"]);
    let board: Vec<(i64, &str)> = imported
        .leaderboard
        .iter()
        .map(|t| (t.rank, t.team.as_deref().unwrap()))
        .collect();
    assert_eq!(board, [(1, "best"), (2, "worst")]);
    assert_eq!(check(&imported, "leaderboard").unwrap().0, "warning");
    assert_eq!(check(&imported, "validation_perfect_submission").unwrap().0, "passed");
    assert_eq!(
        imported.events.iter().map(|e| e.event.as_str()).collect::<Vec<_>>(),
        ["imported", "split_derived"]
    );
    assert_eq!(imported.files.len(), 7);
    let loaded = load_task(&fixture.store(), task.clone()).unwrap();
    let validation = loaded.validation.as_ref().unwrap();
    assert_eq!(Table::read(&validation.public_dir.join("test.csv")).unwrap().len(), 12);
    assert!(validation.answers[0].is_file() && loaded.final_.answers[0].is_file());
    assert_eq!(loaded.search_data(), validation.public_dir);
    assert_eq!(fixture.tasks(), ["yes-or-no"]);
}

#[tokio::test]
async fn importing_again_changes_nothing_and_a_changed_package_is_another() {
    let fixture = Fixture::new();
    let first = fixture.import(false).await.unwrap();
    let again = fixture.import(false).await.unwrap();
    assert_eq!(first.task.package_hash, again.task.package_hash);
    fixture.write(
        "task.toml",
        "title = 'Other'\ntheoretical_max = 0.95\n[validation]\nseed = 3\n",
    );
    let other = fixture.import(false).await.unwrap();
    assert_ne!(first.task.package_hash, other.task.package_hash);
    assert_eq!(
        (other.task.title.as_str(), other.task.theoretical_max),
        ("Other", Some(0.95))
    );
    assert_eq!(
        fs::read_dir(fixture.store().join("tasks/yes-or-no")).unwrap().count(),
        2
    );
}

#[tokio::test]
async fn a_metric_that_refuses_the_sample_stops_the_import_unless_forced() {
    let fixture = Fixture::new();
    fixture.write(
        "utils/metric.py",
        "raise\nclass TestMetrics:\n    higher_is_better = True\n",
    );
    let error = fixture.import(false).await.unwrap_err().to_string();
    assert!(
        error.contains("metric_execution_failed") && error.contains("ValueError: no") && error.contains("--force"),
        "{error}"
    );
    assert!(fixture.tasks().is_empty());
    let forced = fixture.import(true).await.unwrap();
    assert_eq!(forced.task.validation, "self_reported");
    assert_eq!(check(&forced, "metric_execution_failed").unwrap().0, "failed");
    assert!(load_task(&fixture.store(), forced.task).unwrap().validation.is_none());
}

#[tokio::test]
async fn an_import_says_what_it_runs_and_how_long_it_may_take() {
    let fixture = Fixture::new();
    let (lines, said) = std::sync::mpsc::channel();
    let progress = Progress::to(move |line| lines.send(line.to_owned()).unwrap());
    fixture.import_with(false, progress).await.unwrap();
    let limit = Limits::for_evaluation().wall.as_secs_f64();
    assert_eq!(
        said.iter().collect::<Vec<_>>(),
        [
            format!("yes-or-no: running utils/metric.py on the sample submission, at most {limit} s"),
            "yes-or-no: making the validation split and scoring its answers".to_owned(),
        ]
    );
    fixture.write("utils/metric.py", "raise\nloops\n    higher_is_better = True\n");
    let error = fixture.import(false).await.unwrap_err().to_string();
    let reason = format!("utils/metric.py did not end within {limit} s; sandbox.evaluation_seconds sets the limit");
    assert!(error.contains(&reason), "{error}");
}

#[tokio::test]
async fn a_split_that_was_asked_for_is_made_or_the_package_is_refused() {
    for (settings, reason) in [
        (
            "group_column = 'speaker'",
            "unknown_group_column (task.toml names validation.group_column 'speaker', but train.csv has the columns id, x, y)",
        ),
        (
            "time_column = 'day'",
            "unknown_time_column (task.toml names validation.time_column 'day', but train.csv has the columns id, x, y)",
        ),
        (
            "time_column = 'y'",
            "task.toml asks for validation.time_column 'y', and no such split can be made: validation.time_column 'y' does \
             not hold times in one format",
        ),
    ] {
        let fixture = Fixture::new();
        fixture.write("task.toml", &format!("[validation]\n{settings}\n"));
        let error = fixture.import(false).await.unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains("--force"), "{error}");
        assert!(fixture.tasks().is_empty());
        assert_eq!(fixture.import(true).await.unwrap().task.validation, "self_reported");
    }
    let fixture = Fixture::new();
    fixture.write("task.toml", "[validation]\ngroup_column = 'x'\n");
    assert_eq!(fixture.import(false).await.unwrap().task.validation, "split");
}

#[tokio::test]
async fn a_leaderboard_without_scores_is_refused() {
    let fixture = Fixture::new();
    fixture.write("leaderboard.csv", "Team,Points\nbest,0.9\n");
    let error = fixture.import(false).await.unwrap_err().to_string();
    assert!(
        error.contains("leaderboard.csv has no column 'score', it has Team, Points"),
        "{error}"
    );
    fixture.write("leaderboard.csv", "Team,Score\nbest,\n");
    let error = fixture.import(false).await.unwrap_err().to_string();
    assert!(
        error.contains("leaderboard.csv has no finite number in its column 'Score'"),
        "{error}"
    );
    let forced = fixture.import(true).await.unwrap();
    assert!(forced.leaderboard.is_empty());
    assert_eq!(check(&forced, "leaderboard").unwrap().0, "failed");
}

#[tokio::test]
async fn no_direction_no_import() {
    let fixture = Fixture::new();
    fixture.write("utils/metric.py", "class TestMetrics:\n    pass\n");
    for force in [false, true] {
        let error = fixture.import(force).await.unwrap_err();
        assert!(matches!(error, GymError::NoDirection { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_failing_sandbox_is_an_error_and_leaves_nothing() {
    let fixture = Fixture::new();
    fixture.write("utils/metric.py", "broken sandbox");
    assert!(matches!(
        fixture.import(true).await.unwrap_err(),
        GymError::Sandbox { .. }
    ));
    assert!(fixture.tasks().is_empty());
}

#[tokio::test]
async fn bad_folders_are_named() {
    let fixture = Fixture::new();
    fixture.write("task.toml", "nmae = 'x'\n");
    assert!(fixture.import(true).await.unwrap_err().to_string().contains("nmae"));
    fs::remove_file(fixture.package().join("task.toml")).unwrap();
    fs::remove_file(fixture.package().join("data/public/test.csv")).unwrap();
    let error = fixture.import(false).await.unwrap_err().to_string();
    assert!(error.contains("missing_test_csv"), "{error}");
    fs::remove_dir_all(fixture.package().join("data")).unwrap();
    assert!(
        fixture
            .import(false)
            .await
            .unwrap_err()
            .to_string()
            .contains("data/public")
    );
}

#[tokio::test]
async fn known_leaks_are_marked() {
    let fixture = Fixture::new();
    let answers = fs::read_to_string(fixture.package().join("data/private/test_answer.csv")).unwrap();
    fixture.write("data/public/hints.csv", &answers);
    let imported = fixture.import(false).await.unwrap();
    assert!(imported.task.known_leak.unwrap().contains("hints.csv"));
}

#[tokio::test]
async fn a_package_brings_its_own_splitter() {
    let mut fixture = Fixture::new();
    let boxes = |n: std::ops::Range<usize>| n.fold("id,box\n".to_owned(), |text, n| text + &format!("{n},1 2\n"));
    fixture.write("data/private/test_answer.csv", &boxes(60..75));
    fixture.write("data/public/sample_submission.csv", &boxes(60..75));
    let imported = fixture.import(false).await.unwrap();
    assert_eq!(imported.task.validation, "self_reported");
    assert!(imported.task.validation_note.unwrap().contains("box"));
    fixture.write("utils/split.py", "...");
    let made = |answer: &str| {
        serde_json::json!({"train": "id,x,y\n1,2,no\n", "test": "id,x\n2,3\n", "sample_submission": "id,box\n2,0\n", "test_answer": answer, "note": "by hand"})
            .to_string()
    };
    fixture.split_json = made("id,wrong\n2,1\n");
    let imported = fixture.import(false).await.unwrap();
    assert!(imported.task.validation_note.unwrap().contains("test_answer"));
    fixture.split_json = made("id,box\n2,1 2\n");
    let imported = fixture.import(false).await.unwrap();
    assert_eq!(
        (
            imported.task.validation.as_str(),
            imported.task.validation_note.as_deref()
        ),
        ("custom", Some("by hand; 1 rows for training, 1 held out"))
    );
    let task = load_task(&fixture.store(), imported.task).unwrap();
    assert_eq!(
        read(&task.validation.unwrap().public_dir.join("train.csv")),
        "id,x,y\n1,2,no\n"
    );
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
