//! Replays a policy on a finished run: at every recorded step, on the snapshot the step saw, what would it have chosen?

use std::fmt::Debug;

use async_trait::async_trait;
use rand_chacha::ChaCha12Rng;

use crate::operators::Operator;

use super::draw::Lottery;
use super::error::PolicyError;
use super::rows::PolicyRow;

/// A step of a run as it was recorded.
#[derive(Debug, Clone)]
pub struct RecordedStep {
    /// Step.
    pub step: i64,
    /// Attempt of the step.
    pub attempt_id: String,
    /// Snapshot on which its parents were chosen.
    pub snapshot_id: i64,
    /// Operator that was drawn.
    pub operator: Operator,
    /// Parents that were drawn.
    pub parents: Vec<String>,
    /// Generator of the step's draw, as it was before the draw.
    pub rng: ChaCha12Rng,
}

/// A node of a run as it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedNode {
    /// Node.
    pub node_id: String,
    /// Attempt that made it.
    pub attempt_id: String,
    /// Its parents.
    pub parents: Vec<String>,
    /// Score, higher is better; `None` when it has no valid one.
    pub signed_score: Option<f64>,
}

/// The record of runs, and a way to ask a policy at any point of it.
#[async_trait]
pub trait PolicyHistory: Debug + Send + Sync {
    /// The run that a name means, such as the beginning of its id.
    async fn run_id(&self, name: &str) -> Result<String, PolicyError>;

    /// The steps of a run that a policy drew, in order. An unknown run is an error that names it.
    async fn steps(&self, run_id: &str) -> Result<Vec<RecordedStep>, PolicyError>;

    /// The nodes of a run in the order of their steps.
    async fn nodes(&self, run_id: &str) -> Result<Vec<RecordedNode>, PolicyError>;

    /// The rows of a policy for a run on a snapshot. An unknown policy is an error that lists the known ones.
    async fn rows(&self, policy: &str, run_id: &str, snapshot_id: i64) -> Result<Vec<PolicyRow>, PolicyError>;
}

/// What a policy would have done at one step.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceRow {
    /// Step.
    pub step: i64,
    /// Attempt of the step.
    pub attempt_id: String,
    /// Snapshot of the step.
    pub snapshot_id: i64,
    /// Operator that the run took.
    pub operator: Operator,
    /// Parents that the run took.
    pub parents: Vec<String>,
    /// Probability that the policy takes the same operator and parents; 0 when it does not offer them.
    pub probability: f64,
    /// Operator that the policy draws with the step's random numbers; `None` when it offers nothing.
    pub drawn_operator: Option<Operator>,
    /// Parents that the policy draws with the step's random numbers.
    pub drawn_parents: Vec<String>,
    /// Number of candidates for the drawn operator.
    pub candidates: usize,
}

impl TraceRow {
    /// Whether the policy draws what the run took.
    pub fn agrees(&self) -> bool {
        self.drawn_operator == Some(self.operator) && self.drawn_parents == self.parents
    }
}

/// Replay one step. Only the record is read: nothing is generated and nothing runs.
pub async fn trace_step(
    history: &dyn PolicyHistory,
    policy: &str,
    run_id: &str,
    recorded: RecordedStep,
) -> Result<TraceRow, PolicyError> {
    let rows = history.rows(policy, run_id, recorded.snapshot_id).await?;
    let lottery = Lottery::new(&rows)?;
    let mut rng = recorded.rng;
    let drawn = lottery.as_ref().and_then(|lottery| lottery.draw(&mut rng));
    let parents: Vec<&str> = recorded.parents.iter().map(String::as_str).collect();
    Ok(TraceRow {
        step: recorded.step,
        attempt_id: recorded.attempt_id,
        snapshot_id: recorded.snapshot_id,
        operator: recorded.operator,
        probability: lottery.map_or(0.0, |lottery| lottery.probability_of(recorded.operator, &parents)),
        parents: recorded.parents,
        drawn_operator: drawn.as_ref().map(|drawn| drawn.operator),
        candidates: drawn.as_ref().map_or(0, |drawn| drawn.candidates.len()),
        drawn_parents: drawn.map(|drawn| drawn.parents).unwrap_or_default(),
    })
}
