//! Normalisation and softmax.

use datafusion::prelude::SessionContext;
use serde_json::{Value, json};

use super::harness::number;
use super::{Case, Check, Predicate, Suite};
use crate::session::{column, floats, integers, put_table, value};

fn put_values(context: &SessionContext, values: &[Value]) {
    put_table(
        context,
        "t",
        vec![
            ("i", integers(0..values.len() as i64)),
            ("x", floats(values.iter().map(number))),
        ],
    );
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Score and gain normalisation; a missing value counts as 0 by `coalesce`, as the reference does.
pub struct Normalization;

impl Suite for Normalization {
    const FILE: &'static str = "evo_normalization";
    const PREDICATES: &'static [(&'static str, Predicate)] = &[("invalid value among equal scores", |check| {
        let finite: Vec<f64> = list(&check.input["values"])
            .iter()
            .filter_map(number)
            .filter(|value| value.is_finite())
            .collect();
        let all_equal = finite
            .first()
            .is_some_and(|first| finite.iter().all(|value| value == first));
        let invalid = number(&check.input["value"]).is_some_and(|value| !value.is_finite());
        check.input["kind"] == "score" && check.input["mode"] != "rank" && invalid && all_equal
    })];

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        let input = &case.input;
        let values = list(&input["values"]);
        put_values(context, values);
        let mode = input["mode"].as_str().unwrap();
        let weight = &input["hybrid_minmax_weight"];
        let normalized = if input["kind"] == "score" {
            let weight = if mode == "hybrid" {
                format!(", {weight}")
            } else {
                String::new()
            };
            format!(
                "{mode}_norm(signed_score(x, {}){weight}) OVER ()",
                input["lower_is_better"] == false
            )
        } else {
            format!("positive_delta_norm(x, '{mode}', {weight}) OVER ()")
        };
        let sql = format!("SELECT v FROM (SELECT i, coalesce({normalized}, 0.0) AS v FROM t) ORDER BY i");
        let ours = column(context, &sql).await.unwrap();
        assert_eq!(ours.len(), values.len());
        let reference = list(&case.expected);
        values
            .iter()
            .zip(reference)
            .zip(ours)
            .map(|((value, reference), ours)| {
                let input = json!({"kind": input["kind"], "mode": mode, "value": value, "values": values});
                Check::new(format!("{mode} of {value}"), &input, reference, ours)
            })
            .collect()
    }
}

/// Softmax over a pool.
pub struct Softmax;

impl Suite for Softmax {
    const FILE: &'static str = "evo_softmax";

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        put_values(context, list(&case.input["values"]));
        let sql = format!(
            "SELECT p FROM (SELECT i, softmax(x, {}) OVER () AS p FROM t) ORDER BY i",
            case.input["temperature"]
        );
        let ours = column(context, &sql).await.unwrap();
        vec![Check::new("softmax", &case.input, &case.expected, Value::from(ours))]
    }
}

/// Temperature of a generation.
pub struct LinearDecay;

impl Suite for LinearDecay {
    const FILE: &'static str = "evo_linear_decay";

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        let [initial, last, generations, generation] =
            ["initial_temp", "final_temp", "num_generations", "iteration"].map(|name| &case.input[name]);
        let sql = format!("SELECT linear_decay({initial}, {last}, {generations}, {generation})");
        vec![Check::new(
            "linear_decay",
            &case.input,
            &case.expected,
            value(context, &sql).await,
        )]
    }
}
