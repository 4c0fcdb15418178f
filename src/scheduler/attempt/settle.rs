//! The last commit of an attempt: done, failed, late, put back or cancelled. Rows, budgets and the queue change together, and
//! only for the try that holds the lease.

use clade_catalog::Txn;

use crate::scheduler::attempt::Attempt;
use crate::scheduler::budget::{self, Resource};
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::queue::{self, QueueError};
use crate::scheduler::record::{self, Ending, Finished};
use crate::scheduler::services::Services;

/// Everything but the step, which an attempt keeps until it becomes a node or is given up.
const BUT_THE_STEP: &[Resource] = Resource::ALL.split_at(1).1;

/// Commits a finished attempt: its rows, its spend and its leave from the queue.
///
/// # Errors
/// When the store fails, or this try no longer holds the lease.
pub async fn done(services: &Services, attempt: &Attempt, tries: i64, finished: &Finished) -> Result<Ending> {
    let mut txn = Txn::new();
    record::rows(services, &mut txn, attempt, tries, finished).await?;
    let spend = finished.spend();
    let (id, owner, scope) = (
        attempt.attempt_id.clone(),
        services.owner.clone(),
        attempt.scope.clone(),
    );
    txn.control(move |tx| {
        queue::finish(tx, &id, &owner, tries)?;
        budget::release(tx, &id)?;
        for (resource, amount) in &spend {
            budget::spend(tx, &scope, *resource, *amount)?;
        }
        Ok::<_, QueueError>(())
    });
    services.store.commit(txn).await?;
    Ok(finished.ending(attempt))
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
    let ending = Ending::of_error(services, &attempt, "failed", started_at, error);
    let mut txn = Txn::new();
    txn.append("evo.attempts", record::attempt_rows(&ending, tries, false)?);
    let (id, owner) = (attempt.attempt_id.clone(), services.owner.clone());
    txn.control(move |tx| {
        queue::finish(tx, &id, &owner, tries)?;
        Ok::<_, QueueError>(budget::release(tx, &id)?)
    });
    match services.store.commit(txn).await.map_err(SchedulerError::from) {
        Ok(_) => Ok(ending),
        Err(lost @ SchedulerError::LeaseLost(_)) => late(services, attempt, tries, started_at, &lost).await,
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
    let ending = Ending::of_error(services, &attempt, "abandoned", started_at, error);
    let mut txn = Txn::new();
    txn.append("evo.attempts", record::attempt_rows(&ending, tries, true)?);
    services.store.commit(txn).await?;
    Ok(ending)
}

/// Puts an attempt back into the queue, to be taken up again; it keeps its step.
///
/// # Errors
/// When the store fails.
pub async fn put_back(services: &Services, attempt: Attempt, tries: i64) -> Result<Ending> {
    let (id, owner) = (attempt.attempt_id.clone(), services.owner.clone());
    let outcome = services
        .store
        .control(move |tx| {
            queue::put_back(tx, &id, &owner, tries)?;
            Ok::<_, QueueError>(budget::release_only(tx, &id, BUT_THE_STEP)?)
        })
        .await
        .map_err(SchedulerError::from);
    match outcome {
        // Nobody needs it back: it was cancelled or taken over meanwhile.
        Ok(()) | Err(SchedulerError::LeaseLost(_)) => Ok(Ending::open(&attempt, "planned")),
        Err(error) => Err(error),
    }
}

/// Puts back what this process still holds of a statement whose work has broken off.
///
/// # Errors
/// When the store fails.
pub async fn put_back_all(services: &Services, statement_id: &str) -> Result<()> {
    let (statement_id, owner) = (statement_id.to_owned(), services.owner.clone());
    Ok(services
        .store
        .control(move |tx| {
            for attempt_id in queue::put_back_all(tx, &statement_id, &owner)? {
                budget::release_only(tx, &attempt_id, BUT_THE_STEP)?;
            }
            Ok::<_, rusqlite::Error>(())
        })
        .await?)
}

/// Cancels the attempts of a statement that are still in the queue; gives how many.
///
/// # Errors
/// When the store fails.
pub async fn cancel_pending(services: &Services, statement_id: &str) -> Result<usize> {
    let (statement_id, now) = (statement_id.to_owned(), services.now());
    let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&count);
    let mut txn = Txn::new();
    txn.control_rows(move |tx, appends| {
        let pending = queue::pending(tx, &statement_id)?;
        for attempt in &pending {
            budget::release(tx, &attempt.attempt_id)?;
        }
        queue::drop_pending(tx, &statement_id)?;
        appends.append("evo.attempts", record::cancelled_rows(&pending, now)?);
        counted.store(pending.len(), std::sync::atomic::Ordering::Relaxed);
        Ok::<_, clade_catalog::BoxError>(())
    });
    services.store.commit(txn).await?;
    Ok(count.load(std::sync::atomic::Ordering::Relaxed))
}
