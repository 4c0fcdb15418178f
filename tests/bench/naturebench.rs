//! Tasks of NatureBench: import, an output folder scored by instance, gaps to the published results.

use std::path::Path;

use clade_catalog::{Rows, Txn};

use crate::cli::fixture::{Outcome, Place};
use crate::cli::tasks::with_python;
use crate::engine::fixture::{Fixture, number, rows, session, texts};

const EVALUATOR: &str = r#"import json
import os

import shared_metrics

EVAL_DIR = os.path.dirname(os.path.abspath(__file__))
OUTPUT_DIR = os.environ.get("OUTPUT_DIR")
if not OUTPUT_DIR:
    raise RuntimeError("OUTPUT_DIR environment variable is required")

INSTANCES = {"cells": "Accuracy", "waves": "RMSE", "unpublished": "Accuracy"}


def run_evaluation():
    results = {}
    for instance, metric in INSTANCES.items():
        print("evaluating", instance)
        try:
            with open(os.path.join(EVAL_DIR, "ground_truth", instance, "truth.json")) as f:
                truth = json.load(f)
            with open(os.path.join(OUTPUT_DIR, instance, "output.json")) as f:
                given = json.load(f)
            results[instance] = {metric: shared_metrics.METRICS[metric](truth, given)}
        except Exception as error:
            results[instance] = {metric: None, "error": str(error)}
    return results
"#;

const SHARED: &str = r#"def accuracy(truth, given):
    if len(truth) != len(given):
        raise ValueError("wrong length")
    return sum(a == b for a, b in zip(truth, given)) / len(truth)


def rmse(truth, given):
    return (sum((a - b) ** 2 for a, b in zip(truth, given, strict=True)) / len(truth)) ** 0.5


METRICS = {"Accuracy": accuracy, "RMSE": rmse}
"#;

const METADATA: &str = r#"{
  "task_name": "Cells and waves",
  "performance_entries": [
    {"dataset_name": "cells", "metrics": [
      {"name": "F1", "is_primary": false, "metric_direction": "higher_is_better", "sota_score": [{"value": "0.9"}]},
      {"name": "accuracy", "is_primary": true, "metric_direction": "higher_is_better",
       "sota_score": [{"value": "0.5 ± 0.1", "method": "A"}, {"value": "0.8", "method": "B"}],
       "baseline_score": {"value": "0.4", "method": "C"}}]},
    {"dataset_name": "waves", "metrics": [
      {"name": "RMSE", "is_primary": true, "metric_direction": "lower_is_better", "sota_score": [{"value": "~2.0"}]}]},
    {"dataset_name": "unpublished", "metrics": [
      {"name": "Accuracy", "is_primary": true, "metric_direction": "higher_is_better", "sota_score": null}]}
  ]
}
"#;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A task with two instances that have published results, and one that has none.
pub fn task(place: &Place) {
    let root = &place.path().join("s00000-000-00000-0");
    write(root, "metadata.json", METADATA);
    write(
        root,
        "problem/README.md",
        "# Cells and waves\n\nWrite output/<instance>/output.json.\n",
    );
    write(root, "problem/data_description.md", "Each folder holds train.json.\n");
    for instance in ["cells", "waves", "unpublished"] {
        write(root, &format!("problem/data/{instance}/train.json"), "[1, 2, 3, 4]");
        write(
            root,
            &format!("evaluation/ground_truth/{instance}/truth.json"),
            "[1, 2, 3, 4]",
        );
    }
    write(root, "evaluation/evaluator.py", EVALUATOR);
    write(root, "evaluation/shared_metrics.py", SHARED);
    write(root, "environment/Dockerfile.v3", "FROM scratch\n");
}

pub fn add(place: &Place) -> Outcome {
    with_python(
        place,
        [
            "task",
            "add",
            "s00000-000-00000-0",
            "--layout",
            "naturebench",
            "--format",
            "json",
        ],
    )
}

fn csv(place: &Place, sql: &str) -> String {
    place.run(["sql", "-c", sql, "--format", "csv"]).ok()
}

#[test]
fn a_task_is_imported_with_its_published_results() {
    let place = Place::with_store();
    task(&place);
    add(&place).ok();
    assert_eq!(
        csv(
            &place,
            "SELECT task_id, title, modality, metric, higher_is_better, validation, submission, preflight FROM gym.tasks"
        ),
        "task_id,title,modality,metric,higher_is_better,validation,submission,preflight\n\
         s00000-000-00000-0,Cells and waves,scientific,relative gap,true,self_reported,output,true\n"
    );
    assert_eq!(
        csv(
            &place,
            "SELECT instance, metric, higher_is_better, sota, baseline FROM gym.instances ORDER BY instance"
        ),
        "instance,metric,higher_is_better,sota,baseline\ncells,accuracy,true,0.8,0.4\nwaves,RMSE,false,2.0,\n"
    );
    let checks = csv(
        &place,
        "SELECT check_id, status, detail FROM gym.quality_checks ORDER BY check_id",
    );
    assert!(checks.contains("evaluator,passed"), "{checks}");
    assert!(
        checks.contains("left out: unpublished (the published score of Accuracy holds no number)"),
        "{checks}"
    );
    let description = csv(&place, "SELECT description FROM gym.tasks");
    for part in [
        "Write output/<instance>",
        "Each folder holds train.json",
        "| waves | RMSE | lower | 2 |",
    ] {
        assert!(description.contains(part), "{part} is not in\n{description}");
    }
    let prompt = with_python(&place, ["prompt", "draft", "--task", "s00000-000-00000-0"]).ok();
    assert!(
        prompt.contains("Output: files in the folder that the environment variable OUTPUT_DIR names"),
        "{prompt}"
    );
    assert!(
        prompt.contains("a problem from research") && !prompt.contains("sample_submission.csv"),
        "{prompt}"
    );
    let private = csv(
        &place,
        "SELECT count(*) AS n FROM gym.task_files WHERE role = 'private'",
    );
    assert_eq!(private, "n\n5\n");
}

#[test]
fn what_is_wrong_with_a_task_is_said() {
    let place = Place::with_store();
    task(&place);
    let root = place.path().join("s00000-000-00000-0");
    let error = with_python(&place, ["task", "add", ".", "--layout", "naturebench"]).fails(1);
    assert!(
        error.contains("there is no metadata.json: name the folder of one NatureBench task"),
        "{error}"
    );
    write(&root, "evaluation/evaluator.py", "import nowhere_to_be_found\n");
    let error = add(&place).fails(1);
    assert!(
        error.contains("evaluator (it does not run in this Python") && error.contains("nowhere_to_be_found"),
        "{error}"
    );
    write(
        &root,
        "evaluation/evaluator.py",
        &EVALUATOR.replace("\"waves\"", "\"winds\""),
    );
    let error = add(&place).fails(1);
    assert!(
        error.contains("reports no waves; it reports cells, winds, unpublished"),
        "{error}"
    );
    write(&root, "evaluation/evaluator.py", EVALUATOR);
    std::fs::rename(root.join("problem/data"), root.join("problem/data_archives")).unwrap();
    let error = add(&place).fails(1);
    assert!(
        error.contains("unpack the archives of problem/data_archives"),
        "{error}"
    );
}

/// Writes an output folder and grades it.
fn grade(place: &Place, folder: &str, cells: &str, waves: Option<&str>) -> Outcome {
    write(place.path(), &format!("{folder}/cells/output.json"), cells);
    if let Some(waves) = waves {
        write(place.path(), &format!("{folder}/waves/output.json"), waves);
    }
    with_python(
        place,
        ["grade", folder, "--task", "s00000-000-00000-0", "--format", "json"],
    )
}

#[test]
fn an_output_is_scored_by_instance_against_the_published_results() {
    let place = Place::with_store();
    task(&place);
    add(&place).ok();
    // 1.0 is a quarter better than 0.8; an error of 1 is half of 2.0.
    let both = grade(&place, "both", "[1, 2, 3, 4]", Some("[2, 3, 4, 5]")).ok();
    let both: serde_json::Value = serde_json::from_str(&both).unwrap();
    assert_eq!(both[0]["score"], 0.375);
    // An instance without a valid output is as far behind as can be counted.
    let one = grade(&place, "one", "[1, 2, 3, 0]", None).ok();
    let one: serde_json::Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one[0]["score"], (0.75 - 0.8) / 0.8 / 2.0 - 0.5);
    let none = grade(&place, "none", "[1]", Some("7")).fails(1);
    assert!(
        none.contains("no instance has a valid output") && none.contains("wrong length"),
        "{none}"
    );
    let missing = with_python(&place, ["grade", "nowhere", "--task", "s00000-000-00000-0"]).fails(1);
    assert!(missing.contains("nowhere"), "{missing}");
    place.write("table.csv", "id,y\n1,2\n");
    let table = with_python(&place, ["grade", "table.csv", "--task", "s00000-000-00000-0"]).fails(1);
    assert!(table.contains("the task wants a folder"), "{table}");
    assert_eq!(
        csv(
            &place,
            "SELECT g.score, p.instance, p.score AS value, round(p.gap, 4) AS gap FROM bench.gaps p
             JOIN bench.grades g ON g.submission_id = p.submission_id ORDER BY g.score DESC NULLS LAST, p.instance"
        ),
        "score,instance,value,gap\n0.375,cells,1.0,0.25\n0.375,waves,1.0,0.5\n-0.53125,cells,0.75,-0.0625\n\
         -0.53125,waves,,-1.0\n,cells,,-1.0\n,waves,,-1.0\n"
    );
}

pub const PROGRAM: &str = r#"import json, os

for instance, offset in [("cells", 0), ("waves", 1)]:
    with open(os.path.join(os.environ["DATA_DIR"], instance, "train.json")) as f:
        rows = json.load(f)
    folder = os.path.join(os.environ["OUTPUT_DIR"], instance)
    os.makedirs(folder)
    with open(os.path.join(folder, "output.json"), "w") as f:
        json.dump([row + offset for row in rows], f)
print("Final Validation Score: 0.3")
"#;

#[test]
fn a_program_fills_its_output_folder_in_the_sandbox() {
    let place = Place::with_store();
    task(&place);
    add(&place).ok();
    place.write("program.py", PROGRAM);
    let task = "s00000-000-00000-0";
    with_python(&place, ["exec", "program.py", "--task", task]).ok();
    with_python(&place, ["exec", "program.py", "--task", task, "--final"]).ok();
    let process = ["exec", "program.py", "--task", task, "--final", "--sandbox", "process"];
    with_python(&place, process).ok();
    // Two files, each with its header, and the end of the archive: the same bytes from both back ends.
    assert_eq!(
        csv(&place, "SELECT DISTINCT status, submission_bytes FROM sandbox.jobs"),
        "status,submission_bytes\nsuccess,3072\n"
    );
    place.write("empty.py", "print('Final Validation Score: 0.3')\n");
    let empty = with_python(&place, ["exec", "empty.py", "--task", task]).fails(1);
    assert!(
        empty.contains("submission_missing") && empty.contains("wrote no output"),
        "{empty}"
    );
}

/// Three instances of the task `toy`, one of which has a published result of 0, and scores of a submission on them.
fn scored_instances(submission: &str) -> Txn {
    let mut instances = Rows::new("gym.instances").unwrap();
    let mut scores = Rows::new("bench.instance_scores").unwrap();
    for (name, higher_is_better, sota, score) in [
        ("up", true, 0.5, 0.6),
        ("down", false, 2.0, 1.9),
        ("zero", true, 0.0, 7.0),
    ] {
        instances
            .push([
                ("task_id", "toy".into()),
                ("instance", name.into()),
                ("metric", "m".into()),
                ("higher_is_better", higher_is_better.into()),
                ("sota", sota.into()),
                ("package_hash", "test".into()),
            ])
            .unwrap();
        scores
            .push([
                ("submission_id", submission.into()),
                ("task_id", "toy".into()),
                ("instance", name.into()),
                ("score", score.into()),
            ])
            .unwrap();
    }
    let mut txn = Txn::new();
    txn.append("gym.instances", instances);
    txn.append("bench.instance_scores", scores);
    txn
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gaps_are_counted_by_run_task_and_repeat() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = session(&engine);
    for (id, seed) in [("a", 5), ("b", 6)] {
        let search = format!("EVOLVE TASK 'toy' WITH (steps => 12, workers => 1, seed => {seed}, id => '{id}')");
        rows(&client, &search).await.unwrap();
    }
    assert_eq!(number(&client, "SELECT count(*) FROM bench.naturebench_runs").await, 0);
    let submissions = texts(&client, "SELECT submission_id FROM bench.grades WHERE run_id = 'a'").await;
    engine.store().commit(scored_instances(&submissions[0])).await.unwrap();
    // A fifth and a twentieth better; nothing is a share better than 0. The other run has no scores.
    for sql in [
        "SELECT count(*) FROM bench.gaps WHERE run_id = 'a' AND round(gap, 9) IN (0.2, 0.05)",
        "SELECT 2 * count(*) FROM bench.gaps WHERE run_id = 'a' AND instance = 'zero' AND gap IS NULL AND score = 7",
        "SELECT count(*) FROM bench.gaps WHERE run_id = 'b' AND gap = -1",
        "SELECT 2 * count(*) FROM bench.naturebench_runs WHERE run_id = 'a' AND round(gap, 9) = 0.125 AND matches AND surpasses
         AND instances = 3 AND valid_instances = 3",
        "SELECT 2 * count(*) FROM bench.naturebench_runs WHERE run_id = 'b' AND gap = -1 AND NOT matches AND NOT surpasses",
        "SELECT runs FROM bench.naturebench WHERE task_id = 'toy' AND round(mean_gap, 9) = -0.4375 AND match_rate = 0.5
         AND surpass_rate = 0.5 AND round(best_gap, 9) = 0.125 AND std_gap > 0",
        "SELECT repeats FROM bench.naturebench_rates WHERE tasks = 1 AND mean_match_rate = 0.5
         AND round(std_surpass_rate, 4) = 0.7071",
    ] {
        assert_eq!(number(&client, sql).await, 2, "{sql}");
    }
}
