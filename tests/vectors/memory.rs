//! Memory: the nodes of a case are written to a store, and the operator's context query chooses among them.

use clade::engine::Engine;
use clade::operators::{ContextSizes, Operator, context_sql};
use clade_udfs::direction::signed_score;
use clade_udfs::programs::{error_signature, method_family};
use datafusion::common::ScalarValue;
use serde_json::{Value, json};

use super::harness::{Case, Check, Predicate, compare, number};
use super::history::History;
use crate::engine::fixture::Fixture;

const PREDICATES: &[(&str, Predicate)] = &[
    ("healthy programs beside the failures", |check| {
        check.what == "debug"
            && check.input["healthy"].as_array().is_some_and(|nodes| {
                nodes
                    .iter()
                    .any(|node| check.reference.as_array().unwrap().contains(node))
            })
    }),
    ("node in several roles", |check| {
        check.what == "sibling" && check.reference != check.input["ours"]
    }),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evo_memory_nodes() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    compare("evo_memory_nodes", PREDICATES, async |case| checks(&engine, case).await).await;
}

fn nodes(case: &Case) -> &[Value] {
    case.input["nodes"].as_array().unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

async fn checks(engine: &Engine, case: &Case) -> Vec<Check> {
    let (run, prefix) = (format!("run-{}", case.index), format!("c{}-", case.index));
    history(&run, &prefix, case).commit(engine.store()).await;
    let shown = shown(engine, &run, &prefix, case).await;
    let of_role = |roles: &[&str]| {
        let nodes = shown.iter().filter(|(role, _)| roles.contains(&role.as_str()));
        nodes.map(|(_, node)| json!(node)).collect::<Vec<Value>>()
    };
    let section = |name: &str| list(&case.expected[name]).to_vec();
    let operator = case.input["operator"].as_str().unwrap();
    let (primary, vertical) = (section("primary"), section("vertical"));
    let check = |what: &str, reference: Vec<Value>, roles: &[&str], ours: Vec<Value>| {
        let healthy: Vec<String> = (0..nodes(case).len())
            .filter(|place| nodes(case)[*place]["is_buggy"] == false)
            .map(|place| format!("n{place}"))
            .collect();
        let input = json!({"healthy": healthy, "ours": ours});
        Check::new(what, &input, &json!(reference), json!(of_role(roles)))
    };
    let once = |nodes: &[Value], before: &[&[Value]]| -> Vec<Value> {
        let is_new = |node: &&Value| !before.iter().any(|section| section.contains(node));
        nodes.iter().filter(is_new).cloned().collect()
    };
    // A parent that is an ancestor of the other parent is a parent first.
    let ancestors = once(&vertical, &[&primary]);
    let siblings = section("horizontal");
    vec![
        check("parent", primary.clone(), &["parent", "parent2"], Vec::new()),
        check("ancestor", ancestors, &["ancestor"], Vec::new()),
        check(
            "sibling",
            siblings.clone(),
            &["sibling"],
            once(&siblings, &[&primary, &vertical]),
        ),
        check(
            operator,
            section("debug_related"),
            &["same_error", "recent_error"],
            failures(case),
        ),
    ]
}

/// Failures that a repair is shown: the same fault first, then the newest.
fn failures(case: &Case) -> Vec<Value> {
    let failing = list(&case.input["parents"])
        .first()
        .and_then(Value::as_u64)
        .unwrap_or(0) as usize;
    let signature = own_signature(&nodes(case)[failing]);
    let mut failures: Vec<usize> = (0..nodes(case).len())
        .rev()
        .filter(|place| *place != failing && nodes(case)[*place]["is_buggy"] == true)
        .collect();
    let is_same = |place: &usize| {
        signature.is_some() && signature.as_deref() == nodes(case)[*place]["card"]["error_signature"].as_str()
    };
    failures.sort_by_key(|place| !is_same(place));
    failures.truncate(case.input["max_related_cards"].as_u64().unwrap() as usize);
    failures.into_iter().map(|place| json!(format!("n{place}"))).collect()
}

/// Role and node of what the operator is shown.
async fn shown(engine: &Engine, run: &str, prefix: &str, case: &Case) -> Vec<(String, String)> {
    let operator: Operator = case.input["operator"].as_str().unwrap().parse().unwrap();
    let parents = list(&case.input["parents"]);
    let parent = |place: usize| {
        let parent = parents.get(place).map(|parent| format!("{prefix}n{parent}"));
        ScalarValue::Utf8(parent.filter(|_| place < operator.arity()))
    };
    let published = ContextSizes::of(operator);
    let size = |name: &str, published: u64| case.input[name].as_u64().unwrap_or(published);
    let sizes = ContextSizes {
        ancestors: size("ancestor_k", published.ancestors),
        siblings: size("sibling_k", published.siblings),
        // The reference does not show them.
        children: 0,
        failures: size("max_related_cards", published.failures),
    };
    let mut parameters = vec![
        ("run_id", ScalarValue::from(run)),
        ("parent_id", parent(0)),
        ("parent2_id", parent(1)),
    ];
    parameters.extend(sizes.parameters());
    let sql = format!(
        "SELECT role, node_id FROM ({}) AS shown ORDER BY place",
        context_sql(operator)
    );
    let rows = engine.queries().rows(&sql, &parameters, None, None).await.unwrap();
    rows.iter()
        .map(|row| {
            (
                row.text("role").unwrap(),
                row.text("node_id").unwrap().replace(prefix, ""),
            )
        })
        .collect()
}

/// Signature of a failed node, read from its run as a commit reads it.
fn own_signature(node: &Value) -> Option<String> {
    let log = node["info"]["raw_run_log"].as_str().unwrap_or_default();
    error_signature(node["info"]["status"].as_str().unwrap(), log)
}

fn history(run: &str, prefix: &str, case: &Case) -> History {
    let higher = case.input["lower_is_better"] == false;
    let mut history = History::new(run, higher, &json!({}));
    let signed = |node: &Value| {
        number(&node["metric"])
            .filter(|_| node["is_buggy"] == false)
            .and_then(|metric| signed_score(metric, higher))
    };
    let failing = (case.input["operator"] == "debug").then(|| case.input["parents"][0].as_u64().unwrap() as usize);
    for (place, node) in nodes(case).iter().enumerate() {
        let family = method_family(node["code"].as_str().unwrap());
        // The reference counts the cards of all other nodes; ours counts the earlier ones when a node is committed. What is
        // compared is the choice, so the count is taken as it is there.
        let count = nodes(case)
            .iter()
            .enumerate()
            .filter(|(other, node)| *other != place && node["card"]["method_family_auto"] == *family)
            .count();
        let parents = list(&node["parents"]);
        let best_parent = parents
            .iter()
            .filter_map(|parent| signed(&nodes(case)[parent.as_u64().unwrap() as usize]))
            .reduce(f64::max);
        let card = node["card"]["error_signature"].as_str().map(str::to_owned);
        let signature = if failing == Some(place) {
            own_signature(node)
        } else {
            card
        };
        let cells = [
            ("step", (place as i64 + 1).into()),
            ("code", node["code"].as_str().map(str::to_owned).into()),
            ("is_buggy", (node["is_buggy"] == true).into()),
            ("signed_score", signed(node).into()),
            (
                "delta_vs_parent",
                signed(node).zip(best_parent).map(|(own, parent)| own - parent).into(),
            ),
            ("family_count_before", (count as i64).into()),
            ("method_family", family.into()),
            ("error_signature", signature.into()),
        ];
        let parents: Vec<String> = parents.iter().map(|parent| format!("{prefix}n{parent}")).collect();
        history.node(&format!("{prefix}n{place}"), &parents, cells);
    }
    history
}
