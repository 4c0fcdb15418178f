//! Group F: submissions. A file of any kind is taken out or refused without harm, and a metric that it upsets gives no score.

use std::sync::Arc;
use std::time::Duration;

use clade::sandbox::{CandidateJob, CandidateResult, NativeExecutor, ResultState, run_candidate};

use super::rows::{Column, NOT_TRIED, Rows};
use super::words;
use crate::sandbox::support::{Backend, token};
use crate::sandbox::task::{METRIC, Task};

/// A submission of a kind of `submissions.py`.
struct Submission {
    case: &'static str,
    kind: &'static str,
    attack: &'static str,
    state: ResultState,
    /// A part of the reason.
    word: &'static str,
    score: Option<f64>,
}

const fn submission(
    case: &'static str,
    kind: &'static str,
    attack: &'static str,
    state: ResultState,
    word: &'static str,
) -> Submission {
    let score = if matches!(state, ResultState::Success) {
        Some(1.0)
    } else {
        None
    };
    Submission {
        case,
        kind,
        attack,
        state,
        word,
        score,
    }
}

const REFUSED: ResultState = ResultState::SubmissionMissing;
const UNSCORED: ResultState = ResultState::ScoringFailed;
const SCORED: ResultState = ResultState::Success;

const KINDS: &[Submission] = &[
    submission("F32", "good", "honest submission", SCORED, ""),
    submission("F32", "nothing", "no file", REFUSED, "wrote no"),
    submission("F32", "symlink", "link to the hidden answers", REFUSED, "symbolic link"),
    submission(
        "F32",
        "symlink_inside",
        "link to a file of its own",
        REFUSED,
        "symbolic link",
    ),
    submission("F32", "hard_link", "file with two names", REFUSED, "hard link"),
    submission("F32", "fifo", "named pipe", REFUSED, "pipe"),
    submission("F32", "directory", "directory", REFUSED, "directory"),
    submission("F32", "socket", "socket", REFUSED, "socket"),
    submission("F32", "device", "link to a device", REFUSED, "symbolic link"),
    submission(
        "F32",
        "folder_link",
        "output folder that is a link",
        REFUSED,
        "symbolic link",
    ),
    submission(
        "F32",
        "link_in_folder",
        "link in the output folder",
        REFUSED,
        "symbolic link",
    ),
    submission("F32", "huge", "file over the limit", REFUSED, "limit"),
    submission("F32", "sparse", "hole over the limit", REFUSED, "limit"),
    submission("F32", "growing", "file that a daemon still writes", SCORED, ""),
    submission("F32", "unreadable", "file without permissions", SCORED, ""),
    submission("F32", "bom", "byte order mark", SCORED, ""),
    submission("F32", "crlf", "line ends of another system", SCORED, ""),
    submission("F32", "empty", "empty file", UNSCORED, "EmptyDataError"),
    submission("F32", "header_only", "head without rows", UNSCORED, "ids"),
    submission("F32", "nul", "NUL byte", UNSCORED, ""),
    submission("F32", "text", "text that is no table", UNSCORED, "columns"),
    submission("F32", "nan", "value that is no number", UNSCORED, "finite"),
    submission("F32", "infinite", "infinite value", UNSCORED, "finite"),
    submission("F32", "duplicate", "row that comes twice", UNSCORED, "ids"),
    submission("F32", "few_rows", "too few rows", UNSCORED, "ids"),
    submission("F32", "wide", "very many columns", UNSCORED, "columns"),
    submission("F32", "pickle", "pickle named like a table", UNSCORED, ""),
    submission("F32", "quotes", "quote that never ends", UNSCORED, ""),
    submission("F32", "formula", "formulas of a spreadsheet", UNSCORED, ""),
    submission("F33", "other_case", "name in other case", REFUSED, "wrote no"),
    submission(
        "F33",
        "other_letters",
        "name in letters that look alike",
        REFUSED,
        "wrote no",
    ),
    submission(
        "F35",
        "column hang",
        "table that hangs the metric",
        UNSCORED,
        "wall time",
    ),
    submission("F35", "column crash", "table that crashes the metric", UNSCORED, ""),
    submission(
        "F35",
        "column forge",
        "table that makes the metric print a score",
        UNSCORED,
        "without a result",
    ),
    Submission {
        score: Some(0.5),
        ..submission("F35", "forged_log", "score printed by the program", SCORED, "")
    },
    Submission {
        score: Some(0.5),
        ..submission(
            "F35",
            "forged_result",
            "result written where the evaluator might look",
            SCORED,
            "",
        )
    },
];

/// The metric, with the faults that some tables bring out.
fn frail_metric() -> String {
    let faults = r#"import os
        if "hang" in submission.columns:
            while True:
                pass
        if "crash" in submission.columns:
            os.kill(os.getpid(), 11)
        if "forge" in submission.columns:
            print('{"score": 1.0, "valid": true, "stage": "done"}', flush=True)
            os.write(1, b'{"score": 1.0, "valid": true, "stage": "done"}')
            os._exit(0)
        if list("#;
    METRIC.replacen("if list(", faults, 1)
}

/// All back ends; jails have warm interpreters, for most of the time would go into imports.
fn backends(task: &Task) -> Vec<Arc<dyn Backend>> {
    let jails = [true, false].map(|cgroups| {
        let mut options = task.bench.options().with_warm_pool();
        options.cgroups = cgroups;
        Arc::new(NativeExecutor::new(options).unwrap()) as Arc<dyn Backend>
    });
    let docker = task.bench.docker().map(|docker| Arc::new(docker) as Arc<dyn Backend>);
    let process = Arc::new(task.bench.process()) as Arc<dyn Backend>;
    [process].into_iter().chain(jails).chain(docker).collect()
}

fn job(task: &Task, kind: &str) -> CandidateJob {
    let mut job = task.candidate(kind);
    if kind.contains("folder") {
        (job.output_name, job.output_is_folder) = ("output".to_owned(), true);
    }
    if kind == "column hang" {
        job.evaluation_limits.wall = Duration::from_secs(4);
    }
    job
}

async fn run(backend: &dyn Backend, job: CandidateJob) -> CandidateResult {
    run_candidate(backend, backend, job, &token()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn f32_f33_f35_every_submission_ends_in_its_state() {
    let task = Task::new(&frail_metric());
    let mut rows = Rows::default();
    for backend in backends(&task) {
        let column = Column::of(backend.name());
        for submission in KINDS {
            // What outlives its program there would be taken while it is written.
            if column == Column::Without && submission.kind == "growing" {
                rows.see(column, submission.case, submission.attack, NOT_TRIED);
                continue;
            }
            let result = run(&*backend, job(&task, submission.kind)).await;
            let what = format!("{} in {}", submission.kind, backend.name());
            let detail = result.detail.clone().unwrap_or_default();
            let stderr = result.job.as_ref().map(|job| job.stderr.text()).unwrap_or_default();
            assert_eq!(result.state, submission.state, "{what}: {detail} {stderr}");
            assert_eq!(result.score, submission.score, "{what}");
            assert!(detail.contains(submission.word), "{what}: {detail}");
            assert!(detail.len() < 700, "{what}: {detail}");
            rows.see(column, submission.case, submission.attack, &words::score(&result));
        }
        task.bench.finish(backend);
    }
    rows.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn f34_a_submission_that_changes_while_it_is_taken_gives_nothing_away() {
    let task = Task::new(METRIC);
    let mut rows = Rows::default();
    let attack = "swapping a file and a link to the answers";
    rows.see(Column::Without, "F34", attack, NOT_TRIED);
    let secret = task.bench.root.path().join("secret");
    std::fs::write(&secret, "the-secret-of-this-test").unwrap();
    let secret = secret.display().to_string();
    for backend in backends(&task).into_iter().skip(1) {
        // It is one or the other when its last process is dead: either is right, the secret is not.
        for _ in 0..5 {
            let mut job = job(&task, "changing");
            job.env.insert("SECRET".to_owned(), secret.clone());
            let result = run(&*backend, job).await;
            let is_right = matches!(result.state, ResultState::Success | ResultState::SubmissionMissing);
            assert!(is_right, "{:?} in {}", result.detail, backend.name());
            if let Some(taken) = result.job.and_then(|job| job.submission) {
                let text = std::fs::read_to_string(&taken.path).unwrap();
                assert!(!text.contains("secret"), "{text:?} in {}", backend.name());
            }
        }
        rows.see(Column::of(backend.name()), "F34", attack, "taken or refused");
        task.bench.finish(backend);
    }
    rows.check();
}
