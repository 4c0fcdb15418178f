//! A reply as `evo.generations` keeps it.

use clade_catalog::{Rows, Value};

use super::signed;
use crate::scheduler::attempt::Attempt;
use crate::scheduler::error::Result;
use crate::scheduler::generation::generate::Generated;
use crate::scheduler::ids;
use crate::scheduler::services::Services;

/// Text over this size goes to a blob; its row keeps head and tail.
const LONGEST_TEXT: usize = 16 << 10;
/// Bytes of head and of tail that a row keeps of a longer text.
const EXCERPT: usize = 4 << 10;

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

/// Row of a reply.
///
/// # Errors
/// When a blob cannot be written.
pub async fn generation_rows(services: &Services, attempt: &Attempt, generated: &Generated) -> Result<Rows> {
    let sample = &generated.sample;
    let (prompt, prompt_bytes, prompt_hash) = kept_text(services, &generated.prompt).await?;
    // Of a request that failed there may be no reply at all.
    let response = match sample.text.as_str() {
        "" if !generated.is_result() => None,
        text => Some(kept_text(services, text).await?),
    };
    let (response, response_bytes, response_hash) = match response {
        Some((text, bytes, hash)) => (Some(text), Some(bytes), Some(hash)),
        None => (None, None, None),
    };
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
        ("prompt_cuts", generated.cuts.clone().into()),
        ("skills", generated.skills.clone().into()),
        ("response", response.into()),
        ("response_bytes", response_bytes.into()),
        ("response_hash", response_hash.into()),
        ("reasoning", reasoning.into()),
        ("finish_reason", sample.finish_reason.clone().into()),
        ("cached", sample.cached.into()),
        ("tokens_prompt", signed(sample.tokens_prompt).into()),
        ("tokens_completion", signed(sample.tokens_completion).into()),
        ("tokens_cached_prompt", signed(sample.usage.cached_prompt).into()),
        ("tokens_reasoning", signed(sample.usage.reasoning).into()),
        (
            "estimated_tokens_prompt",
            signed(sample.usage.estimated_prompt.or(Some(generated.prompt_tokens))).into(),
        ),
        (
            "estimated_tokens_completion",
            signed(sample.usage.estimated_completion).into(),
        ),
        ("usage_problem", sample.usage.problem.clone().into()),
        ("cost_usd", sample.cost_usd.into()),
        ("booked_tokens", (generated.booking.tokens as i64).into()),
        ("booked_usd", generated.booking.cost_usd.into()),
        (
            "error_class",
            generated.fault.as_ref().map(|fault| fault.class.as_str()).into(),
        ),
        (
            "error",
            generated.fault.as_ref().map(|fault| fault.message.clone()).into(),
        ),
        (
            "fault",
            generated.fault.as_ref().and_then(|fault| fault.name.clone()).into(),
        ),
        ("started_at", Value::Timestamp(generated.started_at)),
        ("finished_at", Value::Timestamp(generated.finished_at)),
    ])?;
    Ok(rows)
}
