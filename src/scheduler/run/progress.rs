//! The end of a run: how far it got, its best node, and the leaderboard that its grade is placed on.

use datafusion::common::ScalarValue;

use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::run::{BestNode, Progress, Run};
use crate::scheduler::services::Services;

/// How far a run is: committed steps and its best node, the earliest on ties. Nodes that an EXPAND has added to the run are no
/// steps of it, but they may be its best.
///
/// # Errors
/// When the query fails.
pub async fn progress(services: &Services, run: &Run) -> Result<Progress> {
    let rows = services
        .queries
        .rows(
            "SELECT count(*) FILTER (WHERE statement_id = $statement) AS steps,
                    first_value(node_id ORDER BY signed_score DESC NULLS LAST, step) AS node_id,
                    first_value(score ORDER BY signed_score DESC NULLS LAST, step) AS score,
                    first_value(step ORDER BY signed_score DESC NULLS LAST, step) AS step,
                    count(signed_score) AS scored
             FROM evo.nodes WHERE run_id = $run",
            &[
                ("run", ScalarValue::from(run.run_id.as_str())),
                ("statement", ScalarValue::from(run.statement_id.as_str())),
            ],
            None,
            None,
        )
        .await
        .map_err(SchedulerError::query("progress of the run"))?;
    let read = || -> datafusion::error::Result<Progress> {
        let Some(row) = rows.first() else {
            return Ok(Progress::running(0));
        };
        let mut progress = Progress::running(row.int("steps")?);
        if row.int("scored")? > 0 {
            progress.best = Some(BestNode {
                node_id: row.text("node_id")?,
                score: row.optional_float("score")?,
                step: row.int("step")?,
            });
        }
        Ok(progress)
    };
    read().map_err(SchedulerError::query("progress of the run"))
}

/// Scores of a task's leaderboard, best first.
///
/// # Errors
/// When the query fails.
pub async fn leaderboard(services: &Services, task: &crate::gym::Task) -> Result<Vec<f64>> {
    let rows = services
        .queries
        .rows(
            "SELECT score FROM gym.leaderboards WHERE task_id = $task AND package_hash = $package ORDER BY rank",
            &[
                ("task", ScalarValue::from(task.row.task_id.as_str())),
                ("package", ScalarValue::from(task.row.package_hash.as_str())),
            ],
            None,
            None,
        )
        .await
        .map_err(SchedulerError::query("leaderboard"))?;
    let scores = rows
        .iter()
        .filter_map(|row| row.optional_float("score").transpose())
        .collect::<Result<_, _>>();
    scores.map_err(SchedulerError::query("leaderboard"))
}
