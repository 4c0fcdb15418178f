//! The record of runs that `policy_trace` and `policy_compare` replay policies on.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use clade_catalog::Store;
use datafusion::common::ScalarValue;
use parking_lot::Mutex;

use super::names::{NameError, find_run};
use super::policies::policies_of;
use crate::operators::Operator;
use crate::policy::{PolicyError, PolicyHistory, PolicyRow, RecordedNode, RecordedStep, read_rows_with};
use crate::scheduler::draw_rng;
use crate::session::Queries;

/// Steps of the nodes of a run, by node id.
type Steps = Arc<HashMap<String, i64>>;

/// The record of a store.
#[derive(Debug)]
pub struct StoreHistory {
    store: Store,
    queries: Arc<Queries>,
    steps: Mutex<HashMap<String, Steps>>,
}

impl StoreHistory {
    /// The record of a store.
    pub fn new(store: Store, queries: Arc<Queries>) -> Self {
        Self {
            store,
            queries,
            steps: Mutex::default(),
        }
    }

    /// Steps of a run's nodes. Nodes are never changed, so those of an earlier call stay right; the later ones are asked for
    /// again, since the run may still go on.
    async fn node_steps(&self, run_id: &str) -> Result<Steps, PolicyError> {
        let rows = self
            .queries
            .rows(
                "SELECT node_id, step FROM evo.nodes WHERE run_id = $run",
                &[("run", ScalarValue::from(run_id))],
                None,
                None,
            )
            .await?;
        let mut steps = HashMap::with_capacity(rows.len());
        for row in rows.iter() {
            steps.insert(row.text("node_id")?, row.int("step")?);
        }
        let steps = Arc::new(steps);
        self.steps.lock().insert(run_id.to_owned(), Arc::clone(&steps));
        Ok(steps)
    }
}

#[async_trait]
impl PolicyHistory for StoreHistory {
    async fn run_id(&self, name: &str) -> Result<String, PolicyError> {
        find_run(&self.queries, name).await.map_err(|error| match error {
            NameError::Name(message) => PolicyError::Trace(message),
            NameError::Query(error) => error.into(),
        })
    }

    async fn steps(&self, run_id: &str) -> Result<Vec<RecordedStep>, PolicyError> {
        let parameters = [("run", ScalarValue::from(run_id))];
        let run = self
            .queries
            .rows("SELECT seed FROM evo.runs WHERE run_id = $run", &parameters, None, None)
            .await?;
        let Some(run) = run.first() else {
            return Err(PolicyError::Trace(format!(
                "there is no run '{run_id}' in this store; SHOW RUNS lists them"
            )));
        };
        let seed = run.int("seed")?;
        self.node_steps(run_id).await?;
        let attempts = self
            .queries
            .rows(
                "SELECT step, attempt_id, snapshot_id, operator, parent_id, parent2_id FROM evo.attempts
                 WHERE run_id = $run AND draw IS NOT NULL AND NOT late ORDER BY step",
                &parameters,
                None,
                None,
            )
            .await?;
        let mut steps = Vec::with_capacity(attempts.len());
        for attempt in attempts.iter() {
            let step = attempt.int("step")?;
            let operator: Operator = attempt
                .text("operator")?
                .parse()
                .map_err(|error: crate::operators::UnknownOperator| PolicyError::Trace(error.to_string()))?;
            steps.push(RecordedStep {
                step,
                attempt_id: attempt.text("attempt_id")?,
                snapshot_id: attempt.int("snapshot_id")?,
                operator,
                parents: attempt
                    .optional_text("parent_id")?
                    .into_iter()
                    .chain(attempt.optional_text("parent2_id")?)
                    .collect(),
                rng: draw_rng(seed, step),
            });
        }
        Ok(steps)
    }

    async fn nodes(&self, run_id: &str) -> Result<Vec<RecordedNode>, PolicyError> {
        let rows = self
            .queries
            .rows(
                "SELECT node_id, attempt_id, parent_id, parent2_id, CASE WHEN NOT is_buggy THEN signed_score END AS signed_score
                 FROM evo.nodes WHERE run_id = $run ORDER BY step",
                &[("run", ScalarValue::from(run_id))],
                None,
                None,
            )
            .await?;
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

    async fn rows(&self, policy: &str, run_id: &str, snapshot_id: i64) -> Result<Vec<PolicyRow>, PolicyError> {
        let policies = policies_of(&self.store)
            .await
            .map_err(datafusion::error::DataFusionError::from)?;
        let Some(found) = policies.iter().find(|candidate| candidate.name == policy) else {
            let known: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
            return Err(PolicyError::Trace(format!(
                "there is no policy '{policy}'; the policies are {}",
                known.join(", ")
            )));
        };
        let snapshot = self
            .store
            .snapshot(Some(snapshot_id))
            .await
            .map_err(datafusion::error::DataFusionError::from)?;
        let rows = self.queries.rows(&found.sql, &[], Some(run_id), Some(snapshot)).await?;
        let known = self.steps.lock().get(run_id).cloned();
        let steps = match known {
            Some(steps) => steps,
            None => self.node_steps(run_id).await?,
        };
        read_rows_with(rows.batches(), |id| steps.get(id).copied())
    }
}
