//! Replaying policies on a recorded run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use async_trait::async_trait;
use clade_catalog::{Snapshot, Store};
use datafusion::prelude::SessionContext;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::json;

use super::testkit::History;
use super::*;
use crate::operators::Operator;
use crate::session::ResultRows;

/// A run in a real store: policies are asked on the snapshot of each step.
#[derive(Debug)]
pub(super) struct Recorded {
    store: Store,
    context: Session,
    steps: Vec<RecordedStep>,
}

struct Session(SessionContext);

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}

impl Recorded {
    /// The record of a search.
    pub(super) fn new(history: &History, context: SessionContext, steps: Vec<RecordedStep>) -> Self {
        Self {
            store: history.store().clone(),
            context: Session(context),
            steps,
        }
    }

    async fn rows_at(store: &Store, context: &SessionContext, policy: &str, snapshot: i64) -> Vec<PolicyRow> {
        let snapshot: Arc<Snapshot> = store.snapshot(Some(snapshot)).await.unwrap();
        let mut state = context.state();
        state.config_mut().set_extension(snapshot);
        let pinned = SessionContext::new_with_state(state);
        let frame = pinned.sql(&format!("SELECT * FROM policies.{policy}")).await.unwrap();
        read_rows(&frame.collect().await.unwrap()).unwrap()
    }
}

#[async_trait]
impl PolicyHistory for Recorded {
    async fn run_id(&self, name: &str) -> Result<String, PolicyError> {
        Ok(name.to_owned())
    }

    async fn steps(&self, run_id: &str) -> Result<Vec<RecordedStep>, PolicyError> {
        if run_id == "r" {
            Ok(self.steps.clone())
        } else {
            Err(PolicyError::Trace(format!("there is no run '{run_id}'")))
        }
    }

    async fn nodes(&self, _run_id: &str) -> Result<Vec<RecordedNode>, PolicyError> {
        let sql = "SELECT node_id, attempt_id, parent_id, parent2_id, signed_score FROM run.nodes ORDER BY step";
        let rows = ResultRows::new(self.context.0.sql(sql).await?.collect().await?);
        let nodes = rows.iter().map(|row| {
            let parents = [row.optional_text("parent_id")?, row.optional_text("parent2_id")?];
            Ok(RecordedNode {
                node_id: row.text("node_id")?,
                attempt_id: row.text("attempt_id")?,
                parents: parents.into_iter().flatten().collect(),
                signed_score: row.optional_float("signed_score")?,
            })
        });
        nodes.collect()
    }

    async fn rows(&self, policy: &str, _run_id: &str, snapshot_id: i64) -> Result<Vec<PolicyRow>, PolicyError> {
        Ok(Self::rows_at(&self.store, &self.context.0, policy, snapshot_id).await)
    }
}

/// Search with a policy for some steps; the score of a node is set by its step.
pub(super) async fn search(policy: &str, steps: i64) -> (History, Vec<RecordedStep>) {
    let mut history = History::new(json!({"drafts": 3, "generation_size": 2, "crossover_after": 2})).await;
    let mut recorded = Vec::new();
    for step in 1..=steps {
        let rng = ChaCha12Rng::seed_from_u64(step as u64);
        let snapshot_id = history.store().snapshot(None).await.unwrap().seq();
        let rows = history.policy(policy).await;
        let drawn = draw(&rows, &mut rng.clone()).unwrap().unwrap();
        let parents: Vec<&str> = drawn.parents.iter().map(String::as_str).collect();
        let score = (step % 4 != 0).then_some((step % 7) as f64 / 7.0);
        history
            .node(&format!("n{step:02}"), drawn.operator.as_str(), &parents, score)
            .await;
        recorded.push(RecordedStep {
            step,
            attempt_id: format!("attempt-n{step:02}"),
            snapshot_id,
            operator: drawn.operator,
            parents: drawn.parents,
            rng,
        });
    }
    (history, recorded)
}

#[tokio::test]
async fn a_run_replays_to_itself_and_policies_differ() {
    let (history, steps) = search("openmle_evo", 16).await;
    assert!(
        steps.iter().any(|step| step.operator == Operator::Crossover),
        "the run is long enough to show crossover"
    );
    let context = history.session().await;
    let record = Recorded::new(&history, context.clone(), steps);
    context.register_udtf("policy_trace", Arc::new(PolicyTrace::new(Arc::new(record))));

    let count = async |sql: &str| context.sql(sql).await.unwrap().count().await.unwrap();
    assert_eq!(
        count("SELECT * FROM policy_trace('openmle_evo', 'r') WHERE agrees AND probability > 0").await,
        16
    );
    let differ = count("SELECT * FROM policy_trace('best_of_n', 'r') WHERE NOT agrees AND probability = 0").await;
    let drafts =
        count("SELECT * FROM policy_trace('best_of_n', 'r') WHERE operator = 'draft' AND probability = 1").await;
    assert_eq!(differ + drafts, 16);
    assert!(drafts >= 3);

    let compared = count(
        "SELECT * FROM policy_trace('uniform', 'r') a JOIN policy_trace('map_elites', 'r') b ON a.step = b.step
         WHERE a.drawn_operator = b.drawn_operator",
    )
    .await;
    assert!(compared > 0);

    let error = context
        .sql("SELECT * FROM policy_trace('uniform', 'x')")
        .await
        .unwrap()
        .collect()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("there is no run 'x'"), "{error}");
    let error = context.sql("SELECT * FROM policy_trace('uniform')").await.unwrap_err();
    assert!(error.to_string().contains("found 1 arguments"), "{error}");
}
