//! Exit codes, and errors that say what to do.

use std::io::Read;
use std::process::Stdio;

use super::fixture::Place;

#[test]
fn wrong_usage_is_2_and_a_failure_is_1() {
    let place = Place::new();
    for arguments in [
        &["nope"][..],
        &[],
        &["sql", "--format", "xml"],
        &["show"],
        &["sql", "--set", "steps"],
        &["exec", "p.py", "--task", "t", "--timeout", "nan"],
        &["exec", "p.py", "--task", "t", "--timeout", "-1"],
    ] {
        place.run(arguments).fails(2);
    }
    let error = place.run(["sql", "-c", "SELECT 1"]).fails(1);
    assert_eq!(
        error,
        "error: there is no store at clade-store: make one with `clade init`, or name another with --store or CLADE_STORE\n"
    );
    place.run(["--version"]).ok();
}

#[test]
fn a_store_is_made_once() {
    let place = Place::new();
    let made = place.run(["init", "--store", "a store"]);
    assert!(made.stderr.contains("made the store a store"), "{}", made.stderr);
    assert_eq!(made.ok(), "");
    assert!(place.path().join("a store/store.toml").exists());
    place.run(["init", "--store", "a store"]).fails(1);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = Place::with_store();
    let sql = "SELECT value FROM generate_series(1, 1000000)";
    let mut child = place
        .command(["sql", "-c", sql, "--format", "csv"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn the_doctor_names_what_is_missing() {
    let place = Place::new();
    let outcome = place.run([
        "doctor",
        "--set",
        "python.interpreter=/nowhere/python",
        "--format",
        "json",
    ]);
    let checks: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let python = checks
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["check"] == "python")
        .unwrap();
    assert_eq!(python["result"], "failed");
    assert!(python["detail"].as_str().unwrap().contains("CLADE_PYTHON"), "{python}");
    assert!(outcome.fails(1).contains("checks failed"));
}

#[test]
fn a_policy_is_one_query() {
    let place = Place::with_store();
    let two = "SELECT 'draft' AS operator, CAST(NULL AS TEXT) AS parent_id; DROP POLICY other";
    let error = place.run(["policy", "create", "mine", two]).fails(1);
    assert!(
        error.contains("a policy is one query, and this text holds 2 statements"),
        "{error}"
    );
}
