//! The shipped views on a small history.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use clade_catalog::Value;
use serde_json::json;

use super::testkit::History;
use super::views;

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
