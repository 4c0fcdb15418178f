//! What the tests of the sandbox share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clade::sandbox::{
    CandidateJob, CandidateResult, Evaluator, Executor, JobSpec, Limits, NativeExecutor, NativeOptions,
    ProcessExecutor, ProcessOptions, Scoring, run_candidate,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Interpreter of the tests.
pub fn python() -> PathBuf {
    let python = std::env::var_os("CLADE_PYTHON")
        .expect("set CLADE_PYTHON to a Python interpreter with numpy, pandas and scikit-learn");
    PathBuf::from(python)
}

/// The folder with shared tasks, programs and vectors.
pub fn shared() -> PathBuf {
    let path = std::env::var_os("CLADE_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    assert!(
        path.is_dir(),
        "the folder {} is missing: set CLADE_SHARED to the shared test data",
        path.display()
    );
    path
}

/// The helper: the binary of this package.
pub fn helper() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_clade"))
}

/// Directories of one test; dropping it checks that nothing is left in the scratch root.
pub struct Bench {
    pub root: TempDir,
    pub data: PathBuf,
    pub out: PathBuf,
}

impl Bench {
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("clade tést ").tempdir().unwrap();
        let (data, out) = (root.path().join("päblic data"), root.path().join("out"));
        std::fs::create_dir(&data).unwrap();
        std::fs::create_dir(&out).unwrap();
        std::fs::create_dir(root.path().join("scratch")).unwrap();
        std::fs::write(data.join("train.csv"), "id,y\n1,2\n").unwrap();
        Self { root, data, out }
    }

    pub fn scratch_root(&self) -> PathBuf {
        self.root.path().join("scratch")
    }

    pub fn options(&self) -> NativeOptions {
        let mut options = NativeOptions::new(python());
        options.helper = Some(helper());
        options.scratch_root = self.scratch_root();
        options.grace = Duration::from_secs(2);
        options
    }

    pub fn native(&self) -> NativeExecutor {
        NativeExecutor::new(self.options()).unwrap()
    }

    pub fn process(&self) -> ProcessExecutor {
        let mut options = ProcessOptions::new(python());
        options.scratch_root = self.scratch_root();
        options.grace = Duration::from_secs(2);
        ProcessExecutor::new(options).unwrap()
    }

    pub fn job(&self, code: &str, limits: Limits) -> JobSpec {
        JobSpec {
            job_id: "test".to_owned(),
            code: code.to_owned(),
            data_dir: self.data.clone(),
            env: BTreeMap::new(),
            limits,
            output_name: "submission.csv".to_owned(),
            output_dir: self.out.clone(),
            warm: false,
        }
    }

    /// Nothing of any job is left.
    pub fn assert_clean(&self) {
        let left = files_below(&self.scratch_root());
        assert!(left.is_empty(), "left in the scratch root: {left:?}");
    }
}

fn files_below(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let is_family = name.to_string_lossy().starts_with("clade-sandbox-");
        if !is_family {
            found.push(path.clone());
        }
        found.extend(files_below(&path));
    }
    found
}

/// Limits that let small tests fail fast.
pub fn small_limits() -> Limits {
    Limits {
        wall: Duration::from_secs(30),
        memory_bytes: 1 << 30,
        processes: 64,
        file_bytes: 64 << 20,
        scratch_bytes: 128 << 20,
        scratch_files: 2000,
        log_bytes: 64 << 10,
        submission_bytes: 1 << 20,
        ..Limits::default()
    }
}

/// A shared task with a program.
pub fn candidate(task: &Path, code: String, out: &Path, wall: Duration) -> CandidateJob {
    CandidateJob {
        job_id: "test".to_owned(),
        code,
        data_dir: task.join("data/public"),
        scoring: Scoring::Metric {
            metric_py: task.join("utils/metric.py"),
            answers: vec![task.join("data/private/test_answer.csv")],
        },
        env: BTreeMap::new(),
        limits: Limits {
            wall,
            memory_bytes: 4 << 30,
            ..Limits::default()
        },
        evaluation_limits: Limits::for_evaluation(),
        output_name: "submission.csv".to_owned(),
        output_dir: out.to_owned(),
        warm: false,
        warm_evaluation: false,
        self_reported: last_score,
    }
}

fn last_score(log: &str) -> Option<f64> {
    log.lines()
        .rev()
        .find_map(|line| line.strip_prefix("Final Validation Score: ")?.trim().parse().ok())
}

pub async fn run<T: Executor + Evaluator>(backend: &T, job: CandidateJob) -> CandidateResult {
    run_candidate(backend, backend, job, &CancellationToken::new())
        .await
        .unwrap()
}

/// A token that nobody cancels.
pub fn token() -> CancellationToken {
    CancellationToken::new()
}
