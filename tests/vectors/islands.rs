//! Islands: nodes are admitted as a commit admits them, and the policy that goes by the score alone draws from them.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Float64Type;
use clade::engine::Engine;
use clade::scheduler::{IndexedNode, NodeOutcome, RunIndex};
use clade_udfs::direction::signed_score;
use serde_json::{Value, json};

use super::harness::{Case, Check, Predicate, compare, number};
use super::history::History;
use crate::engine::fixture::{Fixture, rows, run_session};

fn fitness(input: &Value) -> &[Value] {
    input["fitness"].as_array().unwrap()
}

/// The reference has dropped nodes to keep the island small.
fn is_full(input: &Value) -> bool {
    input["dropped"] == true
}

const PREDICATES: &[(&str, Predicate)] = &[
    ("island over its capacity", |check| {
        check.what != "normalised" && is_full(&check.input)
    }),
    ("first node failed", |check| {
        check.what != "normalised" && !is_full(&check.input) && check.input["failure"] == true
    }),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evo_island_admission() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    compare("evo_island_admission", PREDICATES, async |case| {
        checks(&engine, case).await
    })
    .await;
}

async fn checks(engine: &Arc<Engine>, case: &Case) -> Vec<Check> {
    let (run, prefix) = (format!("run-{}", case.index), format!("c{}-", case.index));
    let higher = case.input["lower_is_better"] == false;
    let mut history = History::new(
        &run,
        higher,
        &json!({"selection_temperature": case.input["temperature"], "drafts": 0}),
    );
    let mut index = RunIndex::default();
    let mut admitted = Vec::new();
    for (place, fitness) in fitness(&case.input).iter().enumerate() {
        let signed = number(fitness).and_then(|fitness| signed_score(fitness, higher));
        let is_admitted = index.admits(signed, 0, None);
        index.add(indexed(place, signed, is_admitted));
        if is_admitted {
            admitted.push(place);
        }
        let cells = [
            ("step", (place as i64 + 1).into()),
            ("operator", "draft".into()),
            ("is_buggy", signed.is_none().into()),
            ("signed_score", signed.into()),
            ("admitted", is_admitted.into()),
        ];
        history.node(&format!("{prefix}{place}"), &[], cells);
    }
    history.commit(engine.store()).await;
    let session = run_session(engine, &run);
    let floats = async |sql: &str| -> Vec<f64> {
        let batches = rows(&session, sql).await.unwrap();
        let column = |batch: &RecordBatch| batch.column(0).as_primitive::<Float64Type>().values().to_vec();
        batches.iter().flat_map(column).collect()
    };
    let weights = floats(
        "SELECT p.weight FROM policies.aira_evo p JOIN run.nodes n ON n.node_id = p.parent_id WHERE p.operator = 'improve' ORDER BY n.step",
    )
    .await;
    let normalised =
        floats("SELECT COALESCE(minmax_norm(signed_score) OVER (), 0.0) AS v FROM run.nodes ORDER BY step").await;

    let capacity = case.input["max_size"].as_u64().unwrap() as usize;
    let is_full = admitted.len() > capacity;
    let mut input = case.input.clone();
    input["dropped"] = json!(is_full);
    let kept = case.expected["kept"].as_array().unwrap();
    input["failure"] = json!(
        kept.iter()
            .any(|place| fitness(&case.input)[place.as_u64().unwrap() as usize].is_null())
    );
    let kept: Vec<usize> = if is_full {
        not_below_the_mean(&case.input, higher)
    } else {
        let kept = kept.iter().map(|place| place.as_u64().unwrap() as usize);
        kept.filter(|place| !fitness(&case.input)[*place].is_null()).collect()
    };
    let check = |what: &str, reference: &Value, ours: Value, expected: Value| {
        let mut input = input.clone();
        input["ours"] = expected;
        Check::new(what, &input, reference, ours)
    };
    // What our island holds, by the same formulas: the scores of the admitted nodes among all.
    let temperature = case.input["temperature"].as_f64().unwrap();
    let exponents: Vec<f64> = admitted
        .iter()
        .map(|place| (normalised[*place] / temperature).exp())
        .collect();
    let total: f64 = exponents.iter().sum();
    let shares: Vec<f64> = exponents.iter().map(|exponent| exponent / total).collect();
    vec![
        check("kept", &case.expected["kept"], json!(admitted), json!(kept)),
        check(
            "probabilities",
            &case.expected["node_probs"],
            json!(weights),
            json!(shares),
        ),
        check(
            "normalised",
            &case.expected["normalized"],
            json!(normalised),
            Value::Null,
        ),
    ]
}

/// The definition in its plainest form, without a capacity.
fn not_below_the_mean(input: &Value, higher: bool) -> Vec<usize> {
    let mut kept: Vec<(usize, f64)> = Vec::new();
    for (place, fitness) in fitness(input).iter().enumerate() {
        let Some(score) = number(fitness).map(|fitness| if higher { fitness } else { -fitness }) else {
            continue;
        };
        let mean = kept.iter().map(|(_, score)| score).sum::<f64>() / kept.len() as f64;
        if kept.is_empty() || score >= mean {
            kept.push((place, score));
        }
    }
    kept.into_iter().map(|(place, _)| place).collect()
}

fn indexed(place: usize, signed_score: Option<f64>, admitted: bool) -> IndexedNode {
    IndexedNode {
        node_id: place.to_string(),
        step: place as i64 + 1,
        generation: None,
        island: 0,
        code_hash: None,
        method_family: "unknown".to_owned(),
        signed_score,
        admitted,
        outcome: NodeOutcome {
            status: "success".to_owned(),
            score: signed_score,
            score_source: "evaluator".to_owned(),
            self_reported_score: None,
            error_class: None,
            error_signature: None,
            error: None,
        },
    }
}
