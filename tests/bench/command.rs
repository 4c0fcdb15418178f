//! `clade bench` and profiles from the command line.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::cli::fixture::{Outcome, Place, finish};
use crate::cli::tasks::{TASK, package, python, with_python};

/// A place with the example task.
fn with_task() -> Place {
    let place = Place::with_store();
    let folder = package(&place);
    with_python(&place, ["task", "add", &folder.to_string_lossy()]).ok();
    place
}

fn csv(place: &Place, sql: &str) -> String {
    place.run(["sql", "-c", sql, "--format", "csv"]).ok()
}

#[test]
fn a_suite_is_run_shown_and_resumed() {
    let place = with_task();
    place.write(
        "mine.toml",
        "title = 'Mine'\ntasks = ['breast-cancer', 'absent']\nrepeats = 2\n",
    );
    let arguments = [
        "bench",
        "run",
        "--suite",
        "mine.toml",
        "--name",
        "s",
        "--profile",
        "smoke",
        "--steps",
        "1",
        "--max-workers",
        "4",
        "--format",
        "csv",
    ];
    let ran = with_python(&place, arguments);
    for part in [
        "suite s",
        "breast-cancer #1: begins as run s.breast-cancer.1",
        "breast-cancer #2: finished after 1 steps",
        "absent #1: the task is not imported",
        "2 searches left out, because the task is not imported",
    ] {
        assert!(ran.stderr.contains(part), "{part} is not in\n{}", ran.stderr);
    }
    let rows = ran.ok();
    assert_eq!(rows.lines().count(), 5, "{rows}");
    let options = csv(&place, "SELECT DISTINCT options FROM evo.runs");
    for part in [
        "timeout_seconds\"\":120.0",
        "max_wall\"\":900.0",
        "steps\"\":1,",
        "debug_depth\"\":1",
    ] {
        assert!(options.contains(part), "{part} is not in {options}");
    }
    let listed = place.run(["bench", "list", "--format", "csv"]).ok();
    assert!(
        listed.contains("s,finished,openmle_evo,evolver,2,2,4,2,0,2,"),
        "{listed}"
    );
    let shown = place.run(["bench", "show", "s"]).ok();
    for part in [
        "2 tasks, 2 times each, with openmle_evo and evolver",
        "2 of 4 searches, 0 failed, 2 without their task",
        "100.0 ± 0.0 %",
        " ± ",
        "task_missing",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    let page = place.run(["report", "s", "--out", "-"]).ok();
    for part in [
        "2 finished",
        "2 without the task",
        "Best so far on breast-cancer",
        "id=\"r2\"",
    ] {
        assert!(page.contains(part), "{part} is not in the page");
    }
    let by_task = place.run(["bench", "show", "s", "--format", "json"]).ok();
    let by_task: serde_json::Value = serde_json::from_str(&by_task).unwrap();
    assert_eq!(by_task[0]["runs"], 2);

    // It began with a profile, so it goes on with it only.
    let ended = with_python(&place, ["bench", "resume", "s", "--profile", "smoke"]).fails(1);
    assert!(
        ended.contains("not imported: absent; clade task add imports them"),
        "{ended}"
    );
    std::fs::rename(
        place.path().join("packages").join(TASK),
        place.path().join("packages/absent"),
    )
    .unwrap();
    let late = place.path().join("packages/absent");
    with_python(&place, ["task", "add", &late.to_string_lossy()]).ok();
    let other = with_python(&place, ["bench", "resume", "s"]).fails(1);
    for part in [
        "suite s is not resumed",
        "timeout_seconds was 120.0 and is 3600.0 now",
        "max_wall was 900.0 and is null now",
    ] {
        assert!(other.contains(part), "{part} is not in\n{other}");
    }
    let resumed = with_python(&place, ["bench", "resume", "s", "--profile", "smoke"]);
    assert!(resumed.stderr.contains("absent #2: finished"), "{}", resumed.stderr);
    resumed.ok();
    assert_eq!(
        csv(&place, "SELECT finished, missing FROM bench.suite_report"),
        "finished,missing\n4,0\n"
    );
}

/// What is in the store for good: nothing of it may be made twice, or be another after the suite has gone on.
const DONE: &str = "SELECT concat('node ', node_id, ' ', arrow_cast(finished_at, 'Int64')) AS done FROM evo.nodes
    UNION ALL SELECT concat('request ', generation_id, ' ', arrow_cast(finished_at, 'Int64')) FROM evo.generations
    UNION ALL SELECT concat('job ', job_id, ' ', arrow_cast(finished_at, 'Int64')) FROM sandbox.jobs
    UNION ALL SELECT concat('grade ', submission_id, ' ', arrow_cast(graded_at, 'Int64')) FROM bench.grades";

#[test]
fn a_killed_suite_goes_on_and_repeats_nothing() {
    let place = with_task();
    let mut command = place.command([
        "bench",
        "run",
        "--tasks",
        "breast-cancer",
        "--repeats",
        "2",
        "--name",
        "s",
        "--profile",
        "smoke",
        "--workers",
        "1",
    ]);
    let mut child = command
        .env("CLADE_PYTHON", python())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(told.any(|line| line.contains("breast-cancer #2: begins")));
    // Killed amid the second search, with the first one done.
    let nodes = "SELECT count(*) AS n FROM evo.nodes WHERE run_id = 's.breast-cancer.2'";
    while csv(&place, nodes) == "n\n0\n" {}
    child.kill().unwrap();
    child.wait().unwrap();
    let lines = || -> BTreeSet<String> { csv(&place, DONE).lines().map(str::to_owned).collect() };
    let before = lines();
    let listed = place.run(["bench", "list", "--format", "csv"]).ok();
    assert!(listed.contains("s,interrupted,"), "{listed}");

    let resumed = with_python(&place, ["bench", "resume", "s", "--profile", "smoke"]);
    for part in ["breast-cancer #2: goes on", "breast-cancer #2: finished after 6 steps"] {
        assert!(resumed.stderr.contains(part), "{part} is not in\n{}", resumed.stderr);
    }
    assert!(!resumed.stderr.contains("breast-cancer #1"), "{}", resumed.stderr);
    resumed.ok();
    let after = lines();
    let lost: Vec<_> = before.difference(&after).collect();
    assert!(lost.is_empty(), "{lost:?}");
    let counted = "SELECT (SELECT count(*) FROM evo.nodes) AS nodes,
        (SELECT count(DISTINCT attempt_id) FROM evo.nodes) AS attempts,
        (SELECT count(*) FROM evo.generations) AS requests,
        (SELECT count(*) FROM bench.grades) AS grades,
        (SELECT count(*) FROM sandbox.jobs WHERE split = 'final') AS final_jobs";
    assert_eq!(
        csv(&place, counted),
        "nodes,attempts,requests,grades,final_jobs\n12,12,12,2,2\n"
    );
}

#[test]
fn wrong_use_is_said() {
    let place = Place::with_store();
    let fails = |arguments: &[&str], code| place.run(arguments).fails(code);
    let neither = fails(&["bench", "run"], 2);
    assert!(
        neither.contains("--tasks <TASKS>") || neither.contains("--suite"),
        "{neither}"
    );
    let unknown = fails(&["bench", "run", "--suite", "nope"], 2);
    insta::assert_snapshot!("unknown_suite", unknown);
    let profile = fails(&["bench", "list", "--profile", "nope"], 2);
    insta::assert_snapshot!("unknown_profile", place.scrub(&profile));
    let option = fails(&["bench", "run", "--tasks", "a", "-o", "nope=1"], 2);
    assert!(option.contains("unknown option nope"), "{option}");
    let twice = fails(&["bench", "run", "--tasks", "a,a"], 1);
    assert!(twice.contains("task a is named twice"), "{twice}");
    let absent = fails(&["bench", "show", "s"], 1);
    assert_eq!(absent, "error: there is no suite 's': this store has none yet\n");
}

#[test]
fn a_suite_of_which_no_task_is_imported_is_rows_and_a_failure() {
    let place = Place::with_store();
    let ran = with_python(
        &place,
        [
            "bench",
            "run",
            "--suite",
            "mle-bench-lite",
            "--name",
            "lite",
            "--repeats",
            "1",
        ],
    );
    assert!(
        ran.stderr.contains("no task of suite lite is imported"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.code, 1);
    assert_eq!(
        csv(
            &place,
            "SELECT count(*) AS n FROM bench.suite_progress WHERE status = 'task_missing'"
        ),
        "n\n22\n"
    );
}

#[test]
fn a_profile_is_shown_with_its_origin() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("profiles")).unwrap();
    place.write("profiles/mine.toml", "[search]\nsteps = 7\n");
    place.write("clade.toml", "[search]\nprofile = 'mine'\nseed = 3\n");
    let shown = |arguments: &[&str]| -> String {
        let mut command = place.command(["config", "search.s", "--format", "csv"].iter().chain(arguments));
        let outcome: Outcome = finish(command.env("CLADE_PYTHON", python()), "");
        place.scrub(&outcome.ok())
    };
    let own = shown(&[]);
    assert!(own.contains("search.steps,7,FOLDER/profiles/mine.toml,"), "{own}");
    assert!(own.contains("search.seed,3,FOLDER/clade.toml,"), "{own}");
    let standard = shown(&["--profile", "standard"]);
    assert!(standard.contains("search.steps,800,profile standard,"), "{standard}");
    assert!(
        standard.contains("search.settings.debug_seconds,21600,profile standard,"),
        "{standard}"
    );
    assert!(standard.contains("search.seed,3,FOLDER/clade.toml,"), "{standard}");
}
