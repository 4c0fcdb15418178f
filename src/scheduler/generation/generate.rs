//! The generation of an attempt: prompt, response cache, generator.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::prepare;
use super::reply::{self, PaidReply};
use crate::error::ErrorClass;
use crate::gym::Task;
use crate::model::{
    GenerateRequest, Message, ModelError, NodeContext, ReplyFault, Sample, SamplingParams, TaskContext,
};
use crate::operators::{ContextNode, Operator, Prompt};
use crate::scheduler::attempt::Attempt;
use crate::scheduler::budget::booking::Booking;
use crate::scheduler::budget::reserve::Claimed;
use crate::scheduler::error::Result;
use crate::scheduler::ids;
use crate::scheduler::services::Services;

/// A reply with everything its row needs.
#[derive(Debug, Clone)]
pub struct Generated {
    /// Generation id.
    pub generation_id: String,
    /// Version of the operator.
    pub operator_version: String,
    /// Cache key.
    pub request_hash: String,
    /// Sampling parameters as JSON.
    pub parameters: String,
    /// The whole prompt as text.
    pub prompt: String,
    /// The reply.
    pub sample: Sample,
    /// Nodes that were shown: role and id.
    pub shown: Vec<(String, String)>,
    /// What was left out of the prompt.
    pub cuts: Vec<String>,
    /// Notes of the user that the prompt holds.
    pub skills: Vec<String>,
    /// Tokens of the prompt by our own count.
    pub prompt_tokens: u64,
    /// When the request was sent.
    pub started_at: i64,
    /// When the reply was complete.
    pub finished_at: i64,
    /// What is wrong with the reply.
    pub fault: Option<FaultyReply>,
    /// What it costs the budgets.
    pub booking: Booking,
    /// Its row and its spend are committed already.
    pub committed: bool,
}

/// What is wrong with a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultyReply {
    /// Whose fault it is.
    pub class: ErrorClass,
    /// Short name.
    pub name: Option<String>,
    /// What happened and what to do.
    pub message: String,
}

impl Generated {
    /// Text that a program may be taken from: none of a faulty reply.
    pub fn text(&self) -> &str {
        match &self.fault {
            Some(_) => "",
            None => &self.sample.text,
        }
    }

    /// Asking again would not mend it: it becomes a node, with or without a program.
    pub fn is_result(&self) -> bool {
        self.fault
            .as_ref()
            .is_none_or(|fault| fault.class == ErrorClass::Candidate)
    }

    /// Seconds in the generator; nothing when the reply came from the cache.
    pub fn seconds(&self) -> f64 {
        if self.sample.cached {
            0.0
        } else {
            self.sample.latency.as_secs_f64()
        }
    }

    /// What an earlier try paid for: its row and its spend are in the store.
    fn paid(reply: PaidReply, attempt: &Attempt, operator_version: String, prompt: Prompt) -> Self {
        Self {
            generation_id: reply.generation_id,
            operator_version,
            request_hash: reply.request_hash,
            parameters: parameters_text(&sampling(attempt)),
            prompt: reply.prompt,
            sample: reply.sample,
            prompt_tokens: prompt.total_tokens(),
            shown: prompt.shown,
            cuts: prompt.cuts,
            skills: prompt.skills,
            started_at: reply.started_at,
            finished_at: reply.finished_at,
            fault: reply.fault,
            booking: Booking::default(),
            committed: true,
        }
    }
}

fn sampling(attempt: &Attempt) -> SamplingParams {
    SamplingParams {
        temperature: attempt.settings.temperature,
        top_p: attempt.settings.top_p,
        max_tokens: attempt.settings.max_completion_tokens,
    }
}

/// Sampling parameters as `evo.generations` keeps them.
fn parameters_text(params: &SamplingParams) -> String {
    json!({
        "temperature": params.temperature, "top_p": params.top_p, "max_tokens": params.max_tokens,
    })
    .to_string()
}

/// Generates a reply for an attempt, or takes the one that an earlier try paid for.
///
/// # Errors
/// When the prompt does not render or the generator fails.
pub async fn generate(
    services: &Services,
    attempt: &Attempt,
    claimed: &Claimed,
    operator: Operator,
    task: &Arc<Task>,
    nodes: &[ContextNode],
    cancel: &CancellationToken,
) -> Result<Generated> {
    let generator = services.models.get(&attempt.model).await?;
    let info = generator.describe();
    let prepared = prepare::prompt(services, attempt, operator, task, nodes).await?;
    let version = services.prompts.version(operator);
    if let Some(generation_id) = &claimed.paid_generation
        && let Some(paid) = reply::find(services, generation_id).await?
    {
        return Ok(Generated::paid(paid, attempt, version, prepared));
    }
    let context = Arc::new(task_context(task, attempt));
    let prompt_tokens = prepared.total_tokens();
    let Prompt {
        messages,
        cuts,
        skills,
        shown,
        ..
    } = prepared;
    let params = sampling(attempt);
    let prompt = prompt_text(&messages);
    let parameters = parameters_text(&params);
    let key = json!([
        version,
        prompt,
        attempt.model,
        info.definition,
        parameters,
        attempt.seed,
        attempt.sample
    ]);
    let request_hash = ids::sha256_hex(key.to_string().as_bytes());
    let request = GenerateRequest {
        operator,
        messages,
        task: context,
        nodes: nodes.iter().map(node_context).collect(),
        params,
        seed: attempt.seed.unsigned_abs(),
        sample: u32::try_from(attempt.sample).unwrap_or(u32::MAX),
        time_limit: claimed
            .reserved
            .model_seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        // What a replay finds a recorded reply by: all of the request but the model's name.
        attempt_key: format!(
            "{version}/{}/{}/{}",
            ids::sha256_hex(prompt.as_bytes()),
            attempt.seed,
            attempt.sample
        ),
        request_hash: request_hash.clone(),
    };
    if !info.free {
        claimed.reserved.check(&request.messages, params.max_tokens)?;
    }
    let started_at = services.now();
    let cached = if attempt.settings.cache && !info.free {
        reply::cached(services, &request_hash).await?
    } else {
        None
    };
    let (sample, error) = match cached {
        Some(sample) => (sample, None),
        None => match generator.generate(&request, cancel).await {
            Ok(sample) => (sample, None),
            // A reply that is no good may have cost as much as a good one, so it is kept and booked all the same.
            Err(error) => match error.reply() {
                Some((_, sample)) => (sample.clone(), Some(error)),
                None => return Err(error.into()),
            },
        },
    };
    let fault = error.as_ref().and_then(ModelError::reply).map(|(fault, _)| fault);
    let finished_at = services.now();
    // Before it was sent it may have waited for others to the same model.
    let sent_at = match i64::try_from(sample.latency.as_micros()) {
        Ok(latency @ 1..) => finished_at.saturating_sub(latency).max(started_at),
        _ => started_at,
    };
    let mut generated = Generated {
        generation_id: ids::generation_id(&attempt.attempt_id, claimed.tries, claimed.requests),
        operator_version: version,
        request_hash,
        parameters,
        prompt,
        booking: Booking::of(&sample, fault, &claimed.reserved),
        fault: fault.map(|fault| FaultyReply::of(&attempt.model, fault)),
        shown,
        cuts,
        skills,
        prompt_tokens,
        started_at: sent_at,
        finished_at,
        sample,
        committed: false,
    };
    if !info.free && !generated.sample.cached {
        reply::commit(services, attempt, &generated).await?;
        generated.committed = true;
    }
    match error {
        Some(error) if !generated.is_result() => Err(error.into()),
        _ => Ok(generated),
    }
}

impl FaultyReply {
    fn of(model: &str, fault: &ReplyFault) -> Self {
        Self {
            class: fault.class(),
            name: Some(fault.name().to_owned()),
            message: format!("model '{model}': {fault}"),
        }
    }
}

/// The prompt as one text, as `evo.generations` keeps it.
fn prompt_text(messages: &[Message]) -> String {
    let parts: Vec<String> = messages
        .iter()
        .map(|message| format!("<{}>\n{}", message.role.as_str(), message.content))
        .collect();
    parts.join("\n")
}

/// The public side of a task, as a generator sees it.
pub(in crate::scheduler) fn task_context(task: &Task, attempt: &Attempt) -> TaskContext {
    let row = &task.row;
    TaskContext {
        task_id: row.task_id.clone(),
        public_dir: task.search_data().to_owned(),
        description: row.description.clone(),
        metric: row.metric.clone(),
        higher_is_better: row.higher_is_better,
        modality: row.modality.clone(),
        task_type: row.task_type.clone(),
        id_column: row.id_column.clone(),
        target_columns: row.target_columns.clone(),
        time_limit_seconds: attempt.settings.timeout_seconds.round() as u64,
    }
}

fn node_context(node: &ContextNode) -> NodeContext {
    NodeContext {
        node_id: node.node_id.clone(),
        role: node.role.clone(),
        operator: node.operator.clone(),
        code: node.code.clone(),
        plan: node.plan.clone(),
        status: node.status.clone(),
        score: node.score.filter(|_| !node.is_buggy),
        error_class: node.error_class.clone(),
        error_signature: node.error_signature.clone(),
        error: node.error.clone(),
        method_family: node.method_family.clone(),
    }
}
