//! One question to the memory model, and what its answer becomes.

use std::time::Duration;

use datafusion::common::ScalarValue;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::book;
use crate::error::ErrorClass;
use crate::memory::{NodeFacts, SAME_REQUEST_SQL, Summary};
use crate::model::{Generator, Message, ModelError, Sample, SamplingParams, TextRequest};
use crate::scheduler::attempt::Attempt;
use crate::scheduler::budget::booking::Booking;
use crate::scheduler::budget::reserve::{Reserved, most_prompt_tokens};
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::ids;
use crate::scheduler::services::Services;

/// Sampling of a memory model whose definition does not say.
const TEMPERATURE: f64 = 0.2;
const TOP_P: f64 = 1.0;
/// Longest answer in tokens: the summary is short, but a model may reason first.
const MAX_TOKENS: u32 = 4_096;

/// The summary of a node that has none.
///
/// # Errors
/// When the store or the configuration of the memory model fails, or the attempt is cancelled.
pub async fn summary_of(
    services: &Services,
    attempt: &Attempt,
    generator: &dyn Generator,
    node_id: &str,
    cancel: &CancellationToken,
) -> Result<Summary> {
    let facts = super::facts(services, node_id).await?;
    let messages = services.memory_prompts.render(&facts)?;
    let request = Request::new(generator, node_id, messages);
    if !book::take_up(services, node_id).await? {
        return Ok(Summary::of_facts(&facts));
    }
    // Another process may have answered before this one took the node up.
    if let Some(summary) = super::stored(services, [node_id].into_iter()).await?.remove(node_id) {
        book::leave(services, node_id).await?;
        return Ok(summary);
    }
    if attempt.settings.cache
        && let Some(summary) = same_request(services, &request.hash).await?
    {
        let made = Made::cached(summary);
        book::commit(services, attempt, &request, &made, &Reserved::default()).await?;
        return Ok(made.summary);
    }
    let Some(held) = book::reserve(services, attempt, &request).await? else {
        return Ok(Summary::of_facts(&facts));
    };
    match generator.answer(&request.text(held.model_seconds), cancel).await {
        Ok(sample) => {
            let made = Made::of_answer(sample, &held, &facts);
            book::commit(services, attempt, &request, &made, &held).await?;
            Ok(made.summary)
        }
        Err(error) => {
            let Some((fault, sample)) = error.reply() else {
                book::give_up(services, attempt, node_id, &held, None).await?;
                return without_answer(error, node_id, &facts);
            };
            let booking = Booking::of(sample, Some(fault), &held);
            if fault.class() == ErrorClass::Candidate {
                // Asking again would bring the same: this is the node's answer.
                let made = Made::faulty(sample.clone(), fault.to_string(), booking, &facts);
                book::commit(services, attempt, &request, &made, &held).await?;
                return Ok(made.summary);
            }
            book::give_up(services, attempt, node_id, &held, Some((booking, sample.latency))).await?;
            without_answer(error, node_id, &facts)
        }
    }
}

/// What becomes of a prompt whose memory model did not answer: the facts stand in this time, and the node is asked about again when
/// it is shown again; a wrong configuration is the user's to mend.
fn without_answer(error: ModelError, node_id: &str, facts: &NodeFacts) -> Result<Summary> {
    match error.class() {
        ErrorClass::Cancelled | ErrorClass::Config => Err(error.into()),
        _ => {
            warn!(node = %node_id, %error, "no summary this time");
            Ok(Summary::of_facts(facts))
        }
    }
}

/// An earlier answer to the same request.
async fn same_request(services: &Services, hash: &str) -> Result<Option<Summary>> {
    let failed = || SchedulerError::query("earlier summaries");
    let rows = services
        .queries
        .rows(
            SAME_REQUEST_SQL,
            &[("request_hash", ScalarValue::from(hash))],
            None,
            None,
        )
        .await
        .map_err(failed())?;
    let Some(row) = rows.first() else { return Ok(None) };
    let read = || -> datafusion::error::Result<Summary> {
        Ok(Summary {
            method_overview: row.text("method_overview")?,
            parent_comparison_experience: row.text("parent_comparison_experience")?,
        })
    };
    read().map(Some).map_err(failed())
}

/// A question about a node.
#[derive(Debug)]
pub(super) struct Request {
    /// Node that is asked about.
    pub node_id: String,
    /// Memory model.
    pub model: String,
    /// Hash of everything that decides the answer.
    pub hash: String,
    /// The model costs nothing.
    pub free: bool,
    /// Tokens that it takes at most.
    pub worst_tokens: f64,
    /// US dollars that it costs at most.
    pub worst_usd: f64,
    messages: Vec<Message>,
    params: SamplingParams,
    seed: u64,
}

impl Request {
    fn new(generator: &dyn Generator, node_id: &str, messages: Vec<Message>) -> Self {
        let info = generator.describe();
        let sampling = info.sampling;
        let params = SamplingParams {
            temperature: sampling.temperature.unwrap_or(TEMPERATURE),
            top_p: sampling.top_p.unwrap_or(TOP_P),
            max_tokens: sampling.max_output_tokens.unwrap_or(MAX_TOKENS),
        };
        let model = generator.name().to_owned();
        let texts: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
        let key = json!([
            texts,
            model,
            info.definition,
            params.temperature,
            params.top_p,
            params.max_tokens
        ]);
        let hash = ids::sha256_hex(key.to_string().as_bytes());
        let prompt_tokens = most_prompt_tokens(&messages);
        let completion = u64::from(params.max_tokens);
        Self {
            node_id: node_id.to_owned(),
            model,
            // Of the request alone: whoever asks, the same is asked.
            seed: u64::from_str_radix(&hash[..15], 16).unwrap_or_default(),
            hash,
            free: info.free,
            worst_tokens: (prompt_tokens + completion) as f64,
            worst_usd: info.price.map_or(0.0, |price| price.highest(prompt_tokens, completion)),
            messages,
            params,
        }
    }

    fn text(&self, model_seconds: Option<f64>) -> TextRequest {
        TextRequest {
            messages: self.messages.clone(),
            params: self.params,
            seed: self.seed,
            time_limit: model_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        }
    }
}

/// A summary with where it came from.
#[derive(Debug)]
pub(super) struct Made {
    /// The summary.
    pub summary: Summary,
    /// model, cache or fallback.
    pub source: &'static str,
    /// Why the answer was no summary.
    pub fault: Option<String>,
    /// The answer; none from the cache.
    pub sample: Option<Sample>,
    /// What it costs the budgets.
    pub booking: Booking,
}

impl Made {
    fn cached(summary: Summary) -> Self {
        Self {
            summary,
            source: "cache",
            fault: None,
            sample: None,
            booking: Booking::default(),
        }
    }

    fn of_answer(sample: Sample, held: &Reserved, facts: &NodeFacts) -> Self {
        let booking = Booking::of(&sample, None, held);
        match Summary::read(&sample.text) {
            Ok(summary) => Self {
                summary,
                source: "model",
                fault: None,
                sample: Some(sample),
                booking,
            },
            Err(fault) => Self::faulty(sample, fault.to_string(), booking, facts),
        }
    }

    fn faulty(sample: Sample, fault: String, booking: Booking, facts: &NodeFacts) -> Self {
        Self {
            summary: Summary::of_facts(facts),
            source: "fallback",
            fault: Some(fault),
            sample: Some(sample),
            booking,
        }
    }
}
