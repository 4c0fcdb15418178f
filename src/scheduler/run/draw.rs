//! Selection: the rows of the run's policy on a snapshot, and the draw from them for one step.

use std::sync::Arc;

use clade_catalog::Snapshot;
use parking_lot::Mutex;

use super::index::RunIndex;
use crate::operators::Operator;
use crate::policy::{PolicyError, PolicyRow, draw as draw_from, read_rows_with};
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::ids;
use crate::scheduler::run::Run;
use crate::scheduler::services::Services;

/// What was drawn for a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// Operator name.
    pub operator: String,
    /// First parent.
    pub parent_id: Option<String>,
    /// Second parent.
    pub parent2_id: Option<String>,
    /// Island that the parents were drawn for, when the policy names one.
    pub island: Option<i64>,
    /// The draw as JSON.
    pub record: String,
}

/// Rows of a policy, less what was taken for this generation already.
#[derive(Debug)]
pub struct Candidates {
    rows: Vec<PolicyRow>,
}

impl Candidates {
    /// A failed node is repaired once a generation: its debug rows leave the lottery when it is drawn.
    pub fn taken(&mut self, drawn: &Drawn) {
        if drawn.operator == Operator::Debug.as_str() {
            self.rows.retain(|row| {
                row.operator != Operator::Debug || row.parent_id.as_deref() != drawn.parent_id.as_deref()
            });
        }
    }
}

/// Evaluates the run's policy on a snapshot. Its rows get the steps of their parents: ids differ between runs, steps do
/// not, so that the same seed draws the same in every run.
///
/// # Errors
/// When the policy fails or breaks its contract.
pub async fn candidates(
    services: &Services,
    run: &Run,
    index: &Mutex<RunIndex>,
    snapshot: Arc<Snapshot>,
) -> Result<Candidates> {
    let policy = |error: PolicyError| SchedulerError::Policy {
        policy: run.policy.clone(),
        reason: error.to_string(),
    };
    let query = SchedulerError::query(format!("policy '{}'", run.policy));
    let rows = services
        .queries
        .rows(&run.policy_sql, &[], Some(&run.run_id), Some(snapshot))
        .await
        .map_err(query)?;
    let index = index.lock();
    let rows = read_rows_with(rows.batches(), |id| index.place(id).map(|place| place.step)).map_err(policy)?;
    Ok(Candidates { rows })
}

/// Draws for one step; `None` when there is nothing to expand.
///
/// # Errors
/// When the rows contradict each other.
pub fn draw(run: &Run, candidates: &Candidates, step: i64) -> Result<Option<Drawn>> {
    let policy = |reason: String| SchedulerError::Policy {
        policy: run.policy.clone(),
        reason,
    };
    let mut rng = ids::draw_rng(run.options.seed, step);
    let Some(draw) = draw_from(&candidates.rows, &mut rng).map_err(|error| policy(error.to_string()))? else {
        return Ok(None);
    };
    if let Some(island) = draw.island.filter(|island| *island >= run.options.islands) {
        return Err(policy(format!(
            "it draws for island {island}, but the run has {}, counted from 0; read run.settings.islands",
            run.options.islands
        )));
    }
    let island = draw.island;
    let record =
        serde_json::to_string(&draw.record()).map_err(|error| policy(format!("the draw cannot be stored: {error}")))?;
    let mut parents = draw.parents.into_iter();
    let parent_id = parents.next();
    Ok(Some(Drawn {
        operator: draw.operator.as_str().to_owned(),
        parent_id,
        parent2_id: parents.next(),
        island,
        record,
    }))
}
