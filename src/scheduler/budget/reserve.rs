//! What an attempt may spend at most, reserved before it is dispatched. A reservation that would go over a budget is not made,
//! so that no budget is ever overspent.

use rusqlite::Transaction;
use tracing::debug;

use crate::model::{Message, ModelInfo, prompt_token_bound};
use crate::scheduler::attempt::Attempt;
use crate::scheduler::budget::{self, BudgetError, Resource};
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::generation::estimate;
use crate::scheduler::queue::lease;
use crate::scheduler::queue::{self, QueueError};
use crate::scheduler::services::Services;
use crate::scheduler::summaries::Missing;

/// Shortest run worth dispatching.
pub(in crate::scheduler) const LEAST_SECONDS: f64 = 1.0;
/// Seconds that are held for a generation, as far as a budget of model and sandbox time has them: as long as a request may take by
/// default.
const GENERATION_SECONDS: f64 = 1_800.0;

/// What an attempt may use.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reserved {
    /// Wall seconds of the program.
    pub candidate_seconds: f64,
    /// Wall seconds of the evaluation.
    pub evaluation_seconds: f64,
    /// Tokens of prompt and completion, when the model has to be asked.
    pub tokens: f64,
    /// US dollars.
    pub cost_usd: f64,
    /// Seconds that the generator may take, where a budget of model and sandbox time limits it.
    pub model_seconds: Option<f64>,
}

/// An attempt that this process has taken up.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// Number of this try, from 1.
    pub tries: i64,
    /// Requests that this try has sent before: it asks again when its model was paused.
    pub requests: u32,
    /// What it may use.
    pub reserved: Reserved,
    /// The generation that an earlier try has paid for.
    pub paid_generation: Option<String>,
}

/// Worst case of one attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorstCase {
    /// Wall seconds of the program.
    pub candidate_seconds: f64,
    /// Wall seconds of the evaluation.
    pub evaluation_seconds: f64,
    /// Tokens of prompt and completion; 0 for a generator that is free.
    pub tokens: f64,
    /// US dollars; 0 for a generator that is free or has no known price.
    pub cost_usd: f64,
    /// Seconds in the generator; 0 for one that is free.
    pub generation_seconds: f64,
}

impl WorstCase {
    /// Worst case of an attempt with a generator, whose prompt has at most `prompt_tokens`.
    pub fn of(attempt: &Attempt, model: &ModelInfo, prompt_tokens: u64, evaluation_seconds: f64) -> Self {
        let completion = u64::from(attempt.settings.max_completion_tokens);
        let (tokens, cost_usd) = if model.free {
            (0.0, 0.0)
        } else {
            let cost = model
                .price
                .map_or(0.0, |price| price.highest(prompt_tokens, completion));
            ((prompt_tokens + completion) as f64, cost)
        };
        Self {
            candidate_seconds: attempt.settings.timeout_seconds,
            evaluation_seconds,
            tokens,
            cost_usd,
            generation_seconds: if model.free { 0.0 } else { GENERATION_SECONDS },
        }
    }
}

/// Reserves a step for an attempt when it is planned.
///
/// # Errors
/// When no step is left.
pub fn step(tx: &Transaction<'_>, attempt: &Attempt) -> Result<(), BudgetError> {
    budget::reserve(tx, &attempt.attempt_id, &attempt.scope, Resource::Steps, 1.0)
}

/// Time in the model and the sandbox.
const TIME: [Resource; 2] = [Resource::SandboxSeconds, Resource::ActiveSeconds];

/// Reserves all but the step, afresh. Time is cut to what is left, the rest is all or nothing. A reply that is paid for takes no
/// tokens and no money.
///
/// # Errors
/// When a budget does not hold even the least that makes sense.
pub fn rest(tx: &Transaction<'_>, attempt: &Attempt, worst: WorstCase, is_paid: bool) -> Result<Reserved, BudgetError> {
    let (id, scope) = (attempt.attempt_id.as_str(), &attempt.scope);
    budget::release_only(tx, id, &[Resource::Jobs, Resource::Tokens, Resource::CostUsd])?;
    budget::reserve(tx, id, scope, Resource::Jobs, 1.0)?;
    for (resource, amount) in [(Resource::Tokens, worst.tokens), (Resource::CostUsd, worst.cost_usd)] {
        if amount > 0.0 && !is_paid {
            budget::reserve(tx, id, scope, resource, amount)?;
        }
    }
    time(tx, attempt, worst, is_paid)
}

/// Reserves time afresh, cut to what is left.
fn time(tx: &Transaction<'_>, attempt: &Attempt, worst: WorstCase, is_paid: bool) -> Result<Reserved, BudgetError> {
    let (id, scope) = (attempt.attempt_id.as_str(), &attempt.scope);
    budget::release_only(tx, id, &TIME)?;
    let wanted = worst.candidate_seconds + worst.evaluation_seconds;
    let sandbox = budget::balance(tx, scope, Resource::SandboxSeconds)?;
    let active = budget::balance(tx, scope, Resource::ActiveSeconds)?;
    let seconds = wanted
        .min(sandbox.left())
        .min(active.left())
        .max(LEAST_SECONDS.min(wanted));
    let generation = if is_paid { 0.0 } else { worst.generation_seconds };
    let both = (seconds + generation).min(active.left()).max(seconds);
    budget::reserve(tx, id, scope, Resource::SandboxSeconds, seconds)?;
    budget::reserve(tx, id, scope, Resource::ActiveSeconds, both)?;
    let reserved = Reserved {
        candidate_seconds: worst.candidate_seconds,
        evaluation_seconds: worst.evaluation_seconds,
        tokens: worst.tokens,
        cost_usd: worst.cost_usd,
        model_seconds: active.limit.is_some().then_some(both),
    };
    Ok(reserved.cut_to(seconds))
}

/// Gives the time of an attempt back that waits: what it has used is booked, and others may have the rest meanwhile. Its tokens and
/// money stay reserved.
///
/// # Errors
/// `LeaseLost` when another process has taken the attempt up, which holds time of its own for it.
pub async fn give_back_time(services: &Services, attempt: &Attempt, tries: i64) -> Result<()> {
    let (id, owner) = (attempt.attempt_id.clone(), services.owner.clone());
    Ok(services
        .store
        .control(move |tx| {
            queue::keep(tx, &id, &owner, tries)?;
            Ok::<_, QueueError>(budget::release_only(tx, &id, &TIME)?)
        })
        .await?)
}

/// Reserves time again for an attempt that has waited; the rest it still holds.
///
/// # Errors
/// `LeaseLost` when another process has taken the attempt up, a budget error when others hold what is left.
pub async fn time_again(services: &Services, attempt: &Attempt, claimed: &Claimed) -> Result<Reserved> {
    let model = services.models.get(&attempt.model).await?.describe();
    let evaluation_seconds = services.evaluation_limits.wall.as_secs_f64();
    let worst = WorstCase {
        tokens: claimed.reserved.tokens,
        cost_usd: claimed.reserved.cost_usd,
        ..WorstCase::of(attempt, &model, 0, evaluation_seconds)
    };
    let (tries, is_paid) = (claimed.tries, claimed.paid_generation.is_some());
    let (attempt, owner) = (attempt.clone(), services.owner.clone());
    Ok(services
        .store
        .control(move |tx| {
            queue::keep(tx, &attempt.attempt_id, &owner, tries).map_err(boxed)?;
            time(tx, &attempt, worst, is_paid).map_err(boxed)
        })
        .await?)
}

/// Cuts a program's time to what its generation has left of the budget of model and sandbox time. `unbooked` are the seconds of a
/// generation that are booked with the outcome.
///
/// # Errors
/// When less is left than makes sense; the seconds of the generation are booked then.
pub async fn program_time(
    services: &Services,
    attempt: &Attempt,
    reserved: Reserved,
    unbooked: f64,
) -> Result<Reserved> {
    if reserved.model_seconds.is_none() {
        return Ok(reserved);
    }
    let (id, scope) = (attempt.attempt_id.clone(), attempt.scope.clone());
    let held = services
        .store
        .control(move |tx| {
            let wanted = reserved.program_seconds();
            budget::release_only(tx, &id, &[Resource::ActiveSeconds])?;
            let balance = budget::balance(tx, &scope, Resource::ActiveSeconds)?;
            let left = (balance.left() - unbooked).min(wanted);
            if left >= LEAST_SECONDS.min(wanted) {
                budget::reserve(tx, &id, &scope, Resource::ActiveSeconds, left)?;
                return Ok(Ok(reserved.cut_to(left)));
            }
            budget::spend(tx, &scope, Resource::ActiveSeconds, unbooked)?;
            Ok::<_, BudgetError>(Err(BudgetError::Exhausted(budget::BudgetExhausted {
                scope,
                resource: Resource::ActiveSeconds.as_str(),
                wanted: LEAST_SECONDS.min(wanted),
                left: left.max(0.0),
                limit: balance.limit.unwrap_or(f64::INFINITY),
            })))
        })
        .await?;
    held.map_err(SchedulerError::from)
}

/// Takes an attempt up: claims it and reserves what it may spend, in one commit. One whose reply is paid for pays nothing more.
///
/// # Errors
/// When somebody else holds it or a budget is used up.
pub async fn claim(services: &Services, attempt: &Attempt) -> Result<Claimed> {
    let model = services.models.get(&attempt.model).await?.describe();
    let prompt_tokens = if model.free {
        0
    } else {
        prompt_tokens(services, attempt).await
    };
    let evaluation_seconds = services.evaluation_limits.wall.as_secs_f64();
    let worst = WorstCase::of(attempt, &model, prompt_tokens, evaluation_seconds);
    let (attempt, owner, now) = (attempt.clone(), services.owner.clone(), services.now());
    Ok(services
        .store
        .control(move |tx| {
            let claimed = queue::claim(tx, &attempt.attempt_id, &owner, now, lease::lease_end(now)).map_err(boxed)?;
            let is_paid = claimed.paid_generation.is_some();
            Ok::<_, clade_catalog::BoxError>(Claimed {
                tries: claimed.number,
                requests: 0,
                reserved: rest(tx, &attempt, worst, is_paid).map_err(boxed)?,
                paid_generation: claimed.paid_generation,
            })
        })
        .await?)
}

/// The most tokens that the attempt's prompt can have: it is rendered as it will be sent. One that does not render fails again when
/// it is to be sent, and then it is the attempt that fails and nothing else.
async fn prompt_tokens(services: &Services, attempt: &Attempt) -> u64 {
    let rendered = match attempt.operator() {
        Ok(operator) => estimate::prompt(services, attempt, operator, Missing::Longest).await,
        Err(error) => Err(error.into()),
    };
    match rendered {
        Ok(prompt) => most_prompt_tokens(&prompt.messages),
        Err(error) => {
            debug!(attempt = %attempt.attempt_id, %error, "the prompt does not render");
            0
        }
    }
}

/// The most tokens that a prompt can have.
pub(in crate::scheduler) fn most_prompt_tokens(messages: &[Message]) -> u64 {
    let bytes = messages.iter().map(|message| message.content.len()).sum();
    prompt_token_bound(bytes, messages.len())
}

impl Reserved {
    /// Wall seconds of the program and its evaluation.
    fn program_seconds(&self) -> f64 {
        self.candidate_seconds + self.evaluation_seconds
    }

    /// Where time is short the evaluation keeps its share, or a program that ran could not be scored.
    fn cut_to(self, seconds: f64) -> Self {
        let share = seconds / self.program_seconds();
        Self {
            candidate_seconds: self.candidate_seconds * share,
            evaluation_seconds: self.evaluation_seconds * share,
            ..self
        }
    }

    /// Checks that a prompt is within what was reserved for it: it may have changed since, with the task it is about.
    ///
    /// # Errors
    /// `PromptGrew` when it is not.
    pub fn check(&self, messages: &[Message], max_completion_tokens: u32) -> Result<()> {
        let needed = most_prompt_tokens(messages) + u64::from(max_completion_tokens);
        if needed as f64 > self.tokens {
            return Err(SchedulerError::PromptGrew {
                reserved: self.tokens as u64,
                needed,
            });
        }
        Ok(())
    }
}

pub(in crate::scheduler) fn boxed(error: impl std::error::Error + Send + Sync + 'static) -> clade_catalog::BoxError {
    Box::new(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Role;

    #[test]
    fn a_prompt_that_grew_beyond_its_reservation_is_not_sent() {
        let messages = |letters: usize| {
            [Message {
                role: Role::User,
                content: "x".repeat(letters),
            }]
        };
        let reserved = Reserved {
            candidate_seconds: 1.0,
            evaluation_seconds: 1.0,
            tokens: (prompt_token_bound(100, 1) + 50) as f64,
            cost_usd: 0.0,
            model_seconds: None,
        };
        assert!(reserved.check(&messages(100), 50).is_ok());
        let grew = reserved.check(&messages(101), 50);
        assert!(grew.is_err_and(|error| error.class().is_retryable() && error.to_string().contains("1239 tokens")));
    }
}
