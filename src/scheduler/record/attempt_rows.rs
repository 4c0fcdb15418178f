//! How an attempt ended, and its row in `evo.attempts`.

use clade_catalog::{Rows, Value};

use crate::scheduler::attempt::Attempt;
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::services::Services;

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// The attempt.
    pub attempt: Attempt,
    /// Status of its row: done, failed, cancelled or abandoned; planned when it went back into the queue.
    pub status: &'static str,
    /// Node it became.
    pub node_id: Option<String>,
    /// Result state of the node.
    pub state: Option<String>,
    /// Validation score.
    pub score: Option<f64>,
    /// Gain over the best scored parent.
    pub delta_vs_parent: Option<f64>,
    /// Class of the failure.
    pub error_class: Option<String>,
    /// Message of the failure.
    pub error: Option<String>,
    /// Prompt tokens.
    pub tokens_prompt: Option<i64>,
    /// Completion tokens.
    pub tokens_completion: Option<i64>,
    /// Cost in US dollars.
    pub cost_usd: Option<f64>,
    /// When it was taken up.
    pub started_at: Option<i64>,
    /// When it ended.
    pub finished_at: Option<i64>,
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

    /// An attempt that an error has ended now.
    pub fn of_error(
        services: &Services,
        attempt: &Attempt,
        status: &'static str,
        started_at: i64,
        error: &SchedulerError,
    ) -> Self {
        Self {
            error_class: Some(error.class().as_str().to_owned()),
            error: Some(error.to_string()),
            started_at: Some(started_at),
            finished_at: Some(services.now()),
            ..Self::open(attempt, status)
        }
    }
}

/// Rows of attempts that were planned.
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

/// Rows of attempts that were cancelled while they waited.
///
/// # Errors
/// When a value does not fit its column.
pub fn cancelled_rows(attempts: &[Attempt], now: i64) -> Result<Rows> {
    let mut rows = Rows::new("evo.attempts")?;
    for attempt in attempts {
        let ending = Ending {
            error_class: Some("cancelled".to_owned()),
            finished_at: Some(now),
            ..Ending::open(attempt, "cancelled")
        };
        push_attempt(&mut rows, &ending, 0, false)?;
    }
    Ok(rows)
}

/// Row of an attempt that has ended at try number `tries`; a late one gets an id of its own, so that it does not stand in
/// the place of the one that counts.
///
/// # Errors
/// When a value does not fit its column.
pub fn attempt_rows(ending: &Ending, tries: i64, late: bool) -> Result<Rows> {
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
