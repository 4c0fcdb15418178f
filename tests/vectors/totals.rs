//! Totals of a benchmark: searches with the grades and the spend of a case, and what the views of a suite make of them.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use clade::engine::Engine;
use serde_json::{Value, json};

use super::harness::{Case, Check, Predicate, compare};
use super::history::{History, attempt};
use crate::engine::fixture::{Fixture, rows, session};

const PREDICATES: &[(&str, Predicate)] = &[
    ("split by difficulty", |check| {
        check.what.contains("middle_") && check.what.ends_with("count")
    }),
    ("best on the hidden test", |check| {
        check.what.starts_with("self_valid_oracle_all_")
    }),
];

/// What the views say, by the reference's name for it.
const TOTALS: &str = "
SELECT sum(cost_usd)                              AS total_cost,
       sum(tokens)                                AS total_tokens,
       sum(steps_done)                            AS total_steps,
       sum(model_seconds)                         AS total_model_time,
       sum(sandbox_seconds)                       AS total_sandbox_time,
       sum(model_seconds + sandbox_seconds)       AS total_model_plus_sandbox_time,
       sum(sandbox_seconds) / 43200               AS sandbox_12h_score,
       sum(model_seconds + sandbox_seconds) / 43200 AS model_plus_sandbox_12h_score,
       count(*)                                   AS all_task_count,
       1 - avg(human_rank)                        AS \"all_grade_avg@n\",
       stddev_pop(human_rank)                     AS \"all_grade_std@n\"
FROM bench.report WHERE suite_id = '{suite}'";

const TOKENS: &str = "
SELECT sum(tokens_prompt)     AS total_prompt_tokens,
       sum(tokens_completion) AS total_completion_tokens
FROM evo.generations g JOIN bench.suite_runs s USING (run_id) WHERE s.suite_id = '{suite}'";

const MEDALS: &str = "
SELECT gold                              AS all_gold_count,
       silver                            AS all_silver_count,
       bronze                            AS all_bronze_count,
       gold + silver + bronze            AS all_any_count,
       gold_rate                         AS all_gold_rate,
       silver / CAST(tasks AS DOUBLE)    AS all_silver_rate,
       bronze / CAST(tasks AS DOUBLE)    AS all_bronze_rate,
       medal_rate                        AS all_any_rate
FROM bench.by_repeat WHERE suite_id = '{suite}'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evo_epoch_stat() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    compare("evo_epoch_stat", PREDICATES, async |case| checks(&engine, case).await).await;
}

async fn checks(engine: &Arc<Engine>, case: &Case) -> Vec<Check> {
    let suite = format!("suite-{}", case.index);
    for (task, stat) in case.input["stats"].as_object().unwrap() {
        plant(engine, &suite, task, stat).await;
    }
    let mut ours = serde_json::Map::new();
    for sql in [TOTALS, TOKENS, MEDALS] {
        let batches = rows(&session(engine), &sql.replace("{suite}", &suite)).await.unwrap();
        let batch = &batches[0];
        assert_eq!(batch.num_rows(), 1, "{sql}");
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            let column = cast(column, &DataType::Float64).unwrap();
            ours.insert(
                field.name().clone(),
                json!(column.as_primitive::<Float64Type>().value(0)),
            );
        }
    }
    let reference = case.expected.as_object().unwrap();
    assert!(ours.keys().all(|name| reference.contains_key(name)), "{ours:?}");
    let check = |(name, value): (&String, &Value)| {
        Check::new(name, &case.input, value, ours.get(name).cloned().unwrap_or(Value::Null))
    };
    reference.iter().map(check).collect()
}

/// A finished search of one step that was graded.
async fn plant(engine: &Arc<Engine>, suite: &str, task: &str, stat: &Value) {
    let run = format!("{suite}.{task}");
    let float = |name: &str| stat[name].as_f64().unwrap();
    let mut history = History::new(&run, true, &json!({}));
    history.row(
        "evo.runs",
        [
            ("status", "finished".into()),
            ("steps_done", stat["num_steps"].as_i64().unwrap().into()),
        ],
    );
    history.row(
        "bench.suite_runs",
        [
            ("suite_id", suite.into()),
            ("run_id", run.as_str().into()),
            ("repeat", 1.into()),
        ],
    );
    let node = format!("{run}.node");
    history.node(
        &node,
        &[],
        [
            ("model_seconds", float("total_model_time").into()),
            ("sandbox_seconds", float("total_sandbox_time").into()),
        ],
    );
    history.row(
        "evo.generations",
        [
            ("attempt_id", attempt(&node).into()),
            ("tokens_prompt", stat["total_prompt_tokens"].as_i64().unwrap().into()),
            (
                "tokens_completion",
                stat["total_completion_tokens"].as_i64().unwrap().into(),
            ),
            ("cost_usd", float("total_cost").into()),
            ("response", "text".into()),
        ],
    );
    let medal = match stat["submit_medal"].as_str().unwrap() {
        "N/A" => "none",
        medal => medal,
    };
    history.row(
        "bench.grades",
        [
            ("node_id", node.as_str().into()),
            ("valid", true.into()),
            ("medal", medal.into()),
            // The reference's grade is the share of the teams that are better.
            ("human_rank", (1.0 - float("submit_grade")).into()),
        ],
    );
    history.commit(engine.store()).await;
}
