//! Searches from the command line, with real programs.

use super::fixture::{Outcome, Place, finish};
use super::tasks::{python, with_python};

/// A line typed into a shell.
fn pasted(place: &Place, line: &str) -> Outcome {
    let mut shell = place.shell(line);
    shell.env("CLADE_PYTHON", python());
    finish(&mut shell, "")
}

#[test]
fn the_quickstart_tells_its_story() {
    let place = Place::new();
    let outcome = with_python(&place, ["quickstart", "--steps", "6", "--workers", "2"]);
    assert!(outcome.stderr.contains("finished: step 6/6"), "{}", outcome.stderr);
    let story = outcome.ok();
    for part in [
        "Clade quickstart",
        "breast-cancer",
        "Best program",
        "gain",
        "the first draft",
        "no tokens (the model is a grammar",
        "in the model, writing programs",
        "in the sandbox, running and scoring them, 2 at once",
        "of wall time",
        "on the hidden answers",
        "Which operator earned the gain",
        "clade-quickstart/run.svg",
    ] {
        assert!(story.contains(part), "{part} is not in\n{story}");
    }
    let svg = std::fs::read_to_string(place.path().join("clade-quickstart/run.svg")).unwrap();
    assert!(svg.contains("breast-cancer"));

    // What is offered works as it is pasted.
    let (_, next) = story.split_once("Next, to paste\n").unwrap();
    let commands: Vec<&str> = next
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert!(commands.len() >= 4, "{next}");
    for command in commands {
        // Fewer steps, to save time.
        let pasted = pasted(&place, &command.replace("--steps 32", "--steps 2"));
        let shown = pasted.ok();
        if command.contains("task show") {
            let imported = shown.lines().find(|line| line.contains("imported:")).unwrap();
            let folder = std::path::Path::new(imported.split_once(':').unwrap().1.trim());
            assert!(
                folder.ends_with("clade-quickstart/examples/breast-cancer") && folder.exists(),
                "{shown}"
            );
        }
    }

    // The same store serves the other commands.
    let store = ["--store", "clade-quickstart"];
    let evolved = with_python(
        &place,
        [
            "evolve",
            "breast-cancer",
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
        "{}/tasks/breast-cancer",
        place.path().join("clade-quickstart").display()
    );
    let submission = walk(std::path::Path::new(&sample), "sample_submission.csv");
    let graded = with_python(
        &place,
        ["grade", &submission, "--task", "breast-cancer", "--format", "json"]
            .into_iter()
            .chain(store),
    );
    let rows: serde_json::Value = serde_json::from_str(&graded.ok()).unwrap();
    assert_eq!(rows[0]["valid"], true);

    place.write("fails.py", "print('hello')\nraise SystemExit(3)\n");
    let executed = with_python(
        &place,
        ["exec", "fails.py", "--task", "breast-cancer", "--format", "json"]
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

/// What is said of wrong values: the flag, the value, and what it must be.
#[test]
fn wrong_values_name_their_flag() {
    let place = Place::new();
    let cases: &[(&[&str], &str)] = &[
        (&["--steps", "0"], "--steps 0: must be a whole number of 1 or more"),
        (&["--steps", "-5"], "--steps -5: must be a whole number of 1 or more"),
        (
            &["--steps", "many"],
            "--steps many: must be a whole number of 1 or more",
        ),
        (
            &["--workers", "2000"],
            "--workers 2000: must be a whole number from 1 to 1024",
        ),
        (&["--seed", "-1"], "--seed -1: must be a whole number of 0 or more"),
        (
            &["--seed", "18446744073709551615"],
            "--seed 18446744073709551615: must be a whole number of 0 or more",
        ),
        (&["--mode", "fast"], "--mode fast: must be 'generation' or 'async'"),
        (
            &["--timeout", "-5s"],
            "--timeout -5s: must be a duration (seconds as a number, or text such as '30 s', '10 min', '2 h') above 0",
        ),
        (
            &["--max-wall", "soon"],
            "--max-wall soon: must be a duration (seconds as a number, or text such as '30 s', '10 min', '2 h') above 0",
        ),
        (
            &["--max-tokens", "0"],
            "--max-tokens 0: must be a whole number of 1 or more",
        ),
        (
            &["--max-cost-usd", "-1"],
            "--max-cost-usd -1: must be a number of 0 or more",
        ),
        (
            &["-o", "quality_weight=-1"],
            "--option quality_weight=-1: must be a number from 0 to 1000",
        ),
        (
            &["-o", "steps"],
            "--option steps: write NAME=VALUE, such as quality_weight=2",
        ),
        (&["--steps", "2", "-o", "steps=3"], "option steps is given twice"),
        (
            &["--id", "a b"],
            "--id 'a b': must be a text of 1 to 128 letters, digits and the characters _ . : -",
        ),
        (&["--policy", ""], "--policy '': a name is wanted"),
    ];
    for (arguments, said) in cases {
        let error = place.run(["evolve", "abalone"].iter().chain(*arguments)).fails(2);
        assert_eq!(error, format!("error: {said}\n"));
    }
    let error = place.run(["evolve", "abalone", "-o", "stepz=3"]).fails(2);
    assert!(
        error.starts_with("error: --option stepz=3: unknown option stepz: the options of EVOLVE are steps,"),
        "{error}"
    );
    for arguments in [
        &["quickstart", "--steps", "-1"][..],
        &["quickstart", "--workers", "0"],
        &["exec", "p.py", "--task", "t", "--timeout", "-5s"],
        &["watch", "--interval", "-1"],
    ] {
        let error = place.run(arguments).fails(2);
        let flag = arguments
            .iter()
            .find(|word| word.starts_with("--") && **word != "--task");
        assert!(error.contains(flag.unwrap()), "{arguments:?}: {error}");
    }
}

#[test]
fn a_search_on_an_unknown_task_fails() {
    let place = Place::with_store();
    let error = with_python(&place, ["evolve", "nope"]).fails(1);
    assert!(error.contains("nope"), "{error}");
}
