//! The rows of an attempt: planned, done, failed, cancelled, late; the node with its edges, generation, job and prompt lineage.

use clade_catalog::{Rows, Txn, Value};
use serde_json::json;

use super::attempt::Attempt;
use super::budget::{self, Resource};
use super::candidate::ProgramResult;
use super::error::{Result, SchedulerError};
use super::facts::Program;
use super::generate::Generated;
use super::ids;
use super::index::NodeOutcome;
use super::pipeline::Ending;
use super::queue::{self, QueueError};
use super::services::Services;
use crate::model::Sample;
use crate::sandbox::CapturedLog;

/// Text over this size goes to a blob; its row keeps head and tail.
const LONGEST_TEXT: usize = 16 << 10;
/// Bytes of head and of tail that a row keeps of a longer text.
const EXCERPT: usize = 4 << 10;

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
    /// Not worse than its island's mean.
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
            spend.extend(reply_spend(&self.generated.sample));
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
            tokens_prompt: tokens(self.generated.sample.tokens_prompt),
            tokens_completion: tokens(self.generated.sample.tokens_completion),
            cost_usd: self.generated.sample.cost_usd,
            started_at: Some(self.started_at),
            finished_at: Some(self.finished_at),
        }
    }
}

fn tokens(count: Option<u64>) -> Option<i64> {
    count.map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

/// Tokens and cost of a reply; a cached reply costs nothing now, an unknown count adds nothing.
fn reply_spend(sample: &Sample) -> Vec<(Resource, f64)> {
    if sample.cached {
        return Vec::new();
    }
    let tokens = sample.tokens_prompt.unwrap_or(0) + sample.tokens_completion.unwrap_or(0);
    vec![
        (Resource::Tokens, tokens as f64),
        (Resource::CostUsd, sample.cost_usd.unwrap_or(0.0)),
    ]
}

/// A text as a row keeps it: whole, or head and tail with the whole in a blob.
async fn kept_text(services: &Services, text: &str) -> Result<(String, i64, String)> {
    let bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
    if text.len() <= LONGEST_TEXT {
        return Ok((text.to_owned(), bytes, ids::sha256_hex(text.as_bytes())));
    }
    let hash = services.store.put_blob(text.as_bytes().to_vec()).await?;
    let head = &text[..text.floor_char_boundary(EXCERPT)];
    let tail = &text[text.ceil_char_boundary(text.len() - EXCERPT)..];
    Ok((
        format!(
            "{head}\n[... {} bytes in blob {hash} ...]\n{tail}",
            text.len() - head.len() - tail.len()
        ),
        bytes,
        hash,
    ))
}

/// Blob of a log that its excerpts do not show whole.
async fn log_blob(services: &Services, log: &CapturedLog) -> Result<Option<String>> {
    let excerpt_is_all =
        log.head.len() + log.tail.len() == log.kept.len() && !log.truncated && std::str::from_utf8(&log.kept).is_ok();
    if excerpt_is_all {
        return Ok(None);
    }
    Ok(Some(services.store.put_blob(log.kept.clone()).await?))
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
        let rows = job_rows(
            services,
            Some(attempt),
            &attempt.task_id,
            "validation",
            &attempt.sandbox,
            candidate,
        )
        .await?;
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
        ("tokens_prompt", tokens(sample.tokens_prompt).into()),
        ("tokens_completion", tokens(sample.tokens_completion).into()),
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

async fn generation_rows(services: &Services, attempt: &Attempt, generated: &Generated) -> Result<Rows> {
    let sample = &generated.sample;
    let (prompt, prompt_bytes, prompt_hash) = kept_text(services, &generated.prompt).await?;
    let (response, response_bytes, response_hash) = kept_text(services, &sample.text).await?;
    let reasoning = match &sample.reasoning {
        Some(reasoning) => Some(kept_text(services, reasoning).await?.0),
        None => None,
    };
    let mut rows = Rows::new("evo.generations")?;
    rows.push([
        ("generation_id", generated.generation_id.clone().into()),
        ("attempt_id", attempt.attempt_id.clone().into()),
        ("run_id", attempt.run_id.clone().into()),
        ("task_id", attempt.task_id.clone().into()),
        ("operator", attempt.operator.clone().into()),
        ("operator_version", generated.operator_version.clone().into()),
        ("model", attempt.model.clone().into()),
        ("request_hash", generated.request_hash.clone().into()),
        ("seed", attempt.seed.into()),
        ("sample", attempt.sample.into()),
        ("parameters", generated.parameters.clone().into()),
        ("prompt", prompt.into()),
        ("prompt_bytes", prompt_bytes.into()),
        ("prompt_hash", prompt_hash.into()),
        ("response", response.into()),
        ("response_bytes", response_bytes.into()),
        ("response_hash", response_hash.into()),
        ("reasoning", reasoning.into()),
        ("finish_reason", sample.finish_reason.clone().into()),
        ("cached", sample.cached.into()),
        ("tokens_prompt", tokens(sample.tokens_prompt).into()),
        ("tokens_completion", tokens(sample.tokens_completion).into()),
        ("cost_usd", sample.cost_usd.into()),
        ("started_at", Value::Timestamp(generated.started_at)),
        ("finished_at", Value::Timestamp(generated.finished_at)),
    ])?;
    Ok(rows)
}

/// Rows of a sandbox job.
///
/// # Errors
/// When a blob cannot be written.
pub async fn job_rows(
    services: &Services,
    attempt: Option<&Attempt>,
    task_id: &str,
    split: &str,
    backend: &str,
    run: &ProgramResult,
) -> Result<Rows> {
    let candidate = &run.candidate;
    let mut rows = Rows::new("sandbox.jobs")?;
    let Some(job) = &candidate.job else { return Ok(rows) };
    let submission = job.submission.as_ref();
    rows.push([
        ("job_id", run.job_id.clone().into()),
        ("attempt_id", attempt.map(|attempt| attempt.attempt_id.clone()).into()),
        ("run_id", attempt.and_then(|attempt| attempt.run_id.clone()).into()),
        ("task_id", task_id.into()),
        ("split", split.into()),
        ("backend", backend.into()),
        ("status", candidate.state.as_str().into()),
        ("detail", candidate.detail.clone().into()),
        ("cause", job.cause.as_str().into()),
        ("exit_code", job.exit_code.map(i64::from).into()),
        ("signal", job.signal.map(i64::from).into()),
        ("oom", job.oom.into()),
        ("cpu_seconds", job.cpu_seconds.into()),
        ("wall_seconds", job.wall_seconds.into()),
        (
            "evaluation_seconds",
            candidate
                .evaluation
                .as_ref()
                .map(|evaluation| evaluation.wall_seconds)
                .into(),
        ),
        ("peak_memory_bytes", tokens(job.peak_memory_bytes).into()),
        ("stdout_head", job.stdout.head.clone().into()),
        ("stdout_tail", job.stdout.tail.clone().into()),
        ("stdout_bytes", tokens(Some(job.stdout.bytes)).into()),
        ("stdout_hash", log_blob(services, &job.stdout).await?.into()),
        ("stderr_head", job.stderr.head.clone().into()),
        ("stderr_tail", job.stderr.tail.clone().into()),
        ("stderr_bytes", tokens(Some(job.stderr.bytes)).into()),
        ("stderr_hash", log_blob(services, &job.stderr).await?.into()),
        ("logs_truncated", (job.stdout.truncated || job.stderr.truncated).into()),
        (
            "score",
            if split == "final" {
                Value::Null
            } else {
                candidate.score.into()
            },
        ),
        ("code_hash", run.code_hash.clone().into()),
        ("metric_hash", run.metric_hash.clone().into()),
        (
            "submission_hash",
            submission.map(|submission| submission.sha256.clone()).into(),
        ),
        (
            "submission_bytes",
            submission.and_then(|submission| tokens(Some(submission.bytes))).into(),
        ),
        ("isolation", json!(job.isolation).to_string().into()),
        ("warm", job.warm.into()),
        ("queued_at", job.queued_at.into()),
        ("started_at", job.started_at.into()),
        ("finished_at", job.finished_at.into()),
    ])?;
    Ok(rows)
}

/// Row of an attempt that was planned.
///
/// # Errors
/// When a value does not fit its column.
pub fn planned_rows(attempts: &[Attempt]) -> Result<Rows> {
    let mut rows = Rows::new("evo.attempts")?;
    for attempt in attempts {
        push_attempt(&mut rows, &Ending::open(attempt, "planned"), 0, false)?;
    }
    Ok(rows)
}

fn attempt_rows(ending: &Ending, tries: i64, late: bool) -> Result<Rows> {
    let mut rows = Rows::new("evo.attempts")?;
    push_attempt(&mut rows, ending, tries, late)?;
    Ok(rows)
}

fn push_attempt(rows: &mut Rows, ending: &Ending, tries: i64, late: bool) -> Result<()> {
    let attempt = &ending.attempt;
    let attempt_id = if late {
        format!("{}~late{tries}", attempt.attempt_id)
    } else {
        attempt.attempt_id.clone()
    };
    rows.push([
        ("attempt_id", attempt_id.into()),
        ("statement_id", attempt.statement_id.clone().into()),
        ("run_id", attempt.run_id.clone().into()),
        ("task_id", attempt.task_id.clone().into()),
        ("ordinal", attempt.ordinal.into()),
        ("sample", attempt.sample.into()),
        ("step", attempt.step.into()),
        ("generation", attempt.generation.into()),
        ("island", attempt.island.into()),
        ("operator", attempt.operator.clone().into()),
        ("parent_id", attempt.parent_id.clone().into()),
        ("parent2_id", attempt.parent2_id.clone().into()),
        ("seed", attempt.seed.into()),
        ("policy", attempt.policy.clone().into()),
        ("snapshot_id", attempt.snapshot_id.into()),
        ("draw", attempt.draw.clone().into()),
        ("status", ending.status.into()),
        ("node_id", ending.node_id.clone().into()),
        ("error_class", ending.error_class.clone().into()),
        ("error", ending.error.clone().into()),
        ("tries", tries.into()),
        ("late", late.into()),
        ("tokens_prompt", ending.tokens_prompt.into()),
        ("tokens_completion", ending.tokens_completion.into()),
        ("cost_usd", ending.cost_usd.into()),
        ("queued_at", Value::Timestamp(attempt.queued_at)),
        ("started_at", ending.started_at.map_or(Value::Null, Value::Timestamp)),
        ("finished_at", ending.finished_at.map_or(Value::Null, Value::Timestamp)),
    ])?;
    Ok(())
}

impl Ending {
    /// An attempt without an outcome.
    pub fn open(attempt: &Attempt, status: &'static str) -> Self {
        Self {
            attempt: attempt.clone(),
            status,
            node_id: None,
            state: None,
            score: None,
            delta_vs_parent: None,
            error_class: None,
            error: None,
            tokens_prompt: None,
            tokens_completion: None,
            cost_usd: None,
            started_at: None,
            finished_at: None,
        }
    }
}

/// Records an attempt that failed for good without becoming a node; its step and reservations go back.
///
/// # Errors
/// When the store fails.
pub async fn failed(
    services: &Services,
    attempt: Attempt,
    tries: i64,
    started_at: i64,
    error: &SchedulerError,
) -> Result<Ending> {
    let ending = Ending {
        error_class: Some(error.class().as_str().to_owned()),
        error: Some(error.to_string()),
        started_at: Some(started_at),
        finished_at: Some(services.now()),
        ..Ending::open(&attempt, "failed")
    };
    let mut txn = Txn::new();
    txn.append("evo.attempts", attempt_rows(&ending, tries, false)?);
    let (id, owner) = (attempt.attempt_id, services.owner.clone());
    txn.control(move |tx| {
        queue::finish(tx, &id, &owner, tries)?;
        Ok::<_, QueueError>(budget::release(tx, &id)?)
    });
    services.store.commit(txn).await?;
    Ok(ending)
}

/// Puts a cancelled attempt back into the queue, to be taken up when the run is resumed.
///
/// # Errors
/// When the store fails.
pub async fn put_back(services: &Services, attempt: Attempt, tries: i64) -> Result<Ending> {
    let (id, owner) = (attempt.attempt_id.clone(), services.owner.clone());
    let outcome = services
        .store
        .control(move |tx| {
            queue::put_back(tx, &id, &owner, tries, 0)?;
            Ok::<_, QueueError>(budget::release_only(tx, &id, &Resource::ALL[1..])?)
        })
        .await
        .map_err(SchedulerError::from);
    match outcome {
        // Nobody needs it back: it was cancelled or taken over meanwhile.
        Ok(()) | Err(SchedulerError::LeaseLost(_)) => Ok(Ending::open(&attempt, "planned")),
        Err(error) => Err(error),
    }
}

/// Records that a result came after the lease had lapsed.
///
/// # Errors
/// When the store fails.
pub async fn late(
    services: &Services,
    attempt: Attempt,
    tries: i64,
    started_at: i64,
    error: &SchedulerError,
) -> Result<Ending> {
    let ending = Ending {
        error_class: Some(error.class().as_str().to_owned()),
        error: Some(error.to_string()),
        started_at: Some(started_at),
        finished_at: Some(services.now()),
        ..Ending::open(&attempt, "abandoned")
    };
    let mut txn = Txn::new();
    txn.append("evo.attempts", attempt_rows(&ending, tries, true)?);
    services.store.commit(txn).await?;
    Ok(ending)
}

/// Cancels the attempts of a statement that are still in the queue.
///
/// # Errors
/// When the store fails.
pub async fn cancel_pending(services: &Services, statement_id: &str) -> Result<usize> {
    let id = statement_id.to_owned();
    let pending = services
        .store
        .control_read(move |conn| queue::pending(conn, &id))
        .await?;
    if pending.is_empty() {
        return Ok(0);
    }
    let mut rows = Rows::new("evo.attempts")?;
    for attempt in &pending {
        let ending = Ending {
            error_class: Some("cancelled".to_owned()),
            finished_at: Some(services.now()),
            ..Ending::open(attempt, "cancelled")
        };
        push_attempt(&mut rows, &ending, 0, false)?;
    }
    let mut txn = Txn::new();
    txn.append("evo.attempts", rows);
    let (statement_id, count) = (statement_id.to_owned(), pending.len());
    txn.control(move |tx| {
        for attempt in &pending {
            budget::release(tx, &attempt.attempt_id)?;
        }
        queue::drop_pending(tx, &statement_id).map(|_| ())
    });
    services.store.commit(txn).await?;
    Ok(count)
}

/// Commits a reply that was paid for, with its spend, before its program runs.
///
/// # Errors
/// When the store fails.
pub async fn paid_reply(services: &Services, attempt: &Attempt, generated: &Generated) -> Result<()> {
    let mut txn = Txn::new();
    txn.append("evo.generations", generation_rows(services, attempt, generated).await?);
    let spend = reply_spend(&generated.sample);
    let seconds = generated.seconds();
    let (scope, id) = (attempt.scope.clone(), attempt.attempt_id.clone());
    let (hash, generation_id) = (generated.request_hash.clone(), generated.generation_id.clone());
    let reply = serde_json::to_string(&CachedReply::of(&generated.sample))
        .map_err(|error| SchedulerError::Request(format!("the reply cannot be cached: {error}")))?;
    txn.control(move |tx| {
        for (resource, amount) in &spend {
            budget::spend(tx, &scope, *resource, *amount)?;
        }
        budget::spend(tx, &scope, Resource::ActiveSeconds, seconds)?;
        budget::release_only(tx, &id, &[Resource::Tokens, Resource::CostUsd])?;
        tx.prepare_cached(
            "INSERT OR IGNORE INTO response_cache (request_hash, generation_id, text) VALUES (?1, ?2, ?3)",
        )?
        .execute(rusqlite::params![hash, generation_id, reply])?;
        Ok::<_, rusqlite::Error>(())
    });
    services.store.commit(txn).await?;
    Ok(())
}

/// A reply in the response cache.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct CachedReply {
    text: String,
    reasoning: Option<String>,
    finish_reason: String,
    tokens_prompt: Option<u64>,
    tokens_completion: Option<u64>,
    cost_usd: Option<f64>,
}

impl CachedReply {
    fn of(sample: &Sample) -> Self {
        Self {
            text: sample.text.clone(),
            reasoning: sample.reasoning.clone(),
            finish_reason: sample.finish_reason.clone(),
            tokens_prompt: sample.tokens_prompt,
            tokens_completion: sample.tokens_completion,
            cost_usd: sample.cost_usd,
        }
    }
}

/// The cached reply to a request.
///
/// # Errors
/// When the store fails or the cached reply cannot be read.
pub async fn cached_reply(services: &Services, request_hash: &str) -> Result<Option<Sample>> {
    use rusqlite::OptionalExtension;
    let hash = request_hash.to_owned();
    let reply: Option<Option<String>> = services
        .store
        .control_read(move |conn| {
            conn.prepare_cached("SELECT text FROM response_cache WHERE request_hash = ?1")?
                .query_row([hash], |row| row.get(0))
                .optional()
        })
        .await?;
    let Some(reply) = reply.flatten() else { return Ok(None) };
    let reply: CachedReply = serde_json::from_str(&reply)
        .map_err(|error| SchedulerError::Request(format!("the cached reply {request_hash} cannot be read: {error}")))?;
    Ok(Some(Sample {
        text: reply.text,
        reasoning: reply.reasoning,
        finish_reason: reply.finish_reason,
        tokens_prompt: reply.tokens_prompt,
        tokens_completion: reply.tokens_completion,
        cost_usd: reply.cost_usd,
        cached: true,
        latency: std::time::Duration::ZERO,
    }))
}
