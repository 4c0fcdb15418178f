//! The shipped views on a small history.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use clade_catalog::Value;
use serde_json::json;

use super::testkit::History;
use super::views;

const FIRST_DRAW: &str = r#"{"operator":"draft","parents":[],"priority":2.0,"operators":[{"operator":"draft","weight":1.0,"probability":1.0}],
"candidates":[],"candidate_count":0,"effective_candidates":0.0,"numbers":[0.5]}"#;
const DRAW: &str = r#"{"operator":"crossover","parents":["i1","b1"],"priority":1.0,"operators":[{"operator":"improve","weight":0.5,"probability":0.5},
{"operator":"crossover","weight":0.5,"probability":0.5}],"candidates":[{"parent_id":"i1","weight":2.0,"probability":0.5},
{"parent_id":"d1","weight":1.0,"probability":0.25},{"parent_id":"b1","weight":1.0,"probability":0.25}],
"candidate_count":3,"effective_candidates":2.8,"numbers":[0.7,0.1,0.9]}"#;

/// Two drafts, one that failed and was repaired, an improvement, and a crossover of both lines.
async fn history() -> History {
    let mut history = History::new(json!({"quality_weight": 2.5, "debug_depth": 4})).await;
    history.node("d1", "draft", &[], Some(0.5)).await;
    history
        .node_with("d2", "draft", &[], None, &[("error_signature", "KeyError: 'x'".into())])
        .await;
    history.node("b1", "debug", &["d2"], Some(0.7)).await;
    history
        .node_with(
            "i1",
            "improve",
            &["d1"],
            Some(0.7),
            &[("delta_vs_parent", Value::Float(0.2))],
        )
        .await;
    history.node("c1", "crossover", &["i1", "b1"], Some(0.6)).await;
    history
        .insert(
            "gym.tasks",
            [
                ("task_id", "t".into()),
                ("metric", "rmse".into()),
                ("higher_is_better", Value::Bool(false)),
            ],
        )
        .await;
    history
        .insert(
            "evo.attempts",
            [
                ("attempt_id", "attempt-c1".into()),
                ("run_id", "r".into()),
                ("step", Value::Int(5)),
                ("operator", "crossover".into()),
                ("parent_id", "i1".into()),
                ("parent2_id", "b1".into()),
                ("status", "done".into()),
                ("draw", DRAW.into()),
            ],
        )
        .await;
    history
        .insert(
            "evo.attempts",
            [
                ("attempt_id", "attempt-d1".into()),
                ("run_id", "r".into()),
                ("step", Value::Int(1)),
                ("operator", "draft".into()),
                ("status", "done".into()),
                ("draw", FIRST_DRAW.into()),
            ],
        )
        .await;
    for (split, text) in [("validation", "fold 1\nFinal Score: 0.9\n"), ("final", "hidden\n")] {
        history
            .insert(
                "sandbox.jobs",
                [
                    ("job_id", split.into()),
                    ("status", "success".into()),
                    ("split", split.into()),
                    ("stdout_head", text.into()),
                    ("stdout_bytes", Value::Int(text.len() as i64)),
                ],
            )
            .await;
    }
    for (id, score, at) in [("s1", 0.9, 1), ("s2", 0.4, 2)] {
        history
            .insert(
                "bench.grades",
                [
                    ("submission_id", id.into()),
                    ("run_id", "r".into()),
                    ("node_id", "b1".into()),
                    ("task_id", "t".into()),
                    ("valid", Value::Bool(true)),
                    ("score", Value::Float(score)),
                    ("medal", "gold".into()),
                    ("rank", Value::Int(3)),
                    ("teams", Value::Int(100)),
                    ("leaderboard_median", Value::Float(0.6)),
                    ("graded_at", Value::Timestamp(at)),
                ],
            )
            .await;
    }
    history
}

#[tokio::test]
async fn every_view_runs() {
    let history = history().await;
    let context = history.session().await;
    for view in views() {
        let frame = context
            .sql(&format!("SELECT * FROM {}.{}", view.schema, view.name))
            .await
            .unwrap();
        frame
            .collect()
            .await
            .unwrap_or_else(|error| panic!("{}.{}: {error}", view.schema, view.name));
    }
}

#[tokio::test]
async fn views_show_what_happened() {
    let history = history().await;
    let mut shown = Vec::new();
    for sql in [
        "SELECT run_id, task_id, node_id, score FROM evo.best",
        "SELECT * FROM evo.lineage ORDER BY node_id, depth, ancestor_id",
        "SELECT operator, nodes, good, improved, mean_gain, best_score, unknown_costs FROM evo.operator_statistics ORDER BY operator",
        "SELECT node_id, signed_score, best_so_far, is_incumbent FROM evo.board_score_history ORDER BY step",
        "SELECT method_family, nodes, good, best_score, best_node_id, first_step, last_step FROM evo.board_family_coverage",
        "SELECT error_signature, nodes, first_step, last_node_id FROM evo.board_repeated_errors",
        "SELECT node_id, signed_score FROM run.board_incumbents ORDER BY step",
        "SELECT mean_gain, nodes FROM run.board_recent_delta_trend",
        "SELECT node_id, rank FROM run.board_rank ORDER BY rank",
        "SELECT method_family, nodes, failed, fail_rate FROM run.board_family_coverage",
        "SELECT method_family, node_id, step, score FROM run.board_family_best",
        "SELECT method_family, nodes, best_node_id FROM run.board_underexplored_families",
        "SELECT status, nodes, first_step, last_step FROM run.board_status_counts ORDER BY first_step",
        "SELECT operator, nodes, good, improved FROM run.board_operator_counts ORDER BY first_step",
        "SELECT node_id, parents, children FROM run.board_parent_graph ORDER BY step",
        "SELECT node_id, family_count_before, is_new_direction, novelty FROM run.board_novelty ORDER BY step",
        "SELECT node_id, step, score, steps_since FROM run.board_current_best",
        "SELECT nodes, sandbox_seconds, mean_sandbox_seconds, longest_sandbox_seconds, model_seconds FROM run.board_runtime",
        "SELECT node_id, quality, progress, novelty, utility, round(weight, 4) AS weight FROM run.board_selection_weights ORDER BY step",
        "SELECT step, operator, operator_probability, parent_id, weight, probability, is_taken, candidates FROM run.selection_trace ORDER BY step, probability DESC",
        "SELECT node_id, relation, relative_id, round(utility, 4) AS utility, place FROM evo.relatives ORDER BY node_id, relation, place",
        "SELECT node_id, rank, is_current_best, round(selection_utility, 4) AS utility, tokens_total, total_seconds, error FROM run.cards ORDER BY step",
        "SELECT status, output FROM sandbox.outputs",
        "SELECT * FROM run.children ORDER BY node_id",
        "SELECT nodes, good, drafts, best_score, generation FROM run.progress",
        "SELECT * FROM run.operators ORDER BY arity",
        "SELECT quality_weight, progress_weight, debug_depth, drafts, exploration FROM run.settings",
        "SELECT * FROM run.budget",
        "SELECT policy, steps_done, validation_score, test_score, medal, rank, gain FROM bench.report",
        "SELECT runs, valid, gold, silver FROM bench.medals",
    ] {
        shown.push(format!("{sql}\n{}", history.show(sql).await));
    }
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[tokio::test]
async fn the_current_run_is_a_constant_of_the_plan() {
    let history = history().await;
    let plan = history.show("EXPLAIN SELECT node_id FROM run.nodes").await;
    assert!(
        plan.contains("run_id = Utf8(\"r\")") || plan.contains("run_id@") && plan.contains("= r"),
        "{plan}"
    );
    assert!(
        !plan
            .lines()
            .any(|line| line.contains("current_run()") && line.contains("Exec")),
        "{plan}"
    );
}
