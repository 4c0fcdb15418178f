//! Replies that were paid for. A reply is committed with its spend before its program runs, so that a kill between the reply and
//! the sandbox pays only once. Its row in `evo.generations` is the only copy: the response cache finds it by the request, the
//! queue by the attempt.

use std::time::Duration;

use clade_catalog::Txn;
use datafusion::common::ScalarValue;
use rusqlite::OptionalExtension;

use super::generate::{FaultyReply, Generated};
use crate::error::ErrorClass;
use crate::model::{Sample, UsageDetails};
use crate::scheduler::attempt::Attempt;
use crate::scheduler::budget::{self, Resource};
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::queue;
use crate::scheduler::record;
use crate::scheduler::services::Services;

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
    /// What is wrong with it, for one that is a result all the same.
    pub fault: Option<FaultyReply>,
    /// When the request was sent, microseconds UTC.
    pub started_at: i64,
    /// When the reply was complete, microseconds UTC.
    pub finished_at: i64,
}

/// Commits a reply with its spend; the attempt holds no tokens any more, unless it only waits to ask again. Only a reply without
/// a fault is cached, and one that is to be asked for again is not what the attempt has paid for.
///
/// # Errors
/// When the store fails.
pub async fn commit(services: &Services, attempt: &Attempt, generated: &Generated) -> Result<()> {
    let mut txn = Txn::new();
    txn.append(
        "evo.generations",
        record::generation_rows(services, attempt, generated).await?,
    );
    let spend = generated.booking.spend();
    let is_good = generated.fault.is_none();
    let is_result = generated.is_result();
    let is_waiting = matches!(&generated.fault, Some(fault) if fault.class == ErrorClass::RateLimit);
    let seconds = generated.seconds();
    let (scope, id) = (attempt.scope.clone(), attempt.attempt_id.clone());
    let (hash, generation_id) = (generated.request_hash.clone(), generated.generation_id.clone());
    txn.control(move |tx| {
        for (resource, amount) in &spend {
            budget::spend(tx, &scope, *resource, *amount)?;
        }
        budget::spend(tx, &scope, Resource::ActiveSeconds, seconds)?;
        if !is_waiting {
            budget::release_only(tx, &id, &[Resource::Tokens, Resource::CostUsd])?;
        }
        if is_result {
            queue::note_paid(tx, &id, &generation_id)?;
        }
        if is_good {
            tx.prepare_cached("INSERT OR IGNORE INTO response_cache (request_hash, generation_id) VALUES (?1, ?2)")?
                .execute(rusqlite::params![hash, generation_id])?;
        }
        Ok::<_, rusqlite::Error>(())
    });
    services.store.commit(txn).await?;
    Ok(())
}

/// The cached reply to a request.
///
/// # Errors
/// When the store fails.
pub async fn cached(services: &Services, request_hash: &str) -> Result<Option<Sample>> {
    let hash = request_hash.to_owned();
    let generation_id: Option<String> = services
        .store
        .control_read(move |conn| {
            conn.prepare_cached("SELECT generation_id FROM response_cache WHERE request_hash = ?1")?
                .query_row([hash], |row| row.get(0))
                .optional()
        })
        .await?;
    let Some(generation_id) = generation_id else {
        return Ok(None);
    };
    Ok(find(services, &generation_id).await?.map(|reply| Sample {
        cached: true,
        latency: Duration::ZERO,
        ..reply.sample
    }))
}

/// A reply that was committed; `None` when its row is lost with a damaged file.
///
/// # Errors
/// When the query fails or the reply's blob cannot be read.
pub async fn find(services: &Services, generation_id: &str) -> Result<Option<PaidReply>> {
    let context = || format!("reply {generation_id}");
    let rows = services
        .queries
        .rows(
            "SELECT generation_id, request_hash, prompt, response, response_bytes, response_hash, reasoning, finish_reason,
                    tokens_prompt, tokens_completion, tokens_cached_prompt, tokens_reasoning, cost_usd, error, fault,
                    arrow_cast(started_at, 'Int64') AS started_at, arrow_cast(finished_at, 'Int64') AS finished_at
             FROM evo.generations WHERE generation_id = $generation",
            &[("generation", ScalarValue::from(generation_id))],
            None,
            None,
        )
        .await
        .map_err(SchedulerError::query(context()))?;
    let Some(row) = rows.first() else { return Ok(None) };
    let read = || -> datafusion::error::Result<(PaidReply, i64, String)> {
        let unsigned = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let (started_at, finished_at) = (row.int("started_at")?, row.int("finished_at")?);
        let sample = Sample {
            text: row.optional_text("response")?.unwrap_or_default(),
            reasoning: row.optional_text("reasoning")?,
            finish_reason: row.text("finish_reason")?,
            tokens_prompt: unsigned(row.optional_int("tokens_prompt")?),
            tokens_completion: unsigned(row.optional_int("tokens_completion")?),
            usage: UsageDetails {
                cached_prompt: unsigned(row.optional_int("tokens_cached_prompt")?),
                reasoning: unsigned(row.optional_int("tokens_reasoning")?),
                ..UsageDetails::default()
            },
            cost_usd: row.optional_float("cost_usd")?,
            cached: false,
            latency: Duration::from_micros((finished_at - started_at).unsigned_abs()),
        };
        let reply = PaidReply {
            generation_id: row.text("generation_id")?,
            request_hash: row.text("request_hash")?,
            prompt: row.text("prompt")?,
            sample,
            fault: match row.optional_text("error")? {
                Some(message) => Some(FaultyReply {
                    class: ErrorClass::Candidate,
                    name: row.optional_text("fault")?,
                    message,
                }),
                None => None,
            },
            started_at,
            finished_at,
        };
        Ok((reply, row.int("response_bytes")?, row.text("response_hash")?))
    };
    let (mut reply, bytes, hash) = read().map_err(SchedulerError::query(context()))?;
    if i64::try_from(reply.sample.text.len()).unwrap_or(i64::MAX) != bytes {
        // The row keeps head and tail of a long reply; the whole is a blob.
        let whole = services.store.get_blob(&hash).await?;
        reply.sample.text = String::from_utf8_lossy(&whole).into_owned();
    }
    Ok(Some(reply))
}
