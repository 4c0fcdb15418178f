//! The store beside many readers and writers, odd bytes, odd clocks.

use clade::engine::{OpenMode, SessionOptions};

use super::bed::{Bed, Reply};
use super::gyms::{Gym, predicts};
use crate::cli::fixture::{Place, finish};
use crate::engine::fixture::{number, rows, session, table};

/// optuna #820, #4994 and #6036, ShinkaEvolve's changelog: "database is locked" with many workers. optuna-dashboard #545:
/// looking at a study crashed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_workers_and_a_reader_lock_nobody_out() {
    let bed = Bed::new([Reply::Seeded])
        .set("sandbox.concurrency=32")
        .set("store.flush_rows=20");
    let engine = bed.create().await;
    let reader = bed.open(OpenMode::ReadOnly).await;
    let client = reader.session(&SessionOptions {
        read_only: true,
        run: None,
    });
    let writer = session(&engine);
    let search = tokio::spawn(async move {
        let sql = "EVOLVE TASK 'toy' WITH (steps => 160, workers => 32, seed => 1, drafts => 64, id => 'r')";
        rows(&writer, sql).await.map(|_| ())
    });
    let mut looks = 0;
    let ended = "SELECT count(*) FROM evo.runs WHERE status <> 'running'";
    while number(&client, ended).await == 0 {
        let best = table(
            &client,
            "SELECT operator, avg(score), count(*) FROM evo.nodes GROUP BY 1",
        )
        .await;
        assert!(!best.starts_with("error"), "{best}");
        looks += 1;
    }
    search.await.unwrap().unwrap();
    assert!(looks > 0, "nobody looked while they worked");
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 160);
    let tried_again = "SELECT count(*) FROM evo.attempts WHERE tries > 1 OR status <> 'done'";
    assert_eq!(number(&client, tried_again).await, 0);
}

/// autogen #1745, RD-Agent #939, ShinkaEvolve 0.0.4: output that was no text of the machine's encoding broke the reader.
#[test]
fn output_that_is_no_text_breaks_nothing() {
    let gym = Gym::new();
    let odd = r"
import sys
out = sys.stdout.buffer
out.write(b'\xb3\x9e \xed\xa0\x80 \x00 \x1b[31mred\x1b[0m\n')
out.write(b'x' * 10_000_000 + b'\n')
for percent in range(0, 101, 10):
    out.write(b'\r%d %%' % percent)
out.write(b'\nthe end\n')
";
    let outcome = gym.exec(&predicts("2 * x", odd), &[]);
    // A terminal obeys nothing of it.
    assert!(outcome.stderr.contains("the end"), "{}", outcome.stderr);
    let is_harmless = |c: char| !c.is_control() || c == '\n' || c == '\t';
    assert!(outcome.stderr.chars().all(is_harmless), "{:?}", outcome.stderr);
    outcome.ok();
    let sql = "SELECT status, score, stdout_bytes, stdout_head, stdout_tail, stdout_hash FROM sandbox.jobs";
    let job = &gym.rows(sql)[0];
    assert_eq!((&job["status"], &job["score"]), (&"success".into(), &0.0.into()));
    // 22 in the first line, the long line, 55 of progress, 9 at the end.
    assert_eq!(job["stdout_bytes"], 22 + 10_000_001 + 55 + 9);
    let head = job["stdout_head"].as_str().unwrap();
    assert!(head.starts_with("\u{fffd}\u{fffd} ") && head.contains('\0'), "{head:?}");
    assert!(job["stdout_tail"].as_str().unwrap().ends_with("the end\n"));
    // The bytes themselves are kept.
    let hash = job["stdout_hash"].as_str().unwrap();
    let blob = gym.blob(hash);
    assert!(
        blob.starts_with(b"\xb3\x9e \xed\xa0\x80 \0 \x1b[31mred"),
        "{:?}",
        &blob[..40]
    );
}

/// RD-Agent: stamps of one log were in the machine's zone, of another in Shanghai's.
#[test]
fn times_do_not_depend_on_the_zone_of_the_process() {
    let place = Place::with_history();
    let shown = |zone: &str, format: &str| {
        let sql = "SELECT created_at, finished_at FROM evo.runs";
        let mut command = place.command(["sql", "-c", sql, "--format", format]);
        finish(command.env("TZ", zone), "").ok()
    };
    for format in ["table", "csv", "json"] {
        let here = shown("UTC", format);
        assert!(here.contains('Z'), "it names its zone: {here}");
        for zone in ["Asia/Shanghai", "America/New_York"] {
            assert_eq!(shown(zone, format), here, "{zone}");
        }
    }
    // A row that is written in another zone is of the same moment.
    let before = chrono::Utc::now().timestamp();
    let sql = "CREATE POLICY p AS SELECT 'draft' AS operator, CAST(NULL AS VARCHAR) AS parent_id";
    finish(place.command(["sql", "-c", sql]).env("TZ", "Asia/Shanghai"), "").ok();
    let sql = "SELECT CAST(to_unixtime(created_at) AS BIGINT) AS n FROM system.policies WHERE name = 'p'";
    let text = place.run(["sql", "-c", sql, "--format", "csv"]).ok();
    let at: i64 = text.lines().nth(1).unwrap().parse().unwrap();
    assert!((before..=before + 60).contains(&at), "{at} is not {before}");
}

/// ShinkaEvolve #23: the file of the results was named "None".
#[test]
fn no_file_is_named_after_a_missing_value() {
    let place = Place::with_history();
    place.run(["plot"]).ok();
    for arguments in [
        &["export", "evo.nodes"][..],
        &["export", "evo.nodes", "--out", ""],
        &["plot", "--out", ""],
        &["init", "--store", ""],
    ] {
        assert_ne!(place.run(arguments).code, 0, "{arguments:?}");
    }
    let mut files: Vec<String> = std::fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["clade-store", "run.svg"]);
}
