//! Task packages from the command line.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::fixture::{Outcome, Place, finish};

pub const TASK: &str = "breast-cancer";

/// The interpreter that the tests are given.
pub fn python() -> PathBuf {
    std::env::var_os("CLADE_PYTHON")
        .expect("set CLADE_PYTHON to a Python interpreter with numpy, pandas and scikit-learn")
        .into()
}

/// The program with the interpreter that the tests are given.
pub fn with_python<'a>(place: &Place, arguments: impl IntoIterator<Item = &'a str>) -> Outcome {
    finish(place.command(arguments).env("CLADE_PYTHON", python()), "")
}

/// Builds an example package below a place; returns its folder.
pub fn package(place: &Place) -> PathBuf {
    let tasks = place.path().join("packages");
    let built = Command::new(python())
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tasks/build.py"))
        .arg(&tasks)
        .arg(TASK)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    tasks.join(TASK)
}

#[test]
fn a_changed_package_takes_the_place_of_the_old_one() {
    let place = Place::with_store();
    let folder = package(&place);
    let path = folder.to_string_lossy().into_owned();
    let first = with_python(&place, ["task", "add", &path]);
    assert!(!first.stderr.contains("note:"), "{}", first.stderr);
    first.ok();
    // The same again is no change.
    let again = with_python(&place, ["task", "add", &path]);
    assert!(!again.stderr.contains("note:"), "{}", again.stderr);
    again.ok();

    let description = folder.join("data/public/description.txt");
    let text = std::fs::read_to_string(&description).unwrap();
    std::fs::write(&description, format!("{text}\nOne more line.\n")).unwrap();
    let changed = with_python(&place, ["task", "add", &path]);
    assert!(
        changed
            .stderr
            .contains("note: task breast-cancer had another package before"),
        "{}",
        changed.stderr
    );
    changed.ok();
    let count = |sql: &str| place.run(["sql", "-c", sql, "--format", "csv"]).ok();
    assert_eq!(
        count(
            "SELECT count(*) AS tasks, count(*) FILTER (WHERE contains(description, 'One more line')) AS new FROM gym.tasks"
        ),
        "tasks,new\n1,1\n"
    );
    assert_eq!(
        count("SELECT count(DISTINCT package_hash) AS packages FROM gym.tasks_versions"),
        "packages\n2\n"
    );

    // A package that fails its checks is imported by force only.
    std::fs::write(folder.join("data/public/sample_submission.csv"), "sample_id\n1\n").unwrap();
    let refused = with_python(&place, ["task", "add", &path]).fails(1);
    assert!(refused.contains("--force"), "{refused}");
    with_python(&place, ["task", "add", &path, "--force"]).ok();
}

#[test]
fn a_program_that_fails_shows_the_end_of_its_log() {
    let place = Place::with_store();
    let path = package(&place).to_string_lossy().into_owned();
    with_python(&place, ["task", "add", &path]).ok();
    place.write("fails.py", "print('so far')\nraise ValueError('the reason')\n");
    let failed = with_python(&place, ["exec", "fails.py", "--task", TASK]);
    for part in [
        "end of standard output:\nso far",
        "end of standard error:\n",
        "ValueError: the reason",
    ] {
        assert!(failed.stderr.contains(part), "{part} is not in\n{}", failed.stderr);
    }
    assert_eq!(failed.code, 1);
    // One job is a record, with its whole id.
    assert!(failed.stdout.contains(" job_id "), "{}", failed.stdout);
    assert!(failed.stdout.contains("code_execution_error"), "{}", failed.stdout);
}

#[test]
fn a_grade_says_how_it_stands() {
    let place = Place::with_store();
    let folder = package(&place);
    with_python(&place, ["task", "add", &folder.to_string_lossy()]).ok();
    let answers = std::fs::read_to_string(folder.join("data/private/test_answer.csv")).unwrap();
    let submission = |malignant: &str, benign: &str| {
        let rows = answers.lines().skip(1).map(|line| {
            let (id, truth) = line.split_once(',').unwrap();
            format!("{id},{}\n", if truth == "malignant" { malignant } else { benign })
        });
        format!("sample_id,diagnosis\n{}", rows.collect::<String>())
    };
    for (malignant, benign, standing) in [
        ("1", "0", "ahead of or level with all 11 teams, gold medal"),
        ("0", "1", "behind all 11 teams"),
    ] {
        place.write("s.csv", &submission(malignant, benign));
        let graded = with_python(&place, ["grade", "s.csv", "--task", TASK]).ok();
        assert!(graded.contains(standing), "{graded}");
        assert!(!graded.contains("rank"), "{graded}");
    }

    // One that the metric refuses is kept and shown too, and fails the command.
    place.write("s.csv", "sample_id,nothing\n1,2\n");
    let refused = with_python(&place, ["grade", "s.csv", "--task", TASK, "--format", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!(
        (&rows[0]["valid"], &rows[0]["status"]),
        (&false.into(), &"scoring_failed".into())
    );
    let error = refused.fails(1);
    assert!(error.contains("error: the submission is not valid: "), "{error}");

    // What has no end is not read.
    let endless = with_python(&place, ["grade", "/dev/zero", "--task", TASK]).fails(1);
    assert!(endless.contains("error: /dev/zero: it is no regular file"), "{endless}");
}

#[test]
fn a_metric_that_does_not_end_is_told_of_and_ended() {
    let place = Place::with_store();
    let folder = package(&place);
    let metric = folder.join("utils/metric.py");
    let text = std::fs::read_to_string(&metric).unwrap();
    std::fs::write(&metric, format!("{text}\nwhile True:\n    pass\n")).unwrap();
    let path = folder.to_string_lossy().into_owned();
    let limit = ["--set", "sandbox.evaluation_seconds=3"];
    let outcome = with_python(&place, ["task", "add", &path].into_iter().chain(limit));
    let error = outcome.fails(1);
    let (first, rest) = error.split_once('\n').unwrap();
    assert_eq!(
        first,
        "breast-cancer: running utils/metric.py on the sample submission, at most 3 s"
    );
    assert!(
        rest.contains("utils/metric.py did not end within 3 s; sandbox.evaluation_seconds sets the limit"),
        "{rest}"
    );
}

#[test]
fn a_package_that_cannot_be_used_as_it_says_is_refused() {
    let place = Place::with_store();
    let folder = package(&place);
    let path = folder.to_string_lossy().into_owned();
    let manifest = folder.join("task.toml");
    let before = std::fs::read_to_string(&manifest).unwrap_or_default();
    std::fs::write(
        &manifest,
        format!("{before}\n[validation]\ngroup_column = \"speaker\"\n"),
    )
    .unwrap();
    let error = with_python(&place, ["task", "add", &path]).fails(1);
    assert!(
        error.contains("task.toml names validation.group_column 'speaker', but train.csv has the columns "),
        "{error}"
    );
    std::fs::write(&manifest, before).unwrap();
    std::fs::write(folder.join("leaderboard.csv"), "team,points\na,1\n").unwrap();
    let error = with_python(&place, ["task", "add", &path]).fails(1);
    assert!(
        error.contains("leaderboard.csv has no column 'score', it has team, points"),
        "{error}"
    );
}
