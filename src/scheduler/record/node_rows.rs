//! A finished attempt: the node it became, with edges and prompt lineage, and what it spent.

use clade_catalog::{Rows, Txn, Value};

use super::{Ending, JobPurpose, attempt_rows, generation_rows, job_rows, signed};
use crate::scheduler::attempt::Attempt;
use crate::scheduler::attempt::candidate::ProgramResult;
use crate::scheduler::attempt::facts::Program;
use crate::scheduler::budget::Resource;
use crate::scheduler::error::Result;
use crate::scheduler::generation::generate::Generated;
use crate::scheduler::run::index::NodeOutcome;
use crate::scheduler::services::Services;

/// A link from a parent.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// parent or parent2.
    pub role: &'static str,
    /// Parent node.
    pub parent_id: String,
    /// Gain over that parent.
    pub delta: Option<f64>,
}

/// Facts of a node that is about to be committed.
#[derive(Debug, Clone)]
pub struct NodeRecord {
    /// The program.
    pub program: Program,
    /// Outcome.
    pub outcome: NodeOutcome,
    /// Score, higher is better.
    pub signed_score: Option<f64>,
    /// Not a success with a finite score.
    pub is_buggy: bool,
    /// Gain over the best scored parent.
    pub delta_vs_parent: Option<f64>,
    /// Earlier nodes of the family.
    pub family_count_before: i64,
    /// Node whose outcome was taken over.
    pub duplicate_of: Option<String>,
    /// Not worse than the mean of what its island has admitted.
    pub admitted: bool,
}

/// A finished attempt.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The node.
    pub node: NodeRecord,
    /// The reply.
    pub generated: Generated,
    /// The run of the program, when there was one.
    pub candidate: Option<ProgramResult>,
    /// Links from the parents.
    pub edges: Vec<Edge>,
    /// When the attempt was taken up.
    pub started_at: i64,
    /// When its outcome was known.
    pub finished_at: i64,
}

impl Finished {
    /// Seconds in the sandbox: program and evaluation.
    pub fn sandbox_seconds(&self) -> f64 {
        self.candidate.as_ref().map_or(0.0, ProgramResult::sandbox_seconds)
    }

    /// What the attempt spent, but for what its reply has paid already.
    pub fn spend(&self) -> Vec<(Resource, f64)> {
        let sandbox = self.sandbox_seconds();
        let mut spend = vec![
            (Resource::Steps, 1.0),
            (Resource::Jobs, f64::from(u8::from(self.candidate.is_some()))),
            (Resource::SandboxSeconds, sandbox),
            (
                Resource::ActiveSeconds,
                sandbox
                    + if self.generated.committed {
                        0.0
                    } else {
                        self.generated.seconds()
                    },
            ),
        ];
        if !self.generated.committed {
            spend.extend(self.generated.booking.spend());
        }
        spend
    }

    /// The ending that is reported for the attempt.
    pub fn ending(&self, attempt: &Attempt) -> Ending {
        let outcome = &self.node.outcome;
        Ending {
            attempt: attempt.clone(),
            status: "done",
            node_id: Some(attempt.node_id()),
            state: Some(outcome.status.clone()),
            score: outcome.score,
            delta_vs_parent: self.node.delta_vs_parent,
            error_class: outcome.error_class.clone(),
            error: outcome.error.clone(),
            tokens_prompt: signed(self.generated.sample.tokens_prompt),
            tokens_completion: signed(self.generated.sample.tokens_completion),
            cost_usd: self.generated.sample.cost_usd,
            started_at: Some(self.started_at),
            finished_at: Some(self.finished_at),
        }
    }
}

/// Adds the rows of a finished attempt to a commit.
///
/// # Errors
/// When a blob cannot be written.
pub async fn rows(
    services: &Services,
    txn: &mut Txn,
    attempt: &Attempt,
    tries: i64,
    finished: &Finished,
) -> Result<()> {
    if let Some(candidate) = &finished.candidate {
        let purpose = JobPurpose {
            attempt_id: Some(&attempt.attempt_id),
            run_id: attempt.run_id.as_deref(),
            task_id: &attempt.task_id,
            split: "validation",
        };
        let rows = job_rows(services, purpose, &attempt.sandbox, candidate).await?;
        txn.append("sandbox.jobs", rows);
    }
    if !finished.generated.committed {
        txn.append(
            "evo.generations",
            generation_rows(services, attempt, &finished.generated).await?,
        );
    }
    if !finished.generated.shown.is_empty() {
        txn.append("evo.prompts_used", prompts_used_rows(attempt, &finished.generated)?);
    }
    if !finished.edges.is_empty() {
        txn.append("evo.edges", edge_rows(attempt, &finished.edges)?);
    }
    txn.append("evo.nodes", node_rows(attempt, finished)?);
    txn.append("evo.attempts", attempt_rows(&finished.ending(attempt), tries, false)?);
    Ok(())
}

fn node_rows(attempt: &Attempt, finished: &Finished) -> Result<Rows> {
    let NodeRecord { program, outcome, .. } = &finished.node;
    let sample = &finished.generated.sample;
    let mut rows = Rows::new("evo.nodes")?;
    rows.push([
        ("node_id", attempt.node_id().into()),
        ("run_id", attempt.run_id.clone().into()),
        ("task_id", attempt.task_id.clone().into()),
        ("attempt_id", attempt.attempt_id.clone().into()),
        ("statement_id", attempt.statement_id.clone().into()),
        ("step", attempt.step.into()),
        ("generation", attempt.generation.into()),
        ("island", attempt.island.into()),
        ("operator", attempt.operator.clone().into()),
        ("parent_id", attempt.parent_id.clone().into()),
        ("parent2_id", attempt.parent2_id.clone().into()),
        ("code", program.code.clone().into()),
        ("code_hash", program.code_hash.clone().into()),
        ("code_fingerprint", program.code_fingerprint.clone().into()),
        ("plan", program.plan.clone().into()),
        ("status", outcome.status.clone().into()),
        ("is_buggy", finished.node.is_buggy.into()),
        ("score", outcome.score.into()),
        ("signed_score", finished.node.signed_score.into()),
        ("score_source", outcome.score_source.clone().into()),
        ("self_reported_score", outcome.self_reported_score.into()),
        ("delta_vs_parent", finished.node.delta_vs_parent.into()),
        ("error_class", outcome.error_class.clone().into()),
        ("error_signature", outcome.error_signature.clone().into()),
        ("error", outcome.error.clone().into()),
        ("imports", program.imports.clone().into()),
        ("method_family", program.method_family.clone().into()),
        ("family_count_before", finished.node.family_count_before.into()),
        ("duplicate_of", finished.node.duplicate_of.clone().into()),
        ("admitted", finished.node.admitted.into()),
        (
            "job_id",
            finished.candidate.as_ref().map(|run| run.job_id.clone()).into(),
        ),
        ("model", attempt.model.clone().into()),
        ("seed", attempt.seed.into()),
        ("tokens_prompt", signed(sample.tokens_prompt).into()),
        ("tokens_completion", signed(sample.tokens_completion).into()),
        ("cost_usd", sample.cost_usd.into()),
        ("model_seconds", finished.generated.seconds().into()),
        ("sandbox_seconds", finished.sandbox_seconds().into()),
        ("queued_at", Value::Timestamp(attempt.queued_at)),
        ("started_at", Value::Timestamp(finished.started_at)),
        ("finished_at", Value::Timestamp(finished.finished_at)),
    ])?;
    Ok(rows)
}

fn edge_rows(attempt: &Attempt, edges: &[Edge]) -> Result<Rows> {
    let mut rows = Rows::new("evo.edges")?;
    for edge in edges {
        rows.push([
            ("run_id", attempt.run_id.clone().into()),
            ("task_id", attempt.task_id.clone().into()),
            ("parent_id", edge.parent_id.clone().into()),
            ("child_id", attempt.node_id().into()),
            ("role", edge.role.into()),
            ("operator", attempt.operator.clone().into()),
            ("delta", edge.delta.into()),
        ])?;
    }
    Ok(rows)
}

fn prompts_used_rows(attempt: &Attempt, generated: &Generated) -> Result<Rows> {
    let mut rows = Rows::new("evo.prompts_used")?;
    for (position, (role, node_id)) in (0i64..).zip(&generated.shown) {
        rows.push([
            ("generation_id", generated.generation_id.clone().into()),
            ("attempt_id", attempt.attempt_id.clone().into()),
            ("run_id", attempt.run_id.clone().into()),
            ("node_id", node_id.clone().into()),
            ("role", role.clone().into()),
            ("position", position.into()),
        ])?;
    }
    Ok(rows)
}
