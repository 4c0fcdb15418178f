//! The reply that an earlier try of an attempt paid for. It is found by the attempt, not by the prompt: a prompt states what
//! is left of the budgets, so the same attempt asks in other words after it was interrupted.

use std::time::Duration;

use datafusion::common::ScalarValue;

use super::attempt::Attempt;
use super::error::{Result, SchedulerError};
use super::services::Services;
use crate::model::Sample;

/// A reply with the identity it was committed under.
#[derive(Debug, Clone)]
pub struct PaidReply {
    /// Generation id.
    pub generation_id: String,
    /// Cache key of the request it answers.
    pub request_hash: String,
    /// The prompt it answers, as its row keeps it.
    pub prompt: String,
    /// The reply.
    pub sample: Sample,
    /// When the request was sent, microseconds UTC.
    pub started_at: i64,
    /// When the reply was complete, microseconds UTC.
    pub finished_at: i64,
}

/// Finds the reply that an earlier try paid for.
///
/// # Errors
/// When the query fails or the reply's blob cannot be read.
pub async fn find(services: &Services, attempt: &Attempt) -> Result<Option<PaidReply>> {
    let failed = SchedulerError::query("replies of an attempt");
    let rows = services
        .queries
        .rows(
            "SELECT generation_id, request_hash, prompt, response, response_bytes, response_hash, reasoning, finish_reason,
                    tokens_prompt, tokens_completion, cost_usd,
                    arrow_cast(started_at, 'Int64') AS started_at, arrow_cast(finished_at, 'Int64') AS finished_at
             FROM evo.generations WHERE attempt_id = $attempt AND NOT cached ORDER BY finished_at LIMIT 1",
            &[("attempt", ScalarValue::from(attempt.attempt_id.as_str()))],
            None,
            None,
        )
        .await
        .map_err(failed)?;
    let Some(row) = rows.first() else { return Ok(None) };
    let failed = SchedulerError::query("replies of an attempt");
    let read = || -> datafusion::error::Result<(PaidReply, i64, String)> {
        let unsigned = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let (started_at, finished_at) = (row.int("started_at")?, row.int("finished_at")?);
        let sample = Sample {
            text: row.text("response")?,
            reasoning: row.optional_text("reasoning")?,
            finish_reason: row.text("finish_reason")?,
            tokens_prompt: unsigned(row.optional_int("tokens_prompt")?),
            tokens_completion: unsigned(row.optional_int("tokens_completion")?),
            cost_usd: row.optional_float("cost_usd")?,
            cached: false,
            latency: Duration::from_micros((finished_at - started_at).unsigned_abs()),
        };
        let reply = PaidReply {
            generation_id: row.text("generation_id")?,
            request_hash: row.text("request_hash")?,
            prompt: row.text("prompt")?,
            sample,
            started_at,
            finished_at,
        };
        Ok((reply, row.int("response_bytes")?, row.text("response_hash")?))
    };
    let (mut reply, bytes, hash) = read().map_err(failed)?;
    if i64::try_from(reply.sample.text.len()).unwrap_or(i64::MAX) != bytes {
        // The row keeps head and tail of a long reply; the whole is a blob.
        let whole = services.store.get_blob(&hash).await?;
        reply.sample.text = String::from_utf8_lossy(&whole).into_owned();
    }
    Ok(Some(reply))
}
