//! What a page shows of a run, read from the store.

use std::collections::HashMap;

use minijinja::Value;
use serde::Deserialize;

use super::MOST_PROGRAMS;
use super::error::ReportError;
use super::rows::{self, Source, records};
use crate::session::ResultRow;

/// A run.
pub(super) struct RunFacts {
    /// Its row of `run.sql`.
    pub head: Value,
    pub task_id: String,
    pub policy: String,
    pub seed: i64,
    pub metric: String,
    pub higher_is_better: bool,
    /// All programs that it made.
    pub programs: i64,
    pub last_step: i64,
    /// The programs that are drawn, in commit order.
    pub nodes: Vec<Node>,
    pub operators: Vec<Value>,
    pub families: Vec<Value>,
    pub failures: Vec<Value>,
    pub budget: Vec<Resource>,
    pub roles: Vec<Value>,
    pub teachers: Vec<Value>,
    /// Nodes that were shown, with their roles, by the node that the prompt made.
    pub shown: HashMap<String, Vec<(String, String)>>,
    pub draws: Vec<Draw>,
}

/// A program.
pub(super) struct Node {
    pub node_id: String,
    pub step: i64,
    pub operator: String,
    pub parent_id: Option<String>,
    pub parent2_id: Option<String>,
    pub status: String,
    pub is_buggy: bool,
    pub is_incumbent: bool,
    pub score: Option<f64>,
    pub score_source: String,
    pub gain: Option<f64>,
    pub family: String,
    pub duplicate_of: Option<String>,
    pub island: i64,
    pub seed: i64,
    pub model: String,
    pub tokens_prompt: Option<i64>,
    pub tokens_completion: Option<i64>,
    pub cost_usd: Option<f64>,
    pub model_seconds: Option<f64>,
    pub sandbox_seconds: Option<f64>,
    /// Sandbox seconds of the run up to the end of this program.
    pub sandbox_total: f64,
    pub error_class: Option<String>,
    pub error_signature: Option<String>,
    pub error: Option<String>,
    pub plan: Option<String>,
    pub code: Option<String>,
    pub code_bytes: i64,
    pub peak_memory_bytes: Option<i64>,
    pub detail: Option<String>,
    pub stdout: Log,
    pub stderr: Log,
}

/// The end of a log.
#[derive(Default)]
pub(super) struct Log {
    pub text: String,
    /// Bytes of the whole log.
    pub bytes: i64,
}

/// A resource of the run's budget.
pub(super) struct Resource {
    pub name: String,
    pub limit: Option<f64>,
    pub spent: f64,
    pub reserved: f64,
}

/// A draw of the run.
pub(super) struct Draw {
    pub step: i64,
    pub operator: String,
    pub parents: Vec<String>,
    pub status: String,
    pub node_id: Option<String>,
    pub record: DrawRecord,
}

/// What a stored draw says; parts that are not there are left out, so that draws of other versions are shown too.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DrawRecord {
    pub operators: Vec<OperatorChance>,
    pub candidates: Vec<ParentChance>,
    pub candidate_count: u64,
    pub effective_candidates: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct OperatorChance {
    pub operator: String,
    pub probability: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct ParentChance {
    pub parent_id: String,
    #[serde(default)]
    pub parent2_id: Option<String>,
    pub probability: f64,
}

impl RunFacts {
    /// Reads a run.
    pub async fn read(source: &Source<'_>, run_id: &str) -> Result<Self, ReportError> {
        let head = source.rows(rows::RUN, run_id).await?;
        let Some(row) = head.first() else {
            return Err(ReportError::Unknown(run_id.to_owned()));
        };
        let read_head = || -> datafusion::error::Result<Self> {
            Ok(Self {
                head: records(&head)?.into_iter().next().unwrap_or_default(),
                task_id: row.text("task_id")?,
                policy: row.text("policy")?,
                seed: row.int("seed")?,
                metric: row.text("metric")?,
                higher_is_better: row.bool("higher_is_better")?,
                programs: row.int("programs")?,
                last_step: row.int("last_step")?,
                nodes: Vec::new(),
                operators: Vec::new(),
                families: Vec::new(),
                failures: Vec::new(),
                budget: Vec::new(),
                roles: Vec::new(),
                teachers: Vec::new(),
                shown: HashMap::new(),
                draws: Vec::new(),
            })
        };
        let mut facts = read_head().map_err(rows::RUN.failed())?;
        facts.operators = source.records(rows::OPERATORS, run_id).await?;
        facts.families = source.records(rows::FAMILIES, run_id).await?;
        facts.failures = source.records(rows::FAILURES, run_id).await?;
        facts.roles = source.records(rows::ROLES, run_id).await?;
        facts.teachers = source.records(rows::TEACHERS, run_id).await?;
        facts.budget = source
            .rows(rows::BUDGET, run_id)
            .await?
            .iter()
            .map(|row| resource(&row))
            .collect::<Result<_, _>>()
            .map_err(rows::BUDGET.failed())?;
        let every = every(facts.programs);
        facts.nodes = source
            .every(rows::NODES, run_id, every)
            .await?
            .iter()
            .map(|row| node(&row))
            .collect::<Result<_, _>>()
            .map_err(rows::NODES.failed())?;
        facts.draws = source
            .every(rows::DRAWS, run_id, every)
            .await?
            .iter()
            .map(|row| draw(&row))
            .collect::<Result<_, _>>()
            .map_err(rows::DRAWS.failed())?;
        let shown = source.rows(rows::SHOWN, run_id).await?;
        let mut read_shown = || -> datafusion::error::Result<()> {
            for row in shown.iter() {
                let of_child = facts.shown.entry(row.text("child_id")?).or_default();
                of_child.push((row.text("node_id")?, row.text("role")?));
            }
            Ok(())
        };
        read_shown().map_err(rows::SHOWN.failed())?;
        Ok(facts)
    }

    /// Sandbox seconds up to the end of its last program.
    pub fn sandbox_total(&self) -> f64 {
        self.nodes.last().map_or(0.0, |node| node.sandbox_total)
    }

    /// Whether programs are left out of the drawings and lists.
    pub fn is_thinned(&self) -> bool {
        (self.nodes.len() as i64) < self.programs
    }
}

/// Which steps of a run with that many programs are shown: every so many.
fn every(programs: i64) -> i64 {
    programs.max(1).unsigned_abs().div_ceil(MOST_PROGRAMS.unsigned_abs()) as i64
}

fn node(row: &ResultRow<'_>) -> datafusion::error::Result<Node> {
    let log = |stream: &str| -> datafusion::error::Result<Log> {
        Ok(Log {
            text: row.optional_text(stream)?.unwrap_or_default(),
            bytes: row.optional_int(&format!("{stream}_bytes"))?.unwrap_or(0),
        })
    };
    Ok(Node {
        node_id: row.text("node_id")?,
        step: row.int("step")?,
        operator: row.text("operator")?,
        parent_id: row.optional_text("parent_id")?,
        parent2_id: row.optional_text("parent2_id")?,
        status: row.text("status")?,
        is_buggy: row.bool("is_buggy")?,
        is_incumbent: row.bool("is_incumbent")?,
        score: row.optional_float("score")?,
        score_source: row.text("score_source")?,
        gain: row.optional_float("delta_vs_parent")?,
        family: row.text("method_family")?,
        duplicate_of: row.optional_text("duplicate_of")?,
        island: row.int("island")?,
        seed: row.int("seed")?,
        model: row.text("model")?,
        tokens_prompt: row.optional_int("tokens_prompt")?,
        tokens_completion: row.optional_int("tokens_completion")?,
        cost_usd: row.optional_float("cost_usd")?,
        model_seconds: row.optional_float("model_seconds")?,
        sandbox_seconds: row.optional_float("sandbox_seconds")?,
        sandbox_total: row.optional_float("sandbox_total")?.unwrap_or(0.0),
        error_class: row.optional_text("error_class")?,
        error_signature: row.optional_text("error_signature")?,
        error: row.optional_text("error")?,
        plan: row.optional_text("plan")?,
        code: row.optional_text("code")?,
        code_bytes: row.optional_int("code_bytes")?.unwrap_or(0),
        peak_memory_bytes: row.optional_int("peak_memory_bytes")?,
        detail: row.optional_text("detail")?,
        stdout: log("stdout")?,
        stderr: log("stderr")?,
    })
}

fn resource(row: &ResultRow<'_>) -> datafusion::error::Result<Resource> {
    Ok(Resource {
        name: row.text("resource")?,
        limit: row.optional_float("limit")?,
        spent: row.optional_float("spent")?.unwrap_or(0.0),
        reserved: row.optional_float("reserved")?.unwrap_or(0.0),
    })
}

fn draw(row: &ResultRow<'_>) -> datafusion::error::Result<Draw> {
    let parents = [row.optional_text("parent_id")?, row.optional_text("parent2_id")?];
    Ok(Draw {
        step: row.int("step")?,
        operator: row.text("operator")?,
        parents: parents.into_iter().flatten().collect(),
        status: row.text("status")?,
        node_id: row.optional_text("node_id")?,
        record: serde_json::from_str(&row.text("draw")?).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_is_thinned_to_a_bounded_number() {
        assert_eq!([every(0), every(1), every(2_000), every(2_001)], [1, 1, 1, 2]);
        assert!(100_000 / every(100_000) <= MOST_PROGRAMS);
    }

    #[test]
    fn a_draw_of_another_version_is_no_error() {
        let draw: DrawRecord = serde_json::from_str(r#"{"operator":"improve","priority":1.0}"#).unwrap_or_default();
        assert_eq!((draw.candidates.len(), draw.candidate_count), (0, 0));
    }
}
