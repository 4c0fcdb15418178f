//! Exit codes, and errors that say what to do.

use std::io::Read;
use std::process::Stdio;

use super::fixture::{Place, finish};

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
        &["evolve", "t", "--id", "last"],
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
    let again = place.run(["init", "--store", "a store"]).fails(1);
    assert_eq!(
        again,
        "error: a store already exists at a store: open it, or choose another directory\n"
    );
}

#[test]
fn a_folder_of_others_becomes_no_store() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("thesis")).unwrap();
    let chapter = place.write("thesis/chapter.tex", "1");
    for command in [&["init"][..], &["quickstart"]] {
        let error = place.run(command.iter().chain(&["--store", "thesis"])).fails(1);
        assert_eq!(
            error,
            "error: thesis is no store and not empty, it holds chapter.tex: choose a new or an empty folder with --store or \
             CLADE_STORE\n"
        );
    }
    let error = place.run(["init", "--store", "thesis/chapter.tex"]).fails(1);
    assert!(
        error.contains("thesis/chapter.tex is a file, and a store is a folder"),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(place.path().join("thesis")).unwrap().count(), 1);
    std::fs::remove_file(chapter).unwrap();
    place.run(["init", "--store", "thesis"]).ok();
}

#[test]
fn a_damaged_database_is_named() {
    let place = Place::with_store();
    let database = place.path().join("clade-store/clade.sqlite");
    for ending in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(place.path().join(format!("clade-store/clade.sqlite{ending}")));
    }
    std::fs::write(
        &database,
        "no database at all, but long enough to be read as one. ".repeat(100),
    )
    .unwrap();
    for arguments in [&["sql", "-c", "SELECT 1"][..], &["runs"]] {
        let error = place.run(arguments).fails(1);
        assert!(
            error.starts_with("error: the store's database clade-store/clade.sqlite is damaged: ")
                && error.contains("file is not a database")
                && error.ends_with("Restore the file (and its -wal) from a backup\n"),
            "{error}"
        );
    }
}

/// Python's runtime opens nothing in the place of a closed descriptor, Rust's opens /dev/null: rows were lost without a word.
#[test]
fn output_that_is_lost_is_a_failure() {
    let place = Place::with_store();
    let program = env!("CARGO_BIN_EXE_clade");
    let run = |line: &str| finish(&mut place.shell(&format!("'{program}' {line}")), "");
    for format in ["table", "json", "csv", "arrow"] {
        let error = run(&format!("sql -c 'SELECT 1' --format {format} >&-")).fails(1);
        assert!(error.contains("standard output is closed"), "{format}: {error}");
    }
    run("policy list >&-").fails(1);
    // Without output nothing is lost.
    run("sql -c 'SET clade.model = evolver' >&-").ok();
    run("init --store other >&-").ok();
    run("sql -c 'SELECT 1' >/dev/null").ok();
    let error = run("sql -c 'SELECT 1' >/dev/full").fails(1);
    assert!(error.contains("cannot write the result"), "{error}");
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

/// What the doctor found, without what it says of this machine.
fn problems(place: &Place, arguments: &[&str]) -> (Vec<String>, String) {
    let format = ["--format", "json"];
    let outcome = place.run(["doctor"].iter().chain(arguments).chain(&format));
    let checks: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let checks = checks.as_array().unwrap().iter();
    let names = checks.map(|check| check["check"].as_str().unwrap().to_owned());
    (
        names.filter(|name| name.starts_with("problem")).collect(),
        outcome.stderr,
    )
}

#[test]
fn problems_that_are_dealt_with_are_acknowledged() {
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
    let read = || place.run(["sql", "-c", "SELECT count(*) FROM evo.nodes"]).ok();
    read();
    let (found, said) = problems(&place, &[]);
    assert_eq!(found, ["problem: cold"]);
    assert!(said.contains("clade doctor --acknowledge drops them"), "{said}");

    let (found, said) = problems(&place, &["--acknowledge"]);
    assert_eq!(found, [] as [&str; 0]);
    assert!(said.contains("1 problem taken as dealt with"), "{said}");
    // It was not: the file is still torn, and the next process that reads it notes that.
    read();
    assert_eq!(problems(&place, &[]).0, ["problem: cold"]);

    std::fs::write(&file, &bytes).unwrap();
    problems(&place, &["--acknowledge"]);
    read();
    assert_eq!(problems(&place, &[]).0, [] as [&str; 0]);
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
