//! The strategy board: the cards of a case become nodes, and the board comes out of `clade export board`.

use clade_catalog::{Store, StoreOptions};
use serde_json::{Map, Value, json};

use super::harness::{Case, Check, Predicate, compare, number};
use super::history::{History, attempt};
use crate::cli::fixture::Place;

/// Statuses of the reference that our executor would call a failure.
const FAILURES: [&str; 2] = ["failed", "timeout"];

/// Parts of the board that need no word.
const PLAIN: [&str; 9] = [
    "schema_version",
    "num_nodes",
    "underexplored_families",
    "novelty_by_node",
    "family_best_nodes",
    "recent_delta_trend",
    "status_count",
    "operator_counts",
    "runtime_stats",
];

fn fitness(card: &Value) -> Option<f64> {
    number(&card["fitness"]).filter(|fitness| fitness.is_finite())
}

fn failed_by_status(card: &Value) -> bool {
    FAILURES.iter().any(|status| card["status"] == *status)
}

fn is_failure(card: &Value) -> bool {
    card["is_buggy"] == true || failed_by_status(card)
}

/// The reference ranks it, although its status is a failure.
fn is_ranked_failure(card: &Value) -> bool {
    card["is_buggy"] == false && failed_by_status(card) && fitness(card).is_some()
}

/// The cards that a comparison is about.
fn about(check: &Check) -> impl Iterator<Item = &Value> {
    check.input["about"].as_array().into_iter().flatten()
}

const PREDICATES: &[(&str, Predicate)] = &[
    ("score beside a failed status", |check| {
        ["best", "ranks", "current best", "score history"].contains(&check.what.as_str())
            && about(check).any(is_ranked_failure)
    }),
    ("failure by an HTTP code alone", |check| {
        let by_code = |card: &Value| !is_failure(card) && card["status_code"].as_i64().is_some_and(|code| code >= 400);
        check.what == "repeated error" && about(check).any(by_code)
    }),
    ("parents", |check| {
        let lists = check.reference.as_object().into_iter().flat_map(Map::values);
        check.what == "parent graph" && lists.into_iter().any(|list| list != &json!([]))
    }),
];

#[tokio::test]
async fn evo_strategy_board() {
    let place = Place::with_store();
    compare("evo_strategy_board", PREDICATES, async |case| {
        checks(&place, case).await
    })
    .await;
}

fn cards(case: &Case) -> &[Value] {
    case.input["cards"].as_array().unwrap()
}

async fn checks(place: &Place, case: &Case) -> Vec<Check> {
    let (run, prefix) = (format!("run-{}", case.index), format!("c{}-", case.index));
    let lower = case.input["lower_is_better"] == true;
    let store = Store::open(place.path().join("clade-store"), StoreOptions::default()).unwrap();
    history(&run, &prefix, cards(case), lower).commit(&store).await;
    drop(store);
    let text = place.run(["export", "board", &run]).ok();
    let ours: Value = serde_json::from_str(&text.replace(&prefix, "")).unwrap();
    let reference = &case.expected;
    let check = |what: &str, about: &[Value], reference: &Value, ours: &Value, by_status: Value| {
        let input = json!({"about": about, "ours": by_status});
        Check::new(what, &input, reference, ours.clone())
    };
    let mut checks: Vec<Check> = PLAIN
        .iter()
        .map(|field| check(field, &[], &reference[*field], &ours[*field], Value::Null))
        .collect();

    let order = valid_by_rank(cards(case), lower);
    let best = |board: &Value| ["best_node", "best_score", "current_best_family"].map(|field| board[field].clone());
    let of_reference: Vec<Value> = cards(case)
        .iter()
        .filter(|card| card["node_id"] == reference["best_node"])
        .cloned()
        .collect();
    checks.push(check(
        "best",
        &of_reference,
        &json!(best(reference)),
        &json!(best(&ours)),
        order.first().map_or(json!([null, null, null]), |card| {
            json!([card["node_id"], card["fitness"], family(card)])
        }),
    ));
    let ranks: Map<String, Value> = order
        .iter()
        .zip(1..)
        .map(|(card, rank)| (id(card).to_owned(), json!(rank)))
        .collect();
    checks.push(check(
        "ranks",
        cards(case),
        &reference["rank_by_node"],
        &ours["rank_by_node"],
        json!(ranks),
    ));
    let current: Map<String, Value> = cards(case)
        .iter()
        .map(|card| {
            (
                id(card).to_owned(),
                json!(order.first().is_some_and(|best| id(best) == id(card))),
            )
        })
        .collect();
    checks.push(check(
        "current best",
        &of_reference,
        &reference["current_best_by_node"],
        &ours["current_best_by_node"],
        json!(current),
    ));
    checks.push(check(
        "families",
        &[],
        &reference["method_family_stats"],
        &ours["method_family_stats"],
        Value::Null,
    ));
    checks.extend(repeated_errors(case, &ours));
    let by_id: Map<String, Value> = cards(case)
        .iter()
        .map(|card| (id(card).to_owned(), json!(parents(card, ""))))
        .collect();
    checks.push(check(
        "parent graph",
        &[],
        &reference["parent_graph"],
        &ours["parent_graph"],
        json!(by_id),
    ));
    let (theirs, own) = (list(&reference["score_history"]), list(&ours["score_history"]));
    assert_eq!(theirs.len(), own.len());
    for ((card, entry), own) in cards(case).iter().zip(theirs).zip(own) {
        let mut without = entry.clone();
        without["fitness"] = Value::Null;
        checks.push(check("score history", std::slice::from_ref(card), entry, own, without));
    }
    checks.push(check(
        "draws",
        &[],
        &reference["parent_selection_weights"],
        &ours["parent_selection_weights"],
        Value::Null,
    ));
    checks
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn id(card: &Value) -> &str {
    card["node_id"].as_str().unwrap()
}

fn family(card: &Value) -> &str {
    card["method_family_auto"].as_str().unwrap_or("unknown")
}

/// The nodes of the steps that a card names as parents.
fn parents(card: &Value, prefix: &str) -> Vec<String> {
    list(&card["parents"])
        .iter()
        .map(|step| format!("{prefix}n{step}"))
        .collect()
}

/// Cards of programs that did not fail, the best first, the earlier of equals first.
fn valid_by_rank(cards: &[Value], lower: bool) -> Vec<&Value> {
    let mut valid: Vec<&Value> = cards
        .iter()
        .filter(|card| !is_failure(card) && fitness(card).is_some())
        .collect();
    valid.sort_by(|a, b| {
        let order = fitness(b).unwrap().total_cmp(&fitness(a).unwrap());
        if lower { order.reverse() } else { order }
    });
    valid
}

/// How often each fault came: one comparison a fault.
fn repeated_errors(case: &Case, ours: &Value) -> Vec<Check> {
    let mut signatures: Vec<&str> = cards(case)
        .iter()
        .filter_map(|card| card["error_signature"].as_str())
        .collect();
    signatures.sort_unstable();
    signatures.dedup();
    let check = |signature: &&str| {
        let about: Vec<&Value> = cards(case)
            .iter()
            .filter(|card| card["error_signature"] == *signature)
            .collect();
        let failures = about.iter().filter(|card| is_failure(card)).count();
        let input = json!({"about": about, "ours": (failures > 0).then_some(failures)});
        let count = |board: &Value| board["repeated_errors"].get(signature).cloned().unwrap_or_default();
        Check::new("repeated error", &input, &count(&case.expected), count(ours))
    };
    signatures.iter().map(check).collect()
}

/// The nodes that the cards describe, as our commit would write them: a failure has no valid score.
fn history(run: &str, prefix: &str, cards: &[Value], lower: bool) -> History {
    let mut history = History::new(run, !lower, &json!({}));
    let mut families: Map<String, Value> = Map::new();
    for card in cards {
        let node = format!("{prefix}{}", id(card));
        let before = families.get(family(card)).and_then(Value::as_i64).unwrap_or(0);
        families.insert(family(card).to_owned(), json!(before + 1));
        let signed = fitness(card)
            .filter(|_| !is_failure(card))
            .map(|fitness| if lower { -fitness } else { fitness });
        let word = |field: &str| {
            card[field]
                .as_str()
                .filter(|word| !word.is_empty())
                .unwrap_or("unknown")
        };
        let cells = [
            ("step", card["step_id"].as_i64().unwrap().into()),
            ("operator", word("operator").into()),
            ("status", word("status").into()),
            ("is_buggy", (is_failure(card) || fitness(card).is_none()).into()),
            ("score", number(&card["score"]).into()),
            ("signed_score", signed.into()),
            ("method_family", family(card).into()),
            ("family_count_before", before.into()),
            ("delta_vs_parent", number(&card["delta_vs_parent"]).into()),
            (
                "error_signature",
                card["error_signature"].as_str().map(str::to_owned).into(),
            ),
            ("sandbox_seconds", number(&card["sandbox_time_used"]).into()),
            ("model_seconds", number(&card["model_time_used"]).into()),
        ];
        history.node(&node, &parents(card, prefix), cells);
        for drawn in list(&card["parent_selection_trace"]["selected_node_ids"]) {
            let cells = [
                ("attempt_id", attempt(&node).into()),
                ("node_id", node.as_str().into()),
                ("step", card["step_id"].as_i64().unwrap().into()),
                ("parent_id", format!("{prefix}{}", drawn.as_str().unwrap()).into()),
                ("draw", "{}".into()),
            ];
            history.row("evo.attempts", cells);
        }
    }
    history
}
