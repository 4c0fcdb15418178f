//! The final selection: which node a run ends with. It sees validation scores, or on request what programs print about themselves;
//! test scores it never sees.

use datafusion::common::ScalarValue;
use rand::Rng;

use crate::grading::FinalSelection;
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::ids;
use crate::scheduler::run::Run;
use crate::scheduler::services::Services;
use crate::session::ResultRow;

/// What a node is chosen by where none has a score.
const DRAW: &str = "draw";

/// A node whose program runs on the final data.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The node.
    pub node_id: String,
    /// Its program.
    pub code: String,
    /// Seed of its generation, which the program finds in `CLADE_SEED`.
    pub seed: i64,
    /// How it was chosen; none for a node that was not chosen but was once the best.
    pub by: Option<String>,
}

impl Chosen {
    fn of(row: ResultRow<'_>, by: Option<&str>) -> datafusion::error::Result<Self> {
        Ok(Self {
            node_id: row.text("node_id")?,
            code: row.text("code")?,
            seed: row.int("seed")?,
            by: by.map(str::to_owned),
        })
    }
}

/// Chooses by the run's protocol; where no node has a score that it goes by, a seeded draw among the nodes that have a program.
///
/// # Errors
/// When a query fails.
pub async fn choose(services: &Services, run: &Run) -> Result<Option<Chosen>> {
    let protocol = run.options.final_selection;
    let sql = match protocol {
        FinalSelection::Evaluator => include_str!("../../../sql/final/evaluator.sql"),
        FinalSelection::SelfReported => include_str!("../../../sql/final/self_reported.sql"),
    };
    let parameters = [("run", ScalarValue::from(run.run_id.as_str()))];
    match nodes(services, sql, &parameters, Some(protocol.as_str())).await?.pop() {
        Some(best) => Ok(Some(best)),
        None => draw(services, run).await,
    }
}

async fn draw(services: &Services, run: &Run) -> Result<Option<Chosen>> {
    let of_run = ("run", ScalarValue::from(run.run_id.as_str()));
    let count = async || -> datafusion::error::Result<i64> {
        let sql = include_str!("../../../sql/final/programs.sql");
        let rows = services
            .queries
            .rows(sql, std::slice::from_ref(&of_run), None, None)
            .await?;
        rows.first().map_or(Ok(0), |row| row.int("programs"))
    };
    let programs = count().await.map_err(SchedulerError::query("final selection"))?;
    if programs == 0 {
        return Ok(None);
    }
    let place = ids::draw_rng(run.options.seed, -1).random_range(0..programs);
    let parameters = [of_run, ("place", ScalarValue::from(place))];
    let drawn = include_str!("../../../sql/final/drawn.sql");
    Ok(nodes(services, drawn, &parameters, Some(DRAW)).await?.pop())
}

/// The nodes that were better than everything before them, in their order.
///
/// # Errors
/// When the query fails.
pub async fn incumbents(services: &Services, run: &Run) -> Result<Vec<Chosen>> {
    let incumbents = include_str!("../../../sql/final/incumbents.sql");
    let parameters = [("run", ScalarValue::from(run.run_id.as_str()))];
    nodes(services, incumbents, &parameters, None).await
}

/// A node that was chosen before.
///
/// # Errors
/// When the query fails or the node has no program.
pub async fn chosen_before(services: &Services, node_id: &str, by: Option<&str>) -> Result<Option<Chosen>> {
    let node = include_str!("../../../sql/final/node.sql");
    let parameters = [("node", ScalarValue::from(node_id))];
    Ok(nodes(services, node, &parameters, by).await?.pop())
}

async fn nodes(
    services: &Services,
    sql: &str,
    parameters: &[(&str, ScalarValue)],
    by: Option<&str>,
) -> Result<Vec<Chosen>> {
    let read = async || -> datafusion::error::Result<Vec<Chosen>> {
        let rows = services.queries.rows(sql, parameters, None, None).await?;
        rows.iter().map(|row| Chosen::of(row, by)).collect()
    };
    read().await.map_err(SchedulerError::query("final selection"))
}
