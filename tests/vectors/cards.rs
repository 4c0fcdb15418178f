//! Experience cards: a case becomes a node with what is known before it, and its card comes out of `clade export cards`.

use clade::scheduler::{IndexedNode, NodeOutcome, RunIndex};
use clade_catalog::{Store, StoreOptions, Value as Cell};
use clade_udfs::direction::signed_score;
use clade_udfs::programs::{error_signature, method_family, python_imports};
use serde_json::{Value, json};

use super::harness::{Case, Check, Predicate, compare, number};
use super::history::History;
use crate::cli::fixture::Place;

fn field<'a>(check: &'a Check, names: &[&str]) -> Option<&'a Value> {
    names.contains(&check.what.as_str()).then_some(&check.input)
}

fn metric(input: &Value) -> Option<f64> {
    number(&input["node"]["metric"]).filter(|metric| metric.is_finite())
}

fn failed_by_status(input: &Value) -> bool {
    input["step_stat"]["status"] != "success"
}

/// Our executor would not call it a success.
fn is_failure(input: &Value) -> bool {
    input["node"]["is_buggy"] == true || failed_by_status(input) || metric(input).is_none()
}

const PREDICATES: &[(&str, Predicate)] = &[
    ("parents", |check| {
        field(check, &["parents"]).is_some_and(|input| input["node"]["parents"] != json!([]))
    }),
    ("reward", |check| field(check, &["reward"]).is_some()),
    ("HTTP code of the sandbox service", |check| {
        field(check, &["status_code"]).is_some()
    }),
    ("usage is not known", |check| {
        field(check, &["cost", "prompt_tokens", "completion_tokens", "total_tokens"])
            .is_some_and(|input| input["usage"].is_null())
    }),
    ("signals of the whole run", |check| match check.what.as_str() {
        "current_best" => true,
        "rank" | "selection_utility" => !is_failure(&check.input),
        _ => false,
    }),
    ("failure that is not called buggy", |check| {
        field(check, &["is_buggy"]).is_some_and(|input| input["node"]["is_buggy"] == false && is_failure(input))
    }),
    ("score beside a failed status", |check| {
        field(check, &["fitness", "delta_vs_parent"])
            .is_some_and(|input| failed_by_status(input) && !check.reference.is_null())
    }),
    ("summary with other fields", |check| {
        field(check, &["rich_summary"]).is_some()
    }),
];

#[tokio::test]
async fn evo_experience_card() {
    let place = Place::with_store();
    compare("evo_experience_card", PREDICATES, async |case| {
        checks(&place, case).await
    })
    .await;
}

async fn checks(place: &Place, case: &Case) -> Vec<Check> {
    let (run, prefix) = (format!("run-{}", case.index), format!("c{}-", case.index));
    let store = Store::open(place.path().join("clade-store"), StoreOptions::default()).unwrap();
    history(&run, &prefix, &case.input).commit(&store).await;
    drop(store);
    let text = place.run(["export", "cards", &run]).ok();
    let ours: Value = serde_json::from_str(&text.replace(&prefix, "")).unwrap();
    let ours = ours.as_array().unwrap().last().unwrap();
    let reference = case.expected.as_object().unwrap();
    let mut input = case.input.clone();
    // What a rule says of the parents: the ids that the reference gives in another field.
    input["ours"] = case.expected["parent_node_ids"].clone();
    reference
        .iter()
        .map(|(name, value)| Check::new(name, &input, value, ours[name].clone()))
        .collect()
}

/// The nodes of the parents, then the node of the case, as our commit would write them.
fn history(run: &str, prefix: &str, input: &Value) -> History {
    let higher = input["lower_is_better"] == false;
    let (node, stat) = (&input["node"], &input["step_stat"]);
    let id = |id: &Value| format!("{prefix}{}", id.as_str().unwrap());
    let signed = |metric: &Value| number(metric).and_then(|metric| signed_score(metric, higher));
    let mut history = History::new(run, higher, &json!({}));
    let parents = node["parents"].as_array().unwrap();
    for parent in parents {
        // A score that does not matter: the parents are there to be named.
        history.node(&id(&parent["id"]), &[], [("is_buggy", true.into())]);
    }
    let best_parent = parents
        .iter()
        .filter_map(|parent| signed(&parent["metric"]))
        .reduce(f64::max);
    let score = signed(&node["metric"]).filter(|_| !is_failure(input));
    let code = node["code"].as_str().unwrap();
    let family = method_family(code);
    let status = stat["status"].as_str().unwrap();
    let logs = ["clear_run_log", "raw_run_log"].map(|log| input[log].as_str().unwrap_or_default());
    let failed = node["is_buggy"] == true || failed_by_status(input);
    let cells: Vec<(&'static str, Cell)> = vec![
        ("step", input["step_index"].as_i64().unwrap().into()),
        ("generation", input["generation_id"].as_i64().into()),
        ("operator", stat["operator"].as_str().unwrap().into()),
        ("code", code.into()),
        ("plan", node["plan"].as_str().map(str::to_owned).into()),
        ("error", node["analysis"].as_str().map(str::to_owned).into()),
        ("status", status.into()),
        ("is_buggy", is_failure(input).into()),
        ("score", number(&stat["score"]).into()),
        ("signed_score", score.into()),
        ("admitted", score.is_some().into()),
        (
            "delta_vs_parent",
            score.zip(best_parent).map(|(own, parent)| own - parent).into(),
        ),
        (
            "error_signature",
            failed.then(|| error_signature(status, &logs.concat())).flatten().into(),
        ),
        ("imports", python_imports(code).into()),
        ("family_count_before", earlier(input, &family).into()),
        ("method_family", family.into()),
        ("sandbox_seconds", number(&stat["sandbox_time_used"]).into()),
        ("model_seconds", number(&stat["model_time_used"]).into()),
    ];
    let parents: Vec<String> = parents.iter().map(|parent| id(&parent["id"])).collect();
    history.node(&id(&node["id"]), &parents, cells);
    if let Some(overview) = node["rich_summary"]["method_overview"].as_str() {
        let summary = [
            ("node_id", id(&node["id"]).into()),
            ("method_overview", overview.into()),
            (
                "parent_comparison_experience",
                node["analysis"].as_str().unwrap().into(),
            ),
        ];
        history.row("evo.summaries", summary);
    }
    history
}

/// Earlier cards of the family, counted as a commit counts them. A card of the node itself does not count.
fn earlier(input: &Value, family: &str) -> i64 {
    let mut index = RunIndex::default();
    for card in input["previous_cards"].as_array().unwrap() {
        if card["node_id"] == input["node"]["id"] {
            continue;
        }
        index.add(IndexedNode {
            node_id: card["node_id"].as_str().unwrap().to_owned(),
            step: 0,
            generation: None,
            island: 0,
            code_hash: None,
            method_family: card["method_family_auto"].as_str().unwrap_or("unknown").to_owned(),
            signed_score: None,
            admitted: false,
            outcome: NodeOutcome {
                status: String::new(),
                score: None,
                score_source: String::new(),
                self_reported_score: None,
                error_class: None,
                error_signature: None,
                error: None,
            },
        });
    }
    index.family_count(family, None)
}
