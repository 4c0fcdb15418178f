//! What programs do to the machine and to the scoring, as `clade exec` shows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use clade::sandbox::{CapabilityReport, Executor, IsolationReport, JobOutcome, JobSpec, SandboxError};
use clade::scheduler::{Sandbox, sha256_hex};
use tokio_util::sync::CancellationToken;

use super::bed::{Bed, NativeBed, Reply, submits};
use super::gyms::{Gym, predicts, write_package};
use crate::cli::fixture::{Place, finish};
use crate::engine::fixture::{number, rows, session, table};
use crate::engine::instant::Instant;
use crate::sandbox::support::python;

/// open-instruct PR #1871: more than 1 MB of output aborted a job, and it was run again. OpenEnv PR #965: a score that was
/// there was lost because the output that repeated it was cut off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_output_neither_runs_a_job_again_nor_costs_its_score() {
    let bed =
        NativeBed::new([submits(0.5, "print('x' * 999_999)\nprint('y' * 1_999_999)")]).set("sandbox.log_size=64KiB");
    let engine = bed.bed.create().await;
    let client = session(&engine);
    let sql = "EVOLVE TASK 'toy' WITH (steps => 1, workers => 1, seed => 1, grade => false, id => 'r')";
    rows(&client, sql).await.unwrap();
    let once = "SELECT count(*) FROM evo.attempts a JOIN sandbox.jobs j ON j.attempt_id = a.attempt_id
                WHERE a.tries = 1 AND j.score = 0.5 AND j.stdout_bytes = 3000000 AND j.logs_truncated";
    let shown = table(
        &client,
        "SELECT status, score, stdout_bytes, logs_truncated FROM sandbox.jobs",
    )
    .await;
    assert_eq!(number(&client, once).await, 1, "{shown}");
    assert_eq!(number(&client, "SELECT count(*) FROM sandbox.jobs").await, 1);
    drop(client);
    bed.finish(engine).await;
}

/// The instant sandbox, with a count of the jobs that run at once.
#[derive(Debug, Default)]
struct Crowded {
    inner: Instant,
    now: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait]
impl Executor for Crowded {
    fn name(&self) -> &str {
        "crowded"
    }

    async fn run(&self, job: JobSpec, cancel: &CancellationToken) -> Result<JobOutcome, SandboxError> {
        self.most
            .fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // Long enough for others to come in, were they let.
        tokio::time::sleep(Duration::from_millis(250)).await;
        let outcome = self.inner.run(job, cancel).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    async fn capabilities(&self) -> Result<CapabilityReport, SandboxError> {
        self.inner.capabilities().await
    }

    async fn isolation(&self) -> Result<IsolationReport, SandboxError> {
        self.inner.isolation().await
    }

    async fn sweep(&self) -> Result<usize, SandboxError> {
        self.inner.sweep().await
    }
}

/// RD-Agent #1327: loops without a bound used up the memory. rllm #269 and SkyRL #9: so many starts at once that all of them
/// timed out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_workers_start_no_more_jobs_than_are_allowed() {
    let crowded = Arc::new(Crowded::default());
    let sandbox = Sandbox {
        executor: Arc::clone(&crowded) as _,
        evaluator: Arc::new(Instant::default()),
    };
    let bed = Bed::with([Reply::Seeded], sandbox).set("sandbox.concurrency=2");
    let engine = bed.create().await;
    let client = session(&engine);
    let sql = "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 12, concurrency => 12, seed => 1)";
    rows(&client, sql).await.unwrap();
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 12);
    assert_eq!(crowded.most.load(Ordering::SeqCst), 2);
}

/// RD-Agent #312: without Docker nothing ran, and nothing else was offered. The runner without isolation is asked for by name,
/// and its rows say so.
#[test]
fn a_program_run_without_isolation_is_marked_in_its_row() {
    let gym = Gym::new();
    let rows: serde_json::Value =
        serde_json::from_str(&gym.exec(&predicts("2 * x", ""), &["--sandbox", "process"]).ok()).unwrap();
    assert_eq!(
        (&rows[0]["backend"], &rows[0]["score"]),
        (&"process".into(), &0.0.into())
    );
    let isolation: serde_json::Value = serde_json::from_str(rows[0]["isolation"].as_str().unwrap()).unwrap();
    assert_eq!(isolation["grade"], "unsandboxed");
    assert_eq!(
        gym.exec("print(1)", &["--sandbox", "podman"]).fails(1),
        "error: unknown sandbox 'podman': the sandboxes are docker, native, process, remote\n"
    );
}

/// cap-evolve PR #197: a program edited its own scorer. tlaps-bench PR #13: the reference result lay where the agent could
/// change it. The program knows where both lie; without isolation the attack works, so it proves something.
#[test]
fn a_candidate_that_edits_the_scorer_changes_nothing() {
    let gym = Gym::new();
    let metric = gym.package().join("utils/metric.py");
    let answers = gym.package().join("validation/private/test_answer.csv");
    let attack = format!(
        "for path, text in [({metric:?}, 'import math\\nclass AMetrics:\\n    def evaluate(self, y_true, y_pred):\\n        return -1.0\\n'),
                   ({answers:?}, 'id,y\\n100,0\\n')]:
    try:
        open(path, 'a').write('\\n')
        open(path, 'w').write(text)
        print('changed', path)
    except OSError as error:
        print('refused', error)"
    );
    let kept = [&metric, &answers].map(|path| std::fs::read(path).unwrap());
    let outcome = gym.exec(&predicts("2 * x + 1", &attack), &[]);
    assert!(outcome.stderr.matches("refused").count() == 2, "{}", outcome.stderr);
    let rows: serde_json::Value = serde_json::from_str(&outcome.ok()).unwrap();
    assert_eq!(rows[0]["score"], 1.0);
    assert_eq!([&metric, &answers].map(|path| std::fs::read(path).unwrap()), kept);
    // The row names the metric that scored it.
    let rows = gym.rows("SELECT metric_hash FROM sandbox.jobs");
    assert_eq!(rows[0]["metric_hash"], sha256_hex(&kept[0]).as_str());
    gym.exec(&predicts("2 * x + 1", &attack), &["--sandbox", "process"]);
    assert_ne!(std::fs::read(&metric).unwrap(), kept[0], "the attack proves nothing");
}

/// adk-samples #742: a task of one's own could not be run, for names and paths of the samples were fixed in the code.
/// RD-Agent #1064: a path that the program could not handle ended it without a word.
#[test]
fn a_task_in_any_folder_can_be_added_and_run() {
    let place = Place::with_store();
    let folder = place.path().join("My tasks/Ünusual folder (v2)");
    write_package(&folder);
    let with_python = |arguments: &[&str]| finish(place.command(arguments).env("CLADE_PYTHON", python()), "");
    let error = with_python(&["task", "add", &folder.to_string_lossy()]).fails(1);
    assert!(error.contains("task.toml"), "it says what to do: {error}");
    std::fs::write(folder.join("task.toml"), "id = \"my-own\"\n").unwrap();
    with_python(&["task", "add", &folder.to_string_lossy()]).ok();
    place.write("program of mine.py", &predicts("2 * x", ""));
    let outcome = with_python(&["exec", "program of mine.py", "--task", "my-own", "--format", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&outcome.ok()).unwrap();
    assert_eq!(
        (&rows[0]["task_id"], &rows[0]["score"]),
        (&"my-own".into(), &0.0.into())
    );
}
