//! Competitions as MLE-Bench prepares them: import, and grading as MLE-Bench does it.

use std::path::Path;

use crate::cli::fixture::{Outcome, Place};
use crate::cli::tasks::with_python;

const GRADE: &str = r#"import pandas as pd

from mlebench.competitions.utils import share_of_equal
from mlebench.grade_helpers import InvalidSubmissionError
from mlebench.utils import get_logger

from .spots import COLUMN

logger = get_logger(__name__)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    if COLUMN not in submission.columns:
        raise InvalidSubmissionError(f"Submission should have a {COLUMN} column")
    if len(submission) != len(answers):
        raise InvalidSubmissionError("Submission should have as many rows as the answers")
    return share_of_equal(submission, answers, COLUMN)
"#;

const GRADE_RECORDS: &str = r#"def grade(submission, answers):
    assert isinstance(answers, list) and isinstance(answers[0]["id"], str), type(answers)
    truth = {row["id"]: row["spots"] for row in answers}
    given = dict(zip(submission["id"].astype(str).str.zfill(3), submission["spots"]))
    return sum(given.get(key) == value for key, value in truth.items()) / len(truth)
"#;

const UTILS: &str = "def share_of_equal(submission, answers, column):\n    merged = answers.merge(submission, on='id')\n    \
                     return (merged[column + '_x'] == merged[column + '_y']).mean()\n";

const CONFIG: &str = "id: spots\nname: Counting spots\ncompetition_type: simple\nprizes: null\n\
                      description: mlebench/competitions/spots/description.md\n\ndataset:\n  \
                      answers: spots/prepared/private/ANSWERS\n  sample_submission: spots/prepared/public/sampleSubmission.csv\n\n\
                      grader:\n  name: accuracy\n  grade_fn: mlebench.competitions.spots.grade:grade\n";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Rows of the two tables: the number of spots follows from the width.
fn table(rows: std::ops::Range<usize>, with_answer: bool) -> String {
    let header = if with_answer { "id,width,spots\n" } else { "id,width\n" };
    let line = |n: usize| {
        let width = (n * 7) % 12;
        match with_answer {
            true => format!("{n:03},{width},{}\n", width % 3),
            false => format!("{n:03},{width}\n"),
        }
    };
    header.to_owned() + &rows.map(line).collect::<String>()
}

fn submission(rows: std::ops::Range<usize>, spots: impl Fn(usize) -> usize) -> String {
    let lines: String = rows.map(|n| format!("{n:03},{}\n", spots(n))).collect();
    format!("id,spots\n{lines}")
}

fn truth(n: usize) -> usize {
    ((n * 7) % 12) % 3
}

/// Data and competition in two folders, as `mlebench prepare` and the repository keep them.
fn competition(place: &Place) {
    let root = place.path();
    write(root, "data/spots/prepared/public/train.csv", &table(0..60, true));
    write(root, "data/spots/prepared/public/test.csv", &table(60..90, false));
    write(
        root,
        "data/spots/prepared/public/sampleSubmission.csv",
        &submission(60..90, |_| 0),
    );
    write(
        root,
        "data/spots/prepared/public/description.md",
        "# Counting spots\n\nHow many?\n",
    );
    write(
        root,
        "data/spots/prepared/private/answers.csv",
        &submission(60..90, truth),
    );
    write(root, "data/spots/prepared/private/notes.txt", "hidden\n");
    write(
        root,
        "competitions/spots/config.yaml",
        &CONFIG.replace("ANSWERS", "answers.csv"),
    );
    write(root, "competitions/spots/grade.py", GRADE);
    write(root, "competitions/spots/spots.py", "COLUMN = 'spots'\n");
    write(root, "competitions/spots/prepare.py", "import kaggle\n");
    write(root, "competitions/utils.py", UTILS);
    let teams: String = [1.0, 0.9, 0.66667, 0.5, 0.4]
        .iter()
        .map(|score| format!("{score}\n"))
        .collect();
    write(root, "competitions/spots/leaderboard.csv", &format!("score\n{teams}"));
}

fn add(place: &Place, more: &[&str]) -> Outcome {
    let arguments = [
        "task",
        "add",
        "data/spots",
        "--layout",
        "mle-bench",
        "--competitions",
        "competitions",
        "--format",
        "json",
    ];
    with_python(place, arguments.iter().chain(more).copied())
}

fn grade(place: &Place, text: &str) -> serde_json::Value {
    place.write("s.csv", text);
    let graded = with_python(place, ["grade", "s.csv", "--task", "spots", "--format", "json"]);
    serde_json::from_str::<serde_json::Value>(&graded.stdout).unwrap()[0].clone()
}

#[test]
fn a_prepared_competition_is_imported_and_graded_as_there() {
    let place = Place::with_store();
    competition(&place);
    let imported = add(&place, &[]).ok();
    assert!(imported.contains("\"validation\":\"split\""), "{imported}");
    let csv = |sql: &str| place.run(["sql", "-c", sql, "--format", "csv"]).ok();
    assert_eq!(
        csv("SELECT task_id, title, metric, higher_is_better, train_rows, test_rows FROM gym.tasks"),
        "task_id,title,metric,higher_is_better,train_rows,test_rows\nspots,Counting spots,accuracy,true,60,30\n"
    );
    let files = csv("SELECT path, role FROM gym.task_files ORDER BY path");
    assert_eq!(
        files,
        "path,role\ndata/private/other/notes.txt,private\ndata/private/test_answer.csv,private\n\
         data/public/description.md,public\ndata/public/description.txt,public\n\
         data/public/sample_submission.csv,public\ndata/public/test.csv,public\ndata/public/train.csv,public\n\
         leaderboard.csv,meta\nutils/metric.py,utils\n"
    );

    let description = csv("SELECT description FROM gym.tasks");
    assert!(
        description.contains("The file sampleSubmission.csv is called sample_submission.csv here."),
        "{description}"
    );

    // Two thirds, rounded to five decimals, are the third team's score: the last of the first 40 % of five teams is the second.
    let two_thirds = grade(&place, &submission(60..90, |n| if n < 80 { truth(n) } else { 9 }));
    assert_eq!(two_thirds["score"], 0.66667);
    assert_eq!((&two_thirds["medal"], &two_thirds["rank"]), (&"none".into(), &3.into()));
    let best = grade(&place, &submission(60..90, truth));
    for (column, value) in [
        ("medal", serde_json::json!("gold")),
        ("rank", 1.into()),
        ("teams", 5.into()),
        ("gold_threshold", serde_json::json!(1.0)),
        ("silver_threshold", serde_json::json!(1.0)),
        ("bronze_threshold", serde_json::json!(0.9)),
        ("above_median", true.into()),
    ] {
        assert_eq!(best[column], value, "{column} of {best}");
    }
    let invalid = grade(&place, "id,points\n060,1\n");
    assert_eq!(
        (&invalid["valid"], &invalid["medal"]),
        (&false.into(), &serde_json::Value::Null)
    );
    let detail = invalid["detail"].as_str().unwrap();
    assert!(
        detail.contains("InvalidSubmissionError: Submission should have a spots column"),
        "{detail}"
    );
    let words = with_python(&place, ["grade", "s.csv", "--task", "spots"]);
    assert!(
        words.stdout.contains("gold 1.0, silver 1.0, bronze 0.9"),
        "{}",
        words.stdout
    );
}

#[test]
fn answers_may_be_json_lines() {
    let place = Place::with_store();
    competition(&place);
    let root = place.path();
    let private = root.join("data/spots/prepared/private");
    std::fs::remove_file(private.join("answers.csv")).unwrap();
    let lines: String = (60..90)
        .map(|n| format!("{{\"id\": \"{n:03}\", \"spots\": {}}}\n", truth(n)))
        .collect();
    write(root, "data/spots/prepared/private/gold_submission.jsonl", &lines);
    write(
        root,
        "competitions/spots/config.yaml",
        &CONFIG.replace("ANSWERS", "gold_submission.jsonl"),
    );
    write(root, "competitions/spots/grade.py", GRADE_RECORDS);
    add(&place, &[]).ok();
    assert_eq!(grade(&place, &submission(60..90, truth))["score"], 1.0);
}

#[test]
fn data_without_tables_is_imported_with_warnings() {
    let place = Place::with_store();
    competition(&place);
    let public = place.path().join("data/spots/prepared/public");
    std::fs::remove_file(public.join("test.csv")).unwrap();
    std::fs::remove_file(public.join("train.csv")).unwrap();
    write(&public, "test/060.png", "no picture");
    let imported = add(&place, &[]).ok();
    assert!(imported.contains("\"validation\":\"self_reported\""), "{imported}");
    let warnings = place
        .run([
            "sql",
            "-c",
            "SELECT check_id FROM gym.quality_checks WHERE status = 'warning' ORDER BY 1",
            "--format",
            "csv",
        ])
        .ok();
    for check in ["missing_test_csv", "missing_train_csv"] {
        assert!(warnings.contains(check), "{warnings}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let place = Place::with_store();
    competition(&place);
    let root = place.path();
    let fails = |more: &[&str]| {
        let error = add(&place, more).fails(1);
        place.scrub(&error)
    };
    let leaderboard = root.join("competitions/spots/leaderboard.csv");
    std::fs::write(&leaderboard, "score\n0.5\n0.9\n0.1\n").unwrap();
    let unsorted = fails(&[]);
    assert!(unsorted.contains("not sorted; say with --better"), "{unsorted}");
    add(&place, &["--better", "higher"]).ok();
    std::fs::remove_file(root.join("competitions/spots/grade.py")).unwrap();
    let no_grader = fails(&["--better", "higher"]);
    assert!(
        no_grader.contains("there is no grader: MLE-Bench keeps it as grade.py"),
        "{no_grader}"
    );
    std::fs::remove_dir_all(root.join("data/spots/prepared/private")).unwrap();
    let no_answers = fails(&[]);
    assert!(
        no_answers.contains("prepared/public and prepared/private"),
        "{no_answers}"
    );
    let wrong = with_python(&place, ["task", "add", "data/spots", "--better", "lower"]).fails(2);
    assert!(wrong.contains("--layout mle-bench"), "{wrong}");
}
