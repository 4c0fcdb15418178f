//! The final selection against recorded vectors: what is known of each recorded program becomes a node, and the query of the protocol
//! must choose the one with the score that the reference selects by.

use clade_catalog::{Rows, Txn, Value};
use datafusion::common::ScalarValue;
use serde_json::Value as Json;

use crate::engine::fixture::Fixture;
use crate::shared;

const EVALUATOR: &str = include_str!("../../sql/final/evaluator.sql");
const SELF_REPORTED: &str = include_str!("../../sql/final/self_reported.sql");

/// The recorded cases of the validation phase whose protocol is ours, by whether what programs print is trusted. The other
/// protocols of the reference put test scores where a selection can see them; nothing of ours is like them.
fn cases(vectors: &Json, trust: bool) -> Vec<&Json> {
    let all = vectors["cases"].as_array().unwrap();
    let is_ours = |case: &&Json| {
        case["expected"]["score_protocol"] == "self_valid"
            && case["input"]["phase"] == "validation"
            && case["input"]["trust"] == trust
    };
    all.iter().filter(is_ours).collect()
}

/// The evaluator's score of the validation part, as the recorded reply holds it.
fn evaluated(payload: &Json) -> Option<f64> {
    ["sandbox_valid_score", "valid_score", "sandbox_score", "score"]
        .into_iter()
        .find_map(|key| payload[key].as_f64())
}

/// A run with one node a case, in their order.
fn nodes(run: &str, cases: &[&Json]) -> Rows {
    let mut rows = Rows::new("evo.nodes").unwrap();
    for (step, case) in cases.iter().enumerate() {
        let payload = &case["input"]["payload"];
        let score = evaluated(payload);
        let reported = payload["clear_run_log"]
            .as_str()
            .and_then(clade_udfs::text::final_validation_score);
        assert_eq!(
            reported,
            case["expected"]["model_final_validation_score"].as_f64(),
            "{}",
            case["name"]
        );
        let id = format!("{run}{step}");
        rows.push([
            ("node_id", id.clone().into()),
            ("run_id", run.into()),
            ("task_id", "toy".into()),
            ("attempt_id", format!("a{id}").into()),
            ("statement_id", run.into()),
            ("step", (step as i64 + 1).into()),
            ("island", 0.into()),
            ("operator", "draft".into()),
            ("code", "x = 1".into()),
            ("status", "success".into()),
            ("is_buggy", score.is_none().into()),
            ("score", score.into()),
            ("signed_score", score.into()),
            ("score_source", "evaluator".into()),
            ("self_reported_score", reported.into()),
            ("method_family", "unknown".into()),
            ("family_count_before", 0.into()),
            ("admitted", true.into()),
            ("model", "scripted".into()),
            ("seed", 1.into()),
            ("queued_at", Value::Timestamp(0)),
            ("started_at", Value::Timestamp(0)),
            ("finished_at", Value::Timestamp(0)),
        ])
        .unwrap();
    }
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_protocol_selects_by_the_score_of_the_reference() {
    if shared::folder().is_none() {
        return;
    }
    let vectors = shared::vectors("evo_score_protocol.json");
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    for (run, trust, sql) in [("e", false, EVALUATOR), ("s", true, SELF_REPORTED)] {
        let cases = cases(&vectors, trust);
        assert!(cases.len() > 2, "{} cases", cases.len());
        // Also with fewer and fewer of the best ones, until no case has a score.
        for first in 0..cases.len() {
            let run = format!("{run}{first}");
            let left = &cases[first..];
            let mut txn = Txn::new();
            txn.append("evo.nodes", nodes(&run, left));
            engine.store().commit(txn).await.unwrap();
            let score = |case: &Json| case["expected"]["selection_score"].as_f64();
            let best = left.iter().filter_map(|case| score(case)).reduce(f64::max);
            let expected = best.map(|best| {
                let step = left.iter().position(|case| score(case) == Some(best)).unwrap();
                format!("{run}{step}")
            });
            let parameters = [("run", ScalarValue::from(run.as_str()))];
            let rows = engine.queries().rows(sql, &parameters, None, None).await.unwrap();
            let chosen = rows.first().map(|row| row.text("node_id").unwrap());
            assert_eq!(chosen, expected, "{run}");
        }
    }
}
