//! Bad input, and what a user reads of it on the command line. The messages are in `snapshots`.

use super::gyms::{Gym, predicts};
use super::mount::Mount;
use crate::cli::fixture::{Outcome, Place};

/// What the program said of a command that must fail.
#[track_caller]
fn refused(place: &Place, arguments: &[&str]) -> String {
    place.scrub(&place.run(arguments).fails(1))
}

fn sql(place: &Place, text: &str) -> String {
    refused(place, &["sql", "-c", text])
}

#[test]
fn wrong_columns_and_unknown_parents_are_named() {
    let place = Place::with_history();
    insta::assert_snapshot!(
        "missing_column",
        sql(&place, "SELECT node_id FROM evo.nodes EXPAND WITH improve")
    );
    let extra = "SELECT node_id AS parent_id, score FROM evo.nodes EXPAND WITH improve";
    insta::assert_snapshot!("unknown_column", sql(&place, extra));
    let typed = "SELECT step AS parent_id FROM evo.nodes EXPAND WITH improve";
    insta::assert_snapshot!("column_of_another_type", sql(&place, typed));
    insta::assert_snapshot!(
        "unknown_parent",
        sql(&place, "SELECT 'nope' AS parent_id EXPAND WITH improve")
    );
    insta::assert_snapshot!(
        "parent_without_an_id",
        sql(&place, "SELECT CAST(NULL AS VARCHAR) AS parent_id EXPAND WITH improve")
    );
    let rows = place.run(["sql", "-c", "SELECT count(*) AS n FROM evo.attempts", "--format", "csv"]);
    assert_eq!(rows.ok(), "n\n0\n", "nothing was planned");
}

#[test]
fn policies_may_neither_see_test_scores_nor_throw_dice() {
    let place = Place::with_history();
    let create = |query: &str| refused(&place, &["policy", "create", "mine", query]);
    let peek = "SELECT 'improve' AS operator, node_id AS parent_id, score AS weight FROM bench.grades";
    insta::assert_snapshot!("policy_reads_bench", create(peek));
    let hidden = "SELECT 'improve' AS operator, n.node_id AS parent_id FROM run.nodes n CROSS JOIN bench.medals";
    insta::assert_snapshot!("policy_reads_a_view_of_bench", create(hidden));
    let dice = "SELECT 'improve' AS operator, node_id AS parent_id, random() AS weight FROM run.candidates";
    insta::assert_snapshot!("policy_is_volatile", create(dice));
    let now = "SELECT 'improve' AS operator, node_id AS parent_id FROM run.nodes WHERE finished_at < now()";
    insta::assert_snapshot!("policy_reads_the_clock", create(now));
    let list = place.run(["policy", "list", "--format", "csv"]).ok();
    assert!(!list.contains("mine"), "{list}");
}

/// OpenRSI's tests: a damaged file of one task must not end a summary of all.
#[test]
fn a_torn_file_is_named_and_ends_no_query_of_others() {
    let place = Place::with_history();
    place.run(["sql", "-c", "CHECKPOINT"]).ok();
    let folder = place.path().join("clade-store/tables/evo/nodes");
    let file = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|ending| ending == "parquet"))
        .unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let count = |table: &str| {
        let sql = format!("SELECT count(*) AS n FROM {table}");
        place.run(["sql", "-c", &sql, "--format", "csv"]).ok()
    };
    assert_eq!(
        (count("evo.nodes").as_str(), count("evo.edges").as_str()),
        ("n\n0\n", "n\n4\n")
    );
    let problems = "SELECT component, severity, message FROM system.problems";
    let shown = place.run(["sql", "-c", problems, "--format", "json"]).ok();
    let problems: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    insta::assert_snapshot!(
        "torn_file",
        format!("{:#}", problems)
            .replace(&name, "FILE.parquet")
            .replace(&bytes.len().to_string(), "BYTES")
            .replace(&(bytes.len() / 2).to_string(), "HALF")
    );
    // Restored from a copy it is read again.
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(count("evo.nodes"), "n\n4\n");
}

const POLICY: &str = "CREATE POLICY p AS SELECT 'draft' AS operator, CAST(NULL AS VARCHAR) AS parent_id";

/// A command on the store of a small file system.
fn on(place: &Place, mount: &Mount, arguments: &[&str]) -> Outcome {
    let store = mount.path().join("s").to_string_lossy().into_owned();
    place.run(arguments.iter().copied().chain(["--store", &store]))
}

fn without_path(mount: &Mount, text: &str) -> String {
    text.replace(&*mount.path().to_string_lossy(), "DISK")
}

#[test]
fn a_full_disk_is_named_and_what_was_there_can_be_read() {
    let Some(mount) = Mount::new("16m") else { return };
    let place = Place::new();
    on(&place, &mount, &["init"]).ok();
    on(&place, &mount, &["sql", "-c", &POLICY.replace(" p ", " kept ")]).ok();
    // It fails with the disk full to the last byte.
    let _ = std::fs::write(mount.path().join("filler"), vec![1; 32 << 20]);
    let policy = format!("{POLICY} WHERE '{}' = ''", "x".repeat(100_000));
    let error = on(&place, &mount, &["sql", "-c", &policy]).fails(1);
    insta::assert_snapshot!("full_disk", without_path(&mount, &error));
    let list = on(&place, &mount, &["policy", "list", "--format", "csv"]).ok();
    assert!(list.contains("kept,") && !list.contains("\np,"), "{list}");
    std::fs::remove_file(mount.path().join("filler")).unwrap();
    on(&place, &mount, &["sql", "-c", &policy]).ok();
}

#[test]
fn a_read_only_store_is_read_and_not_written() {
    let Some(mount) = Mount::new("32m") else { return };
    let place = Place::new();
    on(&place, &mount, &["init"]).ok();
    on(&place, &mount, &["sql", "-c", POLICY]).ok();
    mount.remount("ro");
    let error = on(&place, &mount, &["sql", "-c", "SELECT 1"]).fails(1);
    insta::assert_snapshot!("read_only_disk", without_path(&mount, &error));
    let error = on(&place, &mount, &["sql", "--read-only", "-c", "DROP POLICY p"]).fails(1);
    insta::assert_snapshot!("read_only_session", without_path(&mount, &error));
    let sql = [
        "sql",
        "--read-only",
        "-c",
        "SELECT name FROM system.policies WHERE name = 'p'",
        "--format",
        "csv",
    ];
    assert_eq!(on(&place, &mount, &sql).ok(), "name\np\n");
    mount.remount("rw");
}

/// OpenEvolve #88: a checkpoint with a field that the reader did not know ended it with a TypeError.
#[test]
fn a_store_of_a_newer_version_is_refused_in_plain_words() {
    let place = Place::with_store();
    let marker = place.path().join("clade-store/store.toml");
    let text = std::fs::read_to_string(&marker).unwrap();
    let format = text.lines().find(|line| line.starts_with("format = ")).unwrap();
    std::fs::write(&marker, text.replace(format, "format = 999")).unwrap();
    for arguments in [&["sql", "-c", "SELECT 1"][..], &["runs"]] {
        let error = refused(&place, arguments);
        let version = format.rsplit(' ').next().unwrap();
        insta::assert_snapshot!(
            "newer_version",
            error.replace(&format!("up to format {version}:"), "up to format N:")
        );
    }
}

/// inspect_ai #836: the output of a program was held in memory, 20 GB of it.
#[test]
fn ten_gigabytes_of_output_are_counted_and_not_kept() {
    let gym = Gym::new();
    let flood = "
block = b'x' * (16 << 20)
for _ in range(640):
    os.write(1, block)
print('the end')";
    let outcome = gym.exec(&predicts("2 * x", flood), &["--timeout", "600"]);
    assert!(outcome.stderr.contains("the end"), "{}", outcome.stderr);
    assert!(
        outcome.stderr.len() < 64 << 10,
        "{} bytes are shown",
        outcome.stderr.len()
    );
    let rows: serde_json::Value = serde_json::from_str(&outcome.ok()).unwrap();
    assert_eq!(
        (&rows[0]["score"], &rows[0]["stdout_bytes"]),
        (&0.0.into(), &(10_737_418_240_i64 + 8).into())
    );
    let kept = gym.rows("SELECT logs_truncated, stdout_hash FROM sandbox.jobs");
    assert_eq!(kept[0]["logs_truncated"], true);
    assert!(gym.blob(kept[0]["stdout_hash"].as_str().unwrap()).len() < 2 << 20);
}

/// mle-bench's grader rounded a score of NaN and called the submission valid.
#[test]
fn a_score_that_is_no_number_is_none() {
    let gym = Gym::new();
    let failed = |code: &str| {
        let outcome = gym.exec(code, &[]);
        let rows: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(
            (&rows[0]["status"], &rows[0]["score"]),
            (&"scoring_failed".into(), &serde_json::Value::Null)
        );
        outcome.fails(1)
    };
    insta::assert_snapshot!("score_is_nan", failed(&predicts("float(\"nan\")", "")));
    insta::assert_snapshot!("score_is_infinite", failed(&predicts("float(\"inf\")", "")));
    let columns = predicts(
        "x",
        "text = open('submission.csv').read()\nopen('submission.csv', 'w').write(text.replace('y', 'z'))",
    );
    insta::assert_snapshot!("submission_has_wrong_columns", failed(&columns));
    let file = gym.place.write("nan.csv", "id,y\n100,\n101,1\n");
    let graded = gym.run(&["grade", &file.to_string_lossy(), "--task", "double", "--format", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&graded.stdout).unwrap();
    assert_eq!(
        (&rows[0]["valid"], &rows[0]["score"]),
        (&false.into(), &serde_json::Value::Null)
    );
}
