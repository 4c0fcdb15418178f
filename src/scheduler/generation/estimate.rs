//! What an EXPAND would cost: prompts are rendered for real, the rest is the average of the operator's history with the model. Of a model
//! whose weights are here it also tells the memory, and takes its answers to other operators for an operator without history.

use std::collections::HashMap;

use datafusion::common::ScalarValue;

use super::context;
use super::prepare;
use crate::model::MemoryNeeds;
use crate::operators::{Operator, Prompt};
use crate::scheduler::attempt::Attempt;
use crate::scheduler::control::Scheduler;
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::expand::{ExpandPlan, attempts_of};
use crate::scheduler::services::Services;
use crate::scheduler::summaries::{self, Missing};
use crate::session::ResultRow;

/// Estimate for one input row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Estimate {
    /// Task of the row.
    pub task_id: Option<String>,
    /// Bytes of the rendered prompt.
    pub prompt_bytes: Option<i64>,
    /// Prompt tokens; NULL without history.
    pub tokens_prompt: Option<i64>,
    /// Completion tokens; NULL without history.
    pub tokens_completion: Option<i64>,
    /// US dollars; NULL when the price is not known.
    pub cost_usd: Option<f64>,
    /// Seconds in the model; NULL without history.
    pub model_seconds: Option<f64>,
    /// Seconds in the sandbox; NULL without history.
    pub sandbox_seconds: Option<f64>,
    /// Completion tokens that the model wrote in a second of an answer; NULL without history.
    pub tokens_per_second: Option<f64>,
    /// Bytes of the weights of a model that runs in this process.
    pub weight_bytes: Option<i64>,
    /// Bytes of the cache of a model that runs in this process.
    pub cache_bytes: Option<i64>,
    /// What else is to be known before it runs.
    pub note: Option<String>,
}

impl Scheduler {
    /// Estimates an EXPAND; nothing is written and nothing runs.
    ///
    /// # Errors
    /// As the EXPAND itself would be refused.
    pub async fn estimate(&self, plan: &ExpandPlan) -> Result<Vec<Estimate>> {
        let services = &self.services;
        let memory = services.models.get(&plan.model).await?.memory().await?;
        services.sandbox(&plan.sandbox)?;
        let history = history(services, &plan.model).await?;
        let written = written(services, &plan.model).await?;
        // What answers took elsewhere says little of a service, whose load changes; of weights on this machine it is the best there is.
        let unknown = if memory.is_some() {
            written.clone()
        } else {
            Estimate::default()
        };
        let samples = usize::try_from(plan.options.samples.unwrap_or(1)).unwrap_or(usize::MAX);
        let mut estimates = Vec::with_capacity(plan.rows.len());
        for attempt in attempts_of(services, plan, "estimate").await?.iter().step_by(samples) {
            let operator = attempt.operator()?;
            let known = history.get(operator.as_str()).unwrap_or(&unknown).clone();
            let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
            estimates.push(Estimate {
                task_id: Some(attempt.task_id.clone()),
                prompt_bytes: Some(prompt_bytes(services, attempt, operator).await?),
                tokens_per_second: written.tokens_per_second,
                weight_bytes: memory.map(|memory| bytes(memory.weight_bytes)),
                cache_bytes: memory.and_then(|memory| memory.cache_bytes).map(bytes),
                note: memory.and_then(|memory| note(memory, known.model_seconds.or(written.model_seconds))),
                ..known
            });
        }
        Ok(estimates)
    }
}

/// What is to be known of a model whose weights are here.
fn note(memory: MemoryNeeds, seconds: Option<f64>) -> Option<String> {
    let shortage = memory.shortage().map(|shortage| format!("memory: {shortage}"));
    let time = seconds
        .is_none()
        .then(|| "time: unknown until the first generation".to_owned());
    let notes: Vec<String> = [shortage, time].into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// The prompt that an attempt sends, with what stands in for summaries that are not made yet.
///
/// # Errors
/// When the task or the context cannot be read, or the prompt does not render.
pub(in crate::scheduler) async fn prompt(
    services: &Services,
    attempt: &Attempt,
    operator: Operator,
    missing: Missing,
) -> Result<Prompt> {
    let task = services.task(&attempt.task_id).await?;
    let mut nodes = context::nodes(services, attempt, operator).await?;
    summaries::fill_known(services, attempt, &mut nodes, missing).await?;
    prepare::prompt(services, attempt, operator, &task, &nodes).await
}

async fn prompt_bytes(services: &Services, attempt: &Attempt, operator: Operator) -> Result<i64> {
    let prompt = prompt(services, attempt, operator, Missing::Facts).await?;
    let bytes: usize = prompt.messages.iter().map(|message| message.content.len()).sum();
    Ok(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// Averages by operator.
async fn history(services: &Services, model: &str) -> Result<HashMap<String, Estimate>> {
    averages(
        services,
        model,
        include_str!("../../../sql/context/estimate.sql"),
        |row| {
            let estimate = Estimate {
                sandbox_seconds: row.optional_float("sandbox_seconds")?,
                ..answer(row)?
            };
            Ok((row.text("operator")?, estimate))
        },
    )
    .await
}

/// What an answer of the model takes on average, whatever operator asks.
async fn written(services: &Services, model: &str) -> Result<Estimate> {
    let averages: Vec<Estimate> = averages(services, model, include_str!("../../../sql/context/speed.sql"), |row| {
        Ok(Estimate {
            tokens_per_second: row.optional_float("tokens_per_second")?,
            ..answer(row)?
        })
    })
    .await?;
    Ok(averages.into_iter().next().unwrap_or_default())
}

/// What both averages tell of an answer.
fn answer(row: &ResultRow<'_>) -> datafusion::error::Result<Estimate> {
    Ok(Estimate {
        tokens_prompt: row.optional_int("tokens_prompt")?,
        tokens_completion: row.optional_int("tokens_completion")?,
        cost_usd: row.optional_float("cost_usd")?,
        model_seconds: row.optional_float("model_seconds")?,
        ..Estimate::default()
    })
}

/// Reads the rows of a query about a model.
async fn averages<T, C: FromIterator<T>>(
    services: &Services,
    model: &str,
    query: &str,
    read: impl Fn(&ResultRow<'_>) -> datafusion::error::Result<T>,
) -> Result<C> {
    let rows = services
        .queries
        .rows(query, &[("model", ScalarValue::from(model))], None, None)
        .await
        .map_err(SchedulerError::query("history"))?;
    let read: datafusion::error::Result<C> = rows.iter().map(|row| read(&row)).collect();
    read.map_err(SchedulerError::query("history"))
}
