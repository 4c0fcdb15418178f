//! Programs that do not end, or end badly: real ones, in the native sandbox.

use std::path::Path;
use std::time::{Duration, Instant};

use super::bed::{NativeBed, Reply, submits};
use crate::engine::fixture::{number, rows, session, table};
use crate::sandbox::support::processes_with;

/// Seconds between SIGTERM and SIGKILL, as docs/sandbox.md says.
const GRACE: f64 = 5.0;

/// OpenEvolve #399 and #79: a program without an end kept its thread for ever, and one ran 40,497 s under a limit of 600.
/// ShinkaEvolve #98: a hung evaluation kept its run from ending.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_that_never_ends_times_out_and_the_search_goes_on() {
    let endless = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True:\n    pass\n";
    let bed = NativeBed::new([
        submits(0.5, "# 1"),
        Reply::Program(endless.to_owned()),
        submits(0.75, "# 3"),
    ]);
    let engine = bed.bed.create().await;
    let client = session(&engine);
    let sql =
        "EVOLVE TASK 'toy' WITH (steps => 3, workers => 1, seed => 1, timeout => '3s', grade => false, id => 'r')";
    rows(&client, sql).await.unwrap();
    let timed_out = "SELECT count(*) FROM evo.nodes n JOIN sandbox.jobs j ON j.job_id = n.job_id
                     WHERE n.step = 2 AND n.status = 'timeout' AND n.is_buggy AND j.cause = 'wall_limit'";
    assert_eq!(number(&client, timed_out).await, 1);
    let ended = "SELECT count(*) FROM evo.runs WHERE status = 'finished' AND best_step = 3";
    assert_eq!(number(&client, ended).await, 1);
    let limit = 3.0 + GRACE;
    let over = format!("SELECT count(*) FROM sandbox.jobs WHERE wall_seconds > {limit}");
    assert_eq!(number(&client, &over).await, 0);
    drop(client);
    bed.finish(engine).await;
}

/// AIDE: a program that was killed, by itself or for its memory, ended the whole run with "REPL child process died
/// unexpectedly".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_that_kills_itself_ends_as_a_row_and_the_search_goes_on() {
    let bed = NativeBed::new([
        Reply::Program("import os\nos.kill(os.getpid(), 9)\n".to_owned()),
        Reply::Program("import os\nos.kill(os.getpid(), 11)\n".to_owned()),
        Reply::Program("blocks = []\nwhile True:\n    blocks.append(bytearray(16 << 20))\n".to_owned()),
        submits(0.5, ""),
    ])
    .set("sandbox.memory=256MiB");
    let engine = bed.bed.create().await;
    let client = session(&engine);
    let sql = "EVOLVE TASK 'toy' WITH (steps => 4, workers => 1, seed => 1, grade => false, id => 'r')";
    rows(&client, sql).await.unwrap();
    let failed =
        "SELECT n.step, n.status, n.error_class, j.signal FROM evo.nodes n JOIN sandbox.jobs j ON j.job_id = n.job_id
                  WHERE n.step < 3 ORDER BY n.step";
    assert_eq!(
        table(&client, failed).await,
        "+------+----------------------+-------------+--------+
| step | status               | error_class | signal |
+------+----------------------+-------------+--------+
| 1    | code_execution_error | candidate   | 9      |
| 2    | code_execution_error | candidate   | 11     |
+------+----------------------+-------------+--------+"
    );
    // Python notices the limit before the kernel does, or not.
    let memory = "SELECT count(*) FROM evo.nodes WHERE step = 3 AND status = 'code_execution_error' AND error_signature IN ('oom', 'memory_error')";
    let signature = table(&client, "SELECT error_signature, error FROM evo.nodes WHERE step = 3").await;
    assert_eq!(number(&client, memory).await, 1, "{signature}");
    let ended = "SELECT count(*) FROM evo.runs WHERE status = 'finished' AND best_step = 4";
    assert_eq!(number(&client, ended).await, 1);
    drop(client);
    bed.finish(engine).await;
}

/// A program that carries a mark, with a child that has left its process group, and that never ends.
fn lingering(root: &Path) -> Reply {
    let root = root.display();
    Reply::Program(format!(
        "import os, sys
os.environ['CLADE_TEST_MARK'] = '{root}'
if os.fork() == 0:
    os.setsid()
os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(1000000)'])
"
    ))
}

/// RD-Agent PR #1234: a loop that was cancelled left its processes running.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_run_leaves_no_process() {
    let marks = tempfile::tempdir().unwrap();
    let bed = NativeBed::new([lingering(marks.path())]);
    let mark = format!("CLADE_TEST_MARK={}", marks.path().display());
    let engine = bed.bed.create().await;
    let client = session(&engine);
    rows(
        &client,
        "EVOLVE TASK 'toy' WITH (steps => 2, workers => 1, seed => 1, id => 'r') ASYNC",
    )
    .await
    .unwrap();
    let begin = Instant::now();
    while processes_with(&mark).len() < 2 {
        assert!(begin.elapsed() < Duration::from_secs(60), "the program did not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    rows(&client, "CANCEL RUN 'r'").await.unwrap();
    engine.close().await;
    let begin = Instant::now();
    while !processes_with(&mark).is_empty() {
        assert!(
            begin.elapsed() < Duration::from_secs_f64(GRACE),
            "processes outlive their run"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let ended = "SELECT count(*) FROM evo.runs WHERE status = 'cancelled'";
    assert_eq!(number(&client, ended).await, 1);
    drop(client);
    bed.finish(engine).await;
}

/// ShinkaEvolve's changelog: the clock of an evaluation started when the job was submitted, so a full queue timed jobs out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_a_free_slot_is_no_part_of_the_time_limit() {
    let naps = (0..6).map(|number| submits(0.5, &format!("# {number}\nimport time\ntime.sleep(0.8)")));
    let bed = NativeBed::new(naps).set("sandbox.concurrency=1");
    let engine = bed.bed.create().await;
    let client = session(&engine);
    // One after the other they take longer than the limit of each.
    let sql = "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 6, concurrency => 6, seed => 1, timeout => '4s')";
    rows(&client, sql).await.unwrap();
    let good = "SELECT count(*) FROM evo.nodes WHERE status = 'success'";
    assert_eq!(number(&client, good).await, 6);
    let apart = "SELECT count(*) FROM sandbox.jobs
                 WHERE queued_at <= started_at AND started_at < finished_at AND wall_seconds BETWEEN 0.8 AND 4.0";
    assert_eq!(number(&client, apart).await, 6);
    let waited = "SELECT count(*) FROM sandbox.jobs j JOIN evo.attempts a ON a.attempt_id = j.attempt_id
                  WHERE arrow_cast(j.started_at, 'Int64') - arrow_cast(a.queued_at, 'Int64') > 4000000";
    let times = table(
        &client,
        "SELECT queued_at, started_at, finished_at FROM sandbox.jobs ORDER BY 2",
    )
    .await;
    assert!(number(&client, waited).await >= 1, "nobody waited long enough: {times}");
    drop(client);
    bed.finish(engine).await;
}
