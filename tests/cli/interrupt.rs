//! A search that is interrupted at its terminal, and followed from another process.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::fixture::Place;
use super::tasks::{TASK, package, python, with_python};
use super::terminal::Terminal;

fn number(place: &Place, sql: &str) -> i64 {
    let text = place.run(["sql", "-c", sql, "--format", "json"]).ok();
    let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
    rows[0]["n"].as_i64().unwrap_or_else(|| panic!("{sql}: {text}"))
}

#[test]
fn the_second_control_c_ends_a_search_at_once_and_another_process_sees_it() {
    let place = Place::with_store();
    let path = package(&place).to_string_lossy().into_owned();
    with_python(&place, ["task", "add", &path]).ok();
    let mut command = place.command([
        "evolve",
        TASK,
        "--steps",
        "500",
        "--workers",
        "1",
        "--seed",
        "3",
        "--id",
        "r",
    ]);
    let mut search = Terminal::start(command.env("CLADE_PYTHON", python()).env("NO_COLOR", "1"), 160);
    search.expect("run r: breast-cancer with openmle_evo and evolver");
    // The first program is scored, so that there is something to keep and the next one is in flight.
    search.expect("last draft: success");

    let mut watch = place
        .command(["watch", "r"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = BufReader::new(watch.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(
        seen.next().unwrap(),
        "run r: breast-cancer with openmle_evo and evolver"
    );
    let progress = seen.next().unwrap();
    assert!(
        progress.starts_with("step ") && progress.contains("/500  "),
        "{progress}"
    );

    search.type_text("\x03");
    search.expect("stopping: programs in flight are finished first");
    search.type_text("\x03");
    search.expect("stopping now: what was in flight goes back into the queue");
    assert_eq!(search.wait().code(), Some(130));
    let last = seen.last().unwrap();
    assert!(last.starts_with("interrupted: step "), "{last}");
    assert!(watch.wait().unwrap().success());

    // What was committed is there, nothing is in flight, and the run can go on.
    let steps = number(&place, "SELECT count(*) AS n FROM evo.nodes");
    assert!(steps >= 1);
    assert_eq!(
        number(&place, "SELECT count(*) AS n FROM sandbox.leases WHERE is_live"),
        0
    );
    let runs = place.run(["runs", "--format", "json"]).ok();
    let runs: serde_json::Value = serde_json::from_str(&runs).unwrap();
    assert_eq!(
        (&runs[0]["status"], &runs[0]["steps"]),
        (&"interrupted".into(), &steps.into())
    );
    let ended = place.run(["runs", "cancel", "last"]);
    assert!(ended.stderr.contains("run r was asked to end"), "{}", ended.stderr);
    ended.ok();
}
