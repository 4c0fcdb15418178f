//! Searches from the command line, with real programs.

use super::fixture::{Outcome, Place, finish};

/// The program with the interpreter that the tests are given.
fn with_python<'a>(place: &Place, arguments: impl IntoIterator<Item = &'a str>) -> Outcome {
    let python = std::env::var_os("CLADE_PYTHON")
        .expect("set CLADE_PYTHON to a Python interpreter with numpy, pandas and scikit-learn");
    finish(place.command(arguments).env("CLADE_PYTHON", python), "")
}

#[test]
fn the_quickstart_tells_its_story() {
    let place = Place::new();
    let outcome = with_python(&place, ["quickstart", "--steps", "6", "--workers", "2"]);
    assert!(outcome.stderr.contains("finished: step 6/6"), "{}", outcome.stderr);
    let story = outcome.ok();
    for part in [
        "Clade quickstart",
        "diabetes-progression",
        "Best program",
        "gain",
        "spent",
        "grade",
        "Which operator earned the gain",
        "Next",
    ] {
        assert!(story.contains(part), "{part} is not in\n{story}");
    }
    let svg = std::fs::read_to_string(place.path().join("clade-quickstart/run.svg")).unwrap();
    assert!(svg.contains("diabetes-progression"));

    // The same store serves the other commands.
    let store = ["--store", "clade-quickstart"];
    let evolved = with_python(
        &place,
        [
            "evolve",
            "diabetes-progression",
            "--steps",
            "2",
            "--workers",
            "1",
            "--seed",
            "5",
            "--id",
            "r2",
            "--format",
            "json",
        ]
        .into_iter()
        .chain(store),
    );
    let rows: serde_json::Value = serde_json::from_str(&evolved.ok()).unwrap();
    assert_eq!((&rows[0]["run_id"], &rows[0]["steps"]), (&"r2".into(), &2.into()));

    let sample = format!(
        "{}/tasks/diabetes-progression",
        place.path().join("clade-quickstart").display()
    );
    let submission = walk(std::path::Path::new(&sample), "sample_submission.csv");
    let graded = with_python(
        &place,
        [
            "grade",
            &submission,
            "--task",
            "diabetes-progression",
            "--format",
            "json",
        ]
        .into_iter()
        .chain(store),
    );
    let rows: serde_json::Value = serde_json::from_str(&graded.ok()).unwrap();
    assert_eq!(rows[0]["valid"], true);

    place.write("fails.py", "print('hello')\nraise SystemExit(3)\n");
    let executed = with_python(
        &place,
        ["exec", "fails.py", "--task", "diabetes-progression", "--format", "json"]
            .into_iter()
            .chain(store),
    );
    assert_eq!(
        executed.code, 1,
        "a program that failed is no success: {}",
        executed.stderr
    );
    assert!(executed.stderr.contains("hello"), "{}", executed.stderr);
    let rows: serde_json::Value = serde_json::from_str(&executed.stdout).unwrap();
    assert_eq!(
        (&rows[0]["status"], &rows[0]["exit_code"]),
        (&"code_execution_error".into(), &3.into())
    );
}

/// The first file of a name in a folder that is not that of the validation split.
fn walk(folder: &std::path::Path, name: &str) -> String {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().unwrap() != "validation" {
                folders.push(path);
            } else if path.file_name().unwrap() == name {
                return path.to_string_lossy().into_owned();
            }
        }
    }
    panic!("there is no {name}");
}

#[test]
fn a_search_on_an_unknown_task_fails() {
    let place = Place::with_store();
    let error = with_python(&place, ["evolve", "nope"]).fails(1);
    assert!(error.contains("nope"), "{error}");
}
