//! What a summary does in the store: who asks about a node, what the question may cost, the row and the spend of the answer.

use std::time::Duration;

use clade_catalog::{BoxError, Rows, Txn, Value};
use rusqlite::{OptionalExtension, Transaction, params};

use super::ask::{Made, Request};
use crate::scheduler::attempt::Attempt;
use crate::scheduler::budget::booking::Booking;
use crate::scheduler::budget::reserve::{LEAST_SECONDS, Reserved, boxed};
use crate::scheduler::budget::{self, BudgetExhausted, Resource};
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::queue::lease::owner_may_live;
use crate::scheduler::queue::{self, LeaseLost, QueueError};
use crate::scheduler::services::Services;

/// Longest time of one answer, where a budget of model time has to hold it.
const LONGEST_ANSWER: f64 = 300.0;
/// After this time another process may ask about a node, whatever became of the one that asked: longer than a request may take.
const IN_WORK_MICROS: i64 = 2_400_000_000;
/// Bytes that are kept of an answer that is no summary.
const KEPT_ANSWER: usize = 4 << 10;

/// Takes a node up; false when another process asks about it.
///
/// # Errors
/// When the store fails.
pub(super) async fn take_up(services: &Services, node_id: &str) -> Result<bool> {
    let (node_id, owner, now) = (node_id.to_owned(), services.owner.clone(), services.now());
    Ok(services
        .store
        .control(move |tx| {
            let other: Option<String> = tx
                .prepare_cached(
                    "SELECT owner FROM summaries_in_work WHERE node_id = ?1 AND owner <> ?2 AND until > ?3",
                )?
                .query_row(params![node_id, owner, now], |row| row.get(0))
                .optional()?;
            if other.is_some_and(|other| owner_may_live(&other)) {
                return Ok(false);
            }
            tx.prepare_cached("INSERT OR REPLACE INTO summaries_in_work (node_id, owner, until) VALUES (?1, ?2, ?3)")?
                .execute(params![node_id, owner, now + IN_WORK_MICROS])?;
            Ok::<_, rusqlite::Error>(true)
        })
        .await?)
}

/// Leaves a node that needs no answer any more.
///
/// # Errors
/// When the store fails.
pub(super) async fn leave(services: &Services, node_id: &str) -> Result<()> {
    let (node_id, owner) = (node_id.to_owned(), services.owner.clone());
    Ok(services.store.control(move |tx| forget(tx, &node_id, &owner)).await?)
}

fn forget(tx: &Transaction<'_>, node_id: &str, owner: &str) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM summaries_in_work WHERE node_id = ?1 AND owner = ?2")?
        .execute([node_id, owner])
        .map(|_| ())
}

/// Reserves what the question costs at most, beside what the attempt holds already. `None` when the budgets do not hold it: the node
/// is left.
///
/// # Errors
/// When the store fails.
pub(super) async fn reserve(services: &Services, attempt: &Attempt, request: &Request) -> Result<Option<Reserved>> {
    let (id, scope, owner) = (
        attempt.attempt_id.clone(),
        attempt.scope.clone(),
        services.owner.clone(),
    );
    let mut held = Reserved::default();
    if !request.free {
        (held.tokens, held.cost_usd) = (request.worst_tokens, request.worst_usd);
    }
    let reserved = services
        .store
        .control(move |tx| {
            // What nobody works on any more must hold nothing.
            if !queue::is_held(tx, &id, &owner).map_err(boxed)? {
                return Err(boxed(QueueError::from(LeaseLost { attempt_id: id, owner })));
            }
            for (resource, amount) in [(Resource::Tokens, held.tokens), (Resource::CostUsd, held.cost_usd)] {
                budget::reserve(tx, &id, &scope, resource, amount).map_err(boxed)?;
            }
            let active = budget::balance(tx, &scope, Resource::ActiveSeconds)?;
            if let Some(limit) = active.limit {
                let seconds = active.left().min(LONGEST_ANSWER);
                if seconds < LEAST_SECONDS {
                    return Err(boxed(budget::BudgetError::Exhausted(BudgetExhausted {
                        scope,
                        resource: Resource::ActiveSeconds.as_str(),
                        wanted: LEAST_SECONDS,
                        left: seconds,
                        limit,
                    })));
                }
                budget::reserve(tx, &id, &scope, Resource::ActiveSeconds, seconds).map_err(boxed)?;
                held.model_seconds = Some(seconds);
            }
            Ok::<_, BoxError>(held)
        })
        .await
        .map_err(SchedulerError::from);
    match reserved {
        Ok(held) => Ok(Some(held)),
        Err(SchedulerError::Budget(_)) => {
            leave(services, &request.node_id).await?;
            Ok(None)
        }
        Err(error) => {
            leave(services, &request.node_id).await?;
            Err(error)
        }
    }
}

/// Commits a summary with what it cost.
///
/// # Errors
/// When the store fails.
pub(super) async fn commit(
    services: &Services,
    attempt: &Attempt,
    request: &Request,
    made: &Made,
    held: &Reserved,
) -> Result<()> {
    let mut txn = Txn::new();
    txn.append("evo.summaries", rows(services, attempt, request, made)?);
    let seconds = made.sample.as_ref().map_or(Duration::ZERO, |sample| sample.latency);
    let (node_id, owner) = (request.node_id.clone(), services.owner.clone());
    let booked = Booked::of(attempt, *held, made.booking, seconds);
    txn.control(move |tx| {
        booked.book(tx)?;
        forget(tx, &node_id, &owner)
    });
    services.store.commit(txn).await?;
    Ok(())
}

/// Books what a question without an answer cost, and leaves the node.
///
/// # Errors
/// When the store fails.
pub(super) async fn give_up(
    services: &Services,
    attempt: &Attempt,
    node_id: &str,
    held: &Reserved,
    cost: Option<(Booking, Duration)>,
) -> Result<()> {
    let (booking, seconds) = cost.unwrap_or_default();
    let (node_id, owner) = (node_id.to_owned(), services.owner.clone());
    let booked = Booked::of(attempt, *held, booking, seconds);
    Ok(services
        .store
        .control(move |tx| {
            booked.book(tx)?;
            forget(tx, &node_id, &owner)
        })
        .await?)
}

/// What is given back and what is spent.
struct Booked {
    attempt_id: String,
    scope: String,
    held: Reserved,
    booking: Booking,
    seconds: f64,
}

impl Booked {
    fn of(attempt: &Attempt, held: Reserved, booking: Booking, seconds: Duration) -> Self {
        Self {
            attempt_id: attempt.attempt_id.clone(),
            scope: attempt.scope.clone(),
            held,
            booking,
            seconds: seconds.as_secs_f64(),
        }
    }

    fn book(&self, tx: &Transaction<'_>) -> rusqlite::Result<()> {
        let held = [
            (Resource::Tokens, self.held.tokens),
            (Resource::CostUsd, self.held.cost_usd),
            (Resource::ActiveSeconds, self.held.model_seconds.unwrap_or(0.0)),
        ];
        for (resource, amount) in held {
            if amount > 0.0 {
                budget::give_back(tx, &self.attempt_id, &self.scope, resource, amount)?;
            }
        }
        for (resource, amount) in self.booking.spend() {
            budget::spend(tx, &self.scope, resource, amount)?;
        }
        budget::spend(tx, &self.scope, Resource::ActiveSeconds, self.seconds)
    }
}

fn rows(services: &Services, attempt: &Attempt, request: &Request, made: &Made) -> Result<Rows> {
    let sample = made.sample.as_ref();
    let signed = |tokens: Option<u64>| tokens.and_then(|tokens| i64::try_from(tokens).ok());
    let answer = sample
        .filter(|_| made.fault.is_some())
        .map(|sample| sample.text[..sample.text.floor_char_boundary(KEPT_ANSWER)].to_owned());
    let mut rows = Rows::new("evo.summaries")?;
    rows.push([
        ("node_id", request.node_id.clone().into()),
        ("model", request.model.clone().into()),
        ("method_overview", made.summary.method_overview.clone().into()),
        (
            "parent_comparison_experience",
            made.summary.parent_comparison_experience.clone().into(),
        ),
        ("source", made.source.into()),
        ("fault", made.fault.clone().into()),
        ("answer", answer.into()),
        ("request_hash", request.hash.clone().into()),
        ("run_id", attempt.run_id.clone().into()),
        ("attempt_id", attempt.attempt_id.clone().into()),
        (
            "tokens_prompt",
            signed(sample.and_then(|sample| sample.tokens_prompt)).into(),
        ),
        (
            "tokens_completion",
            signed(sample.and_then(|sample| sample.tokens_completion)).into(),
        ),
        ("cost_usd", sample.map_or(Some(0.0), |sample| sample.cost_usd).into()),
        (
            "model_seconds",
            sample.map(|sample| sample.latency.as_secs_f64()).into(),
        ),
        ("created_at", Value::Timestamp(services.now())),
    ])?;
    Ok(rows)
}
