//! Running the program, and a store with a small recorded search in it.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clade_catalog::{Rows, Store, StoreOptions, Txn, Value};
use tempfile::TempDir;

/// What a run of the program left.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Standard output of a run that must succeed.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stdout
    }

    /// Standard error of a run that must end with a code.
    #[track_caller]
    pub fn fails(self, code: i32) -> String {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stderr
    }
}

/// A folder of its own for one test.
pub struct Place {
    folder: TempDir,
}

/// Microseconds of the first recorded moment.
const START: i64 = 1_764_400_000_000_000;

impl Place {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A place with a store.
    pub fn with_store() -> Self {
        let place = Self::new();
        place.run(["init"]).ok();
        place
    }

    /// A place with a store that holds a recorded search: a draft, its improvement, a failure, a crossover.
    pub fn with_history() -> Self {
        let place = Self::with_store();
        let store = Store::open(place.path().join("clade-store"), StoreOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            store.commit(recorded()).await.unwrap();
        });
        drop(store);
        place
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program in this folder with nothing of ours in the environment.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clade"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("XDG_DATA_HOME", self.path().join("data"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CLADE_") || name == "NO_COLOR" || name == "COLUMNS" {
                command.env_remove(name);
            }
        }
        command
    }

    /// A line of a shell in this folder, with the environment that the program gets.
    pub fn shell(&self, line: &str) -> Command {
        let program = self.command([] as [&str; 0]);
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(line).current_dir(self.path());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell
    }

    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Outcome {
        self.run_with_input(arguments, "")
    }

    pub fn run_with_input<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>, input: &str) -> Outcome {
        finish(&mut self.command(arguments), input)
    }

    /// The text with this place's path as `FOLDER`.
    pub fn scrub(&self, text: &str) -> String {
        text.replace(&*self.path().to_string_lossy(), "FOLDER")
    }
}

/// Runs a command to its end with a text as its input.
pub fn finish(command: &mut Command, input: &str) -> Outcome {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that does not read its input is no fault.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Outcome {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A recorded program.
struct Recorded {
    id: &'static str,
    step: i64,
    operator: &'static str,
    parents: [Option<&'static str>; 2],
    code: &'static str,
    score: Option<f64>,
    delta: Option<f64>,
    status: &'static str,
}

const FIRST: &str = "import pandas as pd\nfrom sklearn.linear_model import Ridge\n\nmodel = Ridge()\nprint(model)\n";
const SECOND: &str = "import pandas as pd\nfrom sklearn.ensemble import RandomForestRegressor\n\nmodel = RandomForestRegressor()\nprint(model)\n";

fn programs() -> Vec<Recorded> {
    let node = |id, step, operator, parents, code, score, delta, status| Recorded {
        id,
        step,
        operator,
        parents,
        code,
        score,
        delta,
        status,
    };
    vec![
        node("nabc01", 1, "draft", [None, None], FIRST, Some(2.5), None, "success"),
        node(
            "nabc02",
            2,
            "improve",
            [Some("nabc01"), None],
            SECOND,
            Some(2.25),
            Some(0.25),
            "success",
        ),
        node(
            "nabd03",
            3,
            "improve",
            [Some("nabc02"), None],
            "print(1 / 0)\n",
            None,
            None,
            "code_execution_error",
        ),
        node(
            "nxyz04",
            4,
            "crossover",
            [Some("nabc02"), Some("nabc01")],
            FIRST,
            Some(2.75),
            Some(-0.5),
            "success",
        ),
    ]
}

/// Rows of the recorded search.
fn recorded() -> Txn {
    let at = |seconds: i64| Value::Timestamp(START + seconds * 1_000_000);
    let mut txn = Txn::new();
    let mut tasks = Rows::new("gym.tasks").unwrap();
    tasks
        .push([
            ("task_id", "abalone".into()),
            ("title", "Age of abalone".into()),
            (
                "description",
                "Predict the age of each abalone from its measures.".into(),
            ),
            ("modality", "tabular".into()),
            ("task_type", "regression".into()),
            ("metric", "mean absolute error".into()),
            ("higher_is_better", false.into()),
            ("package_hash", "p1".into()),
            ("package_path", "tasks/abalone/p1".into()),
            ("source", "/data/abalone".into()),
            ("validation", "split".into()),
            ("validation_note", "stratified 80/20".into()),
            ("target_columns", Value::List(vec!["age".into()])),
            ("train_rows", 3000.into()),
            ("test_rows", 1000.into()),
            ("imported_at", at(0)),
        ])
        .unwrap();
    txn.append("gym.tasks", tasks);
    let mut runs = Rows::new("evo.runs").unwrap();
    runs.push([
        ("run_id", "01run".into()),
        ("task_id", "abalone".into()),
        ("statement_id", "01run".into()),
        ("status", "finished".into()),
        ("policy", "openmle_evo".into()),
        ("policy_sql", "SELECT 1".into()),
        ("model", "evolver".into()),
        ("sandbox", "native".into()),
        ("mode", "async".into()),
        ("seed", 1.into()),
        ("workers", 2.into()),
        ("steps_limit", 4.into()),
        ("steps_done", 4.into()),
        ("options", "{}".into()),
        ("best_node_id", "nabc02".into()),
        ("best_score", 2.25.into()),
        ("best_step", 2.into()),
        ("stop_reason", "steps".into()),
        ("engine_version", "0.1.0".into()),
        ("created_at", at(0)),
        ("started_at", at(1)),
        ("finished_at", at(13)),
    ])
    .unwrap();
    txn.append("evo.runs", runs);
    let (mut nodes, mut edges, mut jobs) = (
        Rows::new("evo.nodes").unwrap(),
        Rows::new("evo.edges").unwrap(),
        Rows::new("sandbox.jobs").unwrap(),
    );
    for program in programs() {
        let failed = program.score.is_none();
        let error = failed.then_some("ZeroDivisionError: division by zero");
        nodes
            .push([
                ("node_id", program.id.into()),
                ("run_id", "01run".into()),
                ("task_id", "abalone".into()),
                ("attempt_id", format!("a{}", program.step).into()),
                ("statement_id", "01run".into()),
                ("step", program.step.into()),
                ("island", 0.into()),
                ("operator", program.operator.into()),
                ("parent_id", program.parents[0].map(str::to_owned).into()),
                ("parent2_id", program.parents[1].map(str::to_owned).into()),
                ("code", program.code.into()),
                ("code_hash", format!("h{}", program.step).into()),
                ("plan", "Fit a model and print it.".into()),
                ("status", program.status.into()),
                ("is_buggy", failed.into()),
                ("score", program.score.into()),
                ("signed_score", program.score.map(|score| -score).into()),
                ("score_source", if failed { "none" } else { "evaluator" }.into()),
                ("delta_vs_parent", program.delta.into()),
                ("error_class", failed.then(|| "candidate".to_owned()).into()),
                ("error_signature", failed.then(|| "value_error".to_owned()).into()),
                ("error", error.map(str::to_owned).into()),
                ("imports", Value::List(vec!["pandas".into(), "sklearn".into()])),
                ("method_family", "linear".into()),
                ("family_count_before", 0.into()),
                ("admitted", true.into()),
                ("job_id", format!("j{}", program.step).into()),
                ("model", "evolver".into()),
                ("seed", 7.into()),
                ("tokens_prompt", 100.into()),
                ("tokens_completion", 20.into()),
                ("cost_usd", 0.0.into()),
                ("model_seconds", 0.25.into()),
                ("sandbox_seconds", 1.5.into()),
                ("queued_at", at(program.step)),
                ("started_at", at(program.step)),
                ("finished_at", at(program.step + 2)),
            ])
            .unwrap();
        for (role, parent) in ["parent", "parent2"].into_iter().zip(program.parents) {
            if let Some(parent) = parent {
                edges
                    .push([
                        ("run_id", "01run".into()),
                        ("task_id", "abalone".into()),
                        ("parent_id", parent.into()),
                        ("child_id", program.id.into()),
                        ("role", role.into()),
                        ("operator", program.operator.into()),
                        ("delta", program.delta.into()),
                    ])
                    .unwrap();
            }
        }
        let stderr = error.map_or(String::new(), |error| {
            format!("Traceback (most recent call last):\n{error}\n")
        });
        let bytes = i64::try_from(stderr.len()).unwrap();
        jobs.push([
            ("job_id", format!("j{}", program.step).into()),
            ("attempt_id", format!("a{}", program.step).into()),
            ("run_id", "01run".into()),
            ("task_id", "abalone".into()),
            ("split", "validation".into()),
            ("backend", "native".into()),
            ("status", program.status.into()),
            ("oom", false.into()),
            ("stdout_head", "Ridge()\n".into()),
            ("stdout_tail", "Ridge()\n".into()),
            ("stdout_bytes", 8.into()),
            ("stderr_head", stderr.clone().into()),
            ("stderr_tail", stderr.into()),
            ("stderr_bytes", bytes.into()),
            ("logs_truncated", false.into()),
            ("code_hash", format!("h{}", program.step).into()),
            ("isolation", "{}".into()),
            ("warm", false.into()),
            ("queued_at", at(program.step)),
            ("finished_at", at(program.step + 2)),
        ])
        .unwrap();
    }
    txn.append("evo.nodes", nodes);
    txn.append("evo.edges", edges);
    txn.append("sandbox.jobs", jobs);
    txn
}
