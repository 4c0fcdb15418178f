//! Outcomes: an evaluation as a case describes it goes through the engine, and the node says what became of it.

use std::sync::Arc;

use async_trait::async_trait;
use clade::engine::OpenMode;
use clade::sandbox::{Evaluation, EvaluationSpec, Evaluator, ResultState, SandboxError};
use clade::scheduler::Sandbox;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::harness::{Case, Check, Predicate, compare};
use crate::engine::fixture::{add_task, open_store, session, texts};
use crate::engine::instant::Instant;
use crate::peers::bed::{Given, scored};

const PREDICATES: &[(&str, Predicate)] = &[("search by the test score", |check| {
    check.input["use_test_score"] == true
})];

/// Says what the case says.
#[derive(Debug)]
struct Told {
    score: Option<f64>,
    valid: bool,
}

#[async_trait]
impl Evaluator for Told {
    async fn evaluate(&self, _: EvaluationSpec, _: &CancellationToken) -> Result<Evaluation, SandboxError> {
        let is_scored = self.score.is_some() && self.valid;
        Ok(Evaluation {
            score: self.score.filter(|_| self.valid),
            valid: self.valid,
            higher_is_better: Some(true),
            metric_class: Some("TestMetrics".into()),
            state: if is_scored {
                ResultState::Success
            } else {
                ResultState::ScoringFailed
            },
            detail: None,
            wall_seconds: 0.001,
            instances: std::collections::BTreeMap::new(),
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evo_parse_eval_result() {
    compare("evo_parse_eval_result", PREDICATES, async |case| checks(case).await).await;
}

async fn checks(case: &Case) -> Vec<Check> {
    let folder = tempfile::tempdir().unwrap();
    let input = &case.input;
    assert_eq!(
        input["exit_code"], 0,
        "{}: programs that fail are in other tests",
        case.name
    );
    let sandbox = Sandbox {
        executor: Arc::new(Instant::default()),
        evaluator: Arc::new(Told {
            score: input["validation_fitness"].as_f64(),
            valid: input["valid"].as_bool().unwrap_or(true),
        }),
    };
    let models = vec![Arc::new(Given::new([scored(1, 0.0)])) as _];
    let store = folder.path().join("store");
    let engine = open_store(&store, &[], models, sandbox, OpenMode::Create)
        .await
        .unwrap();
    add_task(&engine, "toy").await;
    let client = session(&engine);
    texts(&client, "SELECT 'toy' AS task_id EXPAND WITH draft (seed => 1)").await;
    let told = texts(
        &client,
        "SELECT concat_ws(' ', CAST(is_buggy AS VARCHAR), COALESCE(CAST(score AS VARCHAR), 'null'), CAST(signed_score IS NULL AS VARCHAR)) FROM evo.nodes",
    )
    .await;
    let [is_buggy, metric, is_worst] = told[0].split(' ').collect::<Vec<_>>()[..] else {
        panic!("{told:?}")
    };
    let read = |word: &str| serde_json::from_str::<Value>(word).unwrap();
    let ours = json!({
        "is_buggy": read(is_buggy), "metric": read(metric), "is_worst": read(is_worst),
        // No model is asked what an outcome means.
        "used_llm": false,
    });
    vec![Check::new("outcome", input, &case.expected, ours)]
}
