//! Every shipped policy on hand-made histories, and the contract on policies that break it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;

use clade_catalog::Value;
use serde_json::json;

use super::testkit::History;
use super::{Lottery, PolicyRow, check_policy, shipped};
use crate::operators::Operator;

/// Rows of the highest priority as `operator(parent):probability`, in a fixed order.
fn chances(rows: &[PolicyRow]) -> String {
    let Some(lottery) = Lottery::new(rows).unwrap() else {
        return "nothing".to_owned();
    };
    let mut shown: Vec<String> = Vec::new();
    for operator in Operator::ALL {
        let mut parents: Vec<&str> = rows
            .iter()
            .filter(|row| row.operator == operator)
            .filter_map(|row| row.parent_id.as_deref())
            .collect();
        parents.sort_unstable();
        parents.dedup();
        let probability = lottery.probability_of(operator, &[]);
        if probability > 0.0 {
            let mut text = format!("{operator} {probability:.3}");
            for parent in parents {
                let share = lottery.probability_of(operator, &[parent]) / probability;
                write!(text, " {parent}:{share:.3}").unwrap();
            }
            shown.push(text);
        }
    }
    shown.join(" | ")
}

/// What every shipped policy would choose, a line each.
async fn all(history: &History) -> String {
    let mut lines = Vec::new();
    for policy in shipped() {
        lines.push(format!(
            "{:<12} {}",
            policy.name,
            chances(&history.policy(policy.name).await)
        ));
    }
    lines.join("\n")
}

/// Five drafts, so that no more are due.
async fn with_drafts(options: serde_json::Value) -> History {
    let mut history = History::new(options).await;
    for (id, score) in [("d1", 0.5), ("d2", 0.7), ("d3", 0.6), ("d4", 0.1), ("d5", 0.3)] {
        history.node(id, "draft", &[], Some(score)).await;
    }
    history
}

#[tokio::test]
async fn every_policy_keeps_the_contract() {
    let history = History::new(json!({})).await;
    let context = history.session().await;
    for policy in shipped() {
        let plan = context.state().create_logical_plan(policy.sql).await.unwrap();
        check_policy(policy.name, &plan).unwrap_or_else(|error| panic!("{}: {error}", policy.name));
    }
}

#[tokio::test]
async fn without_a_run_there_is_nothing_to_expand() {
    let history = with_drafts(json!({})).await;
    let context = history.session_of("").await;
    for policy in shipped() {
        let frame = context
            .sql(&format!("SELECT * FROM policies.{}", policy.name))
            .await
            .unwrap();
        assert_eq!(frame.count().await.unwrap(), 0, "{}", policy.name);
    }
}

#[tokio::test]
async fn an_empty_run_drafts() {
    insta::assert_snapshot!(all(&History::new(json!({})).await).await);
}

#[tokio::test]
async fn a_failure_is_debugged() {
    let mut history = History::new(json!({})).await;
    history.node("d1", "draft", &[], None).await;
    history.node("d2", "draft", &[], None).await;
    insta::assert_snapshot!(all(&history).await);
}

#[tokio::test]
async fn good_nodes_are_improved() {
    insta::assert_snapshot!(all(&with_drafts(json!({})).await).await);
}

#[tokio::test]
async fn gains_and_rare_families_count() {
    let mut history = with_drafts(json!({})).await;
    let more = [
        ("delta_vs_parent", Value::Float(0.2)),
        ("family_count_before", Value::Int(0)),
        ("method_family", "lightgbm".into()),
    ];
    history.node_with("i1", "improve", &["d1"], Some(0.7), &more).await;
    let more = [
        ("delta_vs_parent", Value::Float(-0.4)),
        ("family_count_before", Value::Int(5)),
    ];
    history.node_with("i2", "improve", &["d2"], Some(0.3), &more).await;
    insta::assert_snapshot!(all(&history).await);
}

#[tokio::test]
async fn crossover_starts_with_its_generation() {
    let mut history =
        with_drafts(json!({"generation_size": 3, "crossover_after": 2, "crossover_probability": 0.25})).await;
    assert!(!chances(&history.policy("uniform").await).contains("crossover"));
    history.node("i1", "improve", &["d1"], Some(0.55)).await;
    insta::assert_snapshot!(chances(&history.policy("uniform").await), @"improve 0.750 d1:0.167 d2:0.167 d3:0.167 d4:0.167 d5:0.167 i1:0.167 | crossover 0.250 d1:0.167 d2:0.167 d3:0.167 d4:0.167 d5:0.167 i1:0.167");
}

#[tokio::test]
async fn fresh_drafts_take_their_share() {
    let history = with_drafts(json!({"fresh_draft_probability": 0.2})).await;
    insta::assert_snapshot!(chances(&history.policy("uniform").await), @"draft 0.200 | improve 0.800 d1:0.200 d2:0.200 d3:0.200 d4:0.200 d5:0.200");
}

#[tokio::test]
async fn work_under_way_is_not_given_out_twice() {
    let mut history = History::new(json!({"drafts": 2})).await;
    history.node("d1", "draft", &[], None).await;
    history.attempt("a2", "draft", None, "planned").await;
    history.attempt("a3", "debug", Some("d1"), "planned").await;
    let rows = history.policy("openmle_evo").await;
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].operator, rows[0].priority),
        (Operator::Draft, 0.0),
        "only the draft that is always possible"
    );
    history.attempt("a3", "debug", Some("d1"), "failed").await;
    insta::assert_snapshot!(chances(&history.policy("openmle_evo").await), @"debug 1.000 d1:1.000");
}

#[tokio::test]
async fn a_chain_ends_at_its_depth() {
    let mut history = History::new(json!({"drafts": 1, "debug_depth": 2})).await;
    let signature = |name: &'static str| [("error_signature", Value::from(name))];
    history.node_with("d1", "draft", &[], None, &signature("a")).await;
    history.node_with("b1", "debug", &["d1"], None, &signature("b")).await;
    assert_eq!(chances(&history.policy("openmle_evo").await), "debug 1.000 b1:1.000");
    history.node_with("b2", "debug", &["b1"], None, &signature("c")).await;
    assert_eq!(chances(&history.policy("openmle_evo").await), "draft 1.000");
    insta::assert_snapshot!(
        history
            .show("SELECT node_id, depth, repeats_signature, is_in_flight, is_debuggable FROM run.failures")
            .await
    );
}

#[tokio::test]
async fn a_chain_ends_when_its_time_is_used_up() {
    let mut history = History::new(json!({"drafts": 1, "debug_seconds": 60})).await;
    let spent = |name: &'static str, seconds: f64| {
        [
            ("error_signature", Value::from(name)),
            ("model_seconds", Value::Float(10.0)),
            ("sandbox_seconds", Value::Float(seconds)),
        ]
    };
    // The time of the program that is repaired is none of the chain's.
    history.node_with("d1", "draft", &[], None, &spent("a", 500.0)).await;
    history.node_with("b1", "debug", &["d1"], None, &spent("b", 15.0)).await;
    assert_eq!(chances(&history.policy("openmle_evo").await), "debug 1.000 b1:1.000");
    history.node_with("b2", "debug", &["b1"], None, &spent("c", 25.0)).await;
    for policy in ["openmle_evo", "aide_greedy"] {
        assert_eq!(chances(&history.policy(policy).await), "draft 1.000", "{policy}");
    }
}

#[tokio::test]
async fn a_chain_that_repeats_its_fault_asks_for_a_fresh_draft() {
    let mut history = with_drafts(json!({})).await;
    let signature = [("error_signature", Value::from("KeyError: 'x'"))];
    history.node_with("i1", "improve", &["d1"], None, &signature).await;
    assert_eq!(chances(&history.policy("openmle_evo").await), "debug 1.000 i1:1.000");
    history.node_with("b1", "debug", &["i1"], None, &signature).await;
    let rows = history.policy("openmle_evo").await;
    assert_eq!(chances(&rows), "draft 1.000");
    assert!(rows.iter().any(|row| row.priority == 2.0));
    history.node("d6", "draft", &[], Some(0.2)).await;
    assert!(chances(&history.policy("openmle_evo").await).starts_with("improve 1.000 d1:"));
}

#[tokio::test]
async fn duplicates_and_programs_without_code_are_no_parents() {
    let mut history = with_drafts(json!({})).await;
    history
        .node_with("x1", "improve", &["d2"], Some(0.9), &[("duplicate_of", "d2".into())])
        .await;
    history
        .node_with("x2", "improve", &["d2"], None, &[("duplicate_of", "d2".into())])
        .await;
    history
        .node_with(
            "x3",
            "improve",
            &["d2"],
            None,
            &[("code", Value::Null), ("status", "code_missing".into())],
        )
        .await;
    history
        .node_with(
            "x4",
            "improve",
            &["d2"],
            Some(0.95),
            &[("admitted", Value::Bool(false))],
        )
        .await;
    let chosen = chances(&history.policy("openmle_evo").await);
    assert!(!chosen.contains('x'), "{chosen}");
    assert!(
        chances(&history.policy("map_elites").await).contains("x4"),
        "a pool is a view: this one takes every good node"
    );
}

#[tokio::test]
async fn uct_walks_down_the_tree() {
    let mut history = History::new(json!({"drafts": 2, "exploration": 0.1})).await;
    history.node("d1", "draft", &[], Some(0.2)).await;
    history.node("d2", "draft", &[], Some(0.8)).await;
    assert_eq!(chances(&history.policy("mcts_uct").await), "improve 1.000 d2:1.000");
    history.node("i1", "improve", &["d2"], Some(0.9)).await;
    assert_eq!(
        chances(&history.policy("mcts_uct").await),
        "improve 1.000 d2:1.000",
        "room for a second child"
    );
    history.node("i2", "improve", &["d2"], Some(0.3)).await;
    assert_eq!(
        chances(&history.policy("mcts_uct").await),
        "improve 1.000 i1:1.000",
        "full: on to the better child"
    );
    let mut curious = History::new(json!({"drafts": 2, "exploration": 100.0})).await;
    curious.node("d1", "draft", &[], Some(0.2)).await;
    curious.node("d2", "draft", &[], Some(0.8)).await;
    curious.node("i1", "improve", &["d2"], Some(0.9)).await;
    assert_eq!(
        chances(&curious.policy("mcts_uct").await),
        "improve 1.000 d1:1.000",
        "exploration prefers the less visited"
    );
}

#[tokio::test]
async fn uct_passes_through_a_repaired_failure() {
    let mut history = History::new(json!({"drafts": 1, "exploration": 0.0})).await;
    let signature = |name: &'static str| [("error_signature", Value::from(name))];
    history.node_with("d1", "draft", &[], None, &signature("a")).await;
    history.node("b1", "debug", &["d1"], Some(0.5)).await;
    assert_eq!(chances(&history.policy("mcts_uct").await), "improve 1.000 b1:1.000");
}

#[tokio::test]
async fn fitness_adds_exploit_explore_and_cooling() {
    let mut history = History::new(json!({"drafts": 2})).await;
    history.node("d1", "draft", &[], Some(0.0)).await;
    history.node("d2", "draft", &[], Some(1.0)).await;
    history.node("i1", "improve", &["d1"], Some(0.5)).await;
    history.node("i2", "improve", &["d1"], Some(0.7)).await;
    history.node("i3", "improve", &["d2"], Some(0.9)).await;
    let rows = history.policy("fitness_f").await;
    let weight = |parent: &str| {
        let row = rows
            .iter()
            .find(|row| row.parent_id.as_deref() == Some(parent) && row.operator == Operator::Improve);
        row.unwrap().weight
    };
    // exploit 0 + explore 0.5 (the only known variance) + cooling 0 (used most).
    assert!((weight("d1") - 0.5).abs() < 1e-9);
    // exploit 1 + explore 0.5 (one child: variance unknown) + cooling 0.5.
    assert!((weight("d2") - 2.0).abs() < 1e-9);
    // exploit 0.5 + explore 0.5 + cooling 1 (never used).
    assert!((weight("i1") - 2.0).abs() < 1e-9);
}

#[tokio::test]
async fn the_contract_is_checked_on_the_plan() {
    let history = History::new(json!({})).await;
    let context = history.session().await;
    let mut shown = Vec::new();
    for sql in [
        "SELECT 'improve' AS operator, node_id FROM run.candidates",
        "SELECT 'improve' AS operator, node_id AS parent_id, 1 AS wieght FROM run.candidates",
        "SELECT 'improve' AS operator, step AS parent_id FROM run.candidates",
        "SELECT 'improve' AS operator, node_id AS parent_id, 'x' AS weight FROM run.candidates",
        "SELECT 'improve' AS operator, node_id AS parent_id, score AS weight FROM bench.grades",
        "SELECT 'improve' AS operator, node_id AS parent_id FROM bench.report",
        "SELECT 'improve' AS operator, node_id AS parent_id FROM run.candidates WHERE node_id IN (SELECT node_id FROM bench.grades)",
        "SELECT 'improve' AS operator, node_id AS parent_id, (SELECT max(score) FROM bench.grades) AS weight FROM run.candidates",
        "WITH g AS (SELECT node_id FROM bench.grades_versions) SELECT 'improve' AS operator, c.node_id AS parent_id FROM run.candidates c JOIN g ON g.node_id = c.node_id",
        "SELECT 'improve' AS operator, node_id AS parent_id FROM run.candidates ORDER BY random()",
        "SELECT 'improve' AS operator, node_id AS parent_id FROM run.candidates WHERE now() > now()",
        "SELECT 'improve' AS operator, job_id AS parent_id FROM sandbox.jobs",
        "SELECT 'improve' AS operator, sql AS parent_id FROM system.queries",
        "SELECT operator, parent_id FROM expand((SELECT node_id AS parent_id FROM run.candidates), 'improve')",
        "SELECT 'mutate' AS operator, node_id AS parent_id FROM run.candidates",
        "SELECT 'improve' AS operator, node_id AS parent_id, -1 AS weight FROM run.candidates",
        "SELECT 'improve' AS operator, node_id AS parent_id, CAST('NaN' AS DOUBLE) AS operator_weight FROM run.candidates",
        "WITH best AS (SELECT 'improve' AS operator, node_id AS parent_id FROM run.candidates ORDER BY step LIMIT 1) SELECT * FROM best UNION ALL SELECT 'drafft', NULL",
        "SELECT * FROM (VALUES ('draft', NULL, 1.0), ('draft', NULL, -0.5)) AS t (operator, parent_id, weight)",
    ] {
        let plan = context.state().create_logical_plan(sql).await.unwrap();
        shown.push(format!("{sql}\n=> {}", check_policy("p", &plan).unwrap_err()));
    }
    insta::assert_snapshot!(shown.join("\n\n"));
    for sql in [
        "SELECT 'draft' AS operator, NULL AS parent_id",
        "SELECT 'DRAFT' AS operator, NULL AS parent_id, 0 AS weight, NULL AS operator_weight, -1 AS priority",
        "SELECT 'improve' AS operator, node_id AS parent_id, family_count_before AS weight FROM run.candidates",
        "SELECT operator, parent_id FROM policies.openmle_evo WHERE (SELECT remaining FROM run.budget WHERE resource = 'steps') > 3",
    ] {
        let plan = context.state().create_logical_plan(sql).await.unwrap();
        check_policy("p", &plan).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

#[tokio::test]
async fn rejected_rows_say_why() {
    let history = History::new(json!({})).await;
    let context = history.session().await;
    let mut shown = Vec::new();
    for rows in [
        "(NULL, 'a', 1.0, NULL, 0, NULL)",
        "('mutate', 'a', 1.0, NULL, 0, NULL)",
        "('improve', NULL, 1.0, NULL, 0, NULL)",
        "('draft', 'a', 1.0, NULL, 0, NULL)",
        "('improve', 'a', NULL, NULL, 0, NULL)",
        "('improve', 'a', -0.5, NULL, 0, NULL)",
        "('improve', 'a', CAST('NaN' AS DOUBLE), NULL, 0, NULL)",
        "('improve', 'a', 1.0, -1.0, 0, NULL)",
        "('improve', 'a', 1.0, NULL, NULL, NULL)",
        "('improve', 'a', 1.0, NULL, 0, 'b')",
        "('crossover', 'a', 1.0, NULL, 0, 'a')",
    ] {
        let sql = format!(
            "SELECT CAST(o AS VARCHAR) AS operator, CAST(p AS VARCHAR) AS parent_id, CAST(w AS DOUBLE) AS weight,
                    CAST(ow AS DOUBLE) AS operator_weight, CAST(pr AS INT) AS priority, CAST(p2 AS VARCHAR) AS parent2_id
             FROM (VALUES {rows}) AS t (o, p, w, ow, pr, p2)"
        );
        let batches = context.sql(&sql).await.unwrap().collect().await.unwrap();
        shown.push(format!("{rows}\n=> {}", super::read_rows(&batches).unwrap_err()));
    }
    insta::assert_snapshot!(shown.join("\n"));
}
