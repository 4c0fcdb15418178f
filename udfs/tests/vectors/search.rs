//! Search queries composed of the functions.

use datafusion::prelude::SessionContext;
use serde_json::{Value, json};

use super::harness::number;
use super::{Case, Check, Suite};
use crate::session::{booleans, column, floats, integers, put_table, rows, texts};

fn nodes(case: &Case) -> &[Value] {
    case.input["nodes"].as_array().map_or(&[], Vec::as_slice)
}

fn put_nodes(context: &SessionContext, case: &Case, higher_is_better: bool) {
    let nodes = nodes(case);
    put_table(
        context,
        "nodes",
        vec![
            ("i", integers(0..nodes.len() as i64)),
            ("code", texts(nodes.iter().map(|node| node["code"].as_str()))),
            ("metric", floats(nodes.iter().map(|node| number(&node["metric"])))),
            (
                "is_buggy",
                booleans(nodes.iter().map(|node| node["is_buggy"].as_bool())),
            ),
            ("higher", booleans(nodes.iter().map(|_| Some(higher_is_better)))),
        ],
    );
    let edges: Vec<(i64, i64)> = nodes
        .iter()
        .enumerate()
        .flat_map(|(child, node)| {
            node["parents"]
                .as_array()
                .into_iter()
                .flatten()
                .map(move |parent| (child as i64, parent.as_i64().unwrap()))
        })
        .collect();
    put_table(
        context,
        "edges",
        vec![
            ("child", integers(edges.iter().map(|edge| edge.0))),
            ("parent", integers(edges.iter().map(|edge| edge.1))),
        ],
    );
}

/// Utilities and probabilities of candidate parents in one query.
pub struct ParentUtilities;

impl Suite for ParentUtilities {
    const FILE: &'static str = "evo_parent_utilities";

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        let input = &case.input;
        put_nodes(context, case, input["lower_is_better"] == false);
        let candidates = input["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|index| index.as_i64().unwrap());
        put_table(context, "candidates", vec![("i", integers(candidates))]);
        let cards = input["previous_cards"].as_array().unwrap();
        put_table(
            context,
            "cards",
            vec![
                ("node", texts(cards.iter().map(|card| card["node_id"].as_str()))),
                (
                    "family",
                    texts(cards.iter().map(|card| card["method_family_auto"].as_str())),
                ),
            ],
        );
        let ours = rows(context, &utility_query(input)).await.unwrap();
        let reference = case.expected.as_array().unwrap();
        assert_eq!(ours.len(), reference.len());
        const FIELDS: [&str; 7] = [
            "node_id",
            "method_family_auto",
            "score_component",
            "delta_component",
            "novelty_component",
            "utility",
            "probability",
        ];
        reference
            .iter()
            .zip(ours)
            .map(|(reference, ours)| {
                let fields: Vec<&Value> = FIELDS.iter().map(|field| &reference[*field]).collect();
                Check::new("utility", &json!(null), &json!(fields), Value::from(ours))
            })
            .collect()
    }
}

fn utility_query(input: &Value) -> String {
    let component = |name: &str| {
        input["component_normalization"][name]
            .as_str()
            .unwrap_or("minmax")
            .to_owned()
    };
    let hybrid = input["component_normalization"]["hybrid_minmax_weight"]
        .as_f64()
        .unwrap_or(0.5);
    let weight = |name: &str, default: f64| input["weights"][name].as_f64().unwrap_or(default);
    let temperature = input["temperature"].as_f64().unwrap_or(1.0);
    let score = match component("score").as_str() {
        "hybrid" => format!("hybrid_norm(s, {hybrid})"),
        mode => format!("{mode}_norm(s)"),
    };
    format!(
        "WITH signed AS (
            SELECT i, signed_score(metric, higher) AS s, method_family(code) AS family FROM nodes
        ), best_parent AS (
            SELECT child, max(s) AS s FROM edges JOIN signed ON i = parent GROUP BY child
        ), pool AS (
            SELECT signed.i, signed.s, family, coalesce(signed.s - best_parent.s, 0.0) AS delta
            FROM candidates JOIN signed ON signed.i = candidates.i LEFT JOIN best_parent ON child = signed.i
        ), card_counts AS (
            SELECT pool.i, count(*) AS n FROM pool
            JOIN cards ON coalesce(cards.family, 'unknown') = pool.family AND cards.node <> 'n' || pool.i GROUP BY pool.i
        ), counted AS (
            SELECT pool.*, CASE WHEN (SELECT count(*) FROM cards) = 0 THEN count(*) OVER (PARTITION BY family) - 1
                ELSE coalesce(n, 0) END AS earlier
            FROM pool LEFT JOIN card_counts ON card_counts.i = pool.i
        ), components AS (
            SELECT i, family, coalesce({score} OVER (), 0.0) AS score,
                positive_delta_norm(delta, '{delta}', {hybrid}) OVER () AS gain, novelty(earlier) AS novelty
            FROM counted
        ), utilities AS (
            SELECT *, {score_weight} * score + {delta_weight} * gain + {novelty_weight} * novelty AS utility FROM components
        )
        SELECT node, family, score, gain, novelty, utility, probability FROM (
            SELECT *, 'n' || i AS node, softmax(utility, {temperature}) OVER () AS probability FROM utilities
        ) ORDER BY i",
        delta = component("delta"),
        score_weight = weight("score", 1.0),
        delta_weight = weight("delta", 0.4),
        novelty_weight = weight("novelty", 0.25),
    )
}

/// Best node: highest signed score, the earliest of equals.
pub struct BestNode;

impl Suite for BestNode {
    const FILE: &'static str = "evo_best_node";

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        put_nodes(context, case, case.input["maximize"] == true);
        let sql = "SELECT i FROM (SELECT i, signed_score(metric, higher) AS s FROM nodes WHERE NOT is_buggy)
            WHERE s IS NOT NULL ORDER BY s DESC, i LIMIT 1";
        let ours = column(context, sql).await.unwrap().pop().unwrap_or(Value::Null);
        vec![Check::new(
            "best good node",
            &case.input,
            &case.expected["best_good"],
            ours,
        )]
    }
}
