//! What an EXPAND would cost: prompts are rendered for real, the rest is the average of the operator's history with the model.

use std::collections::HashMap;

use datafusion::common::ScalarValue;

use super::context;
use super::prepare;
use crate::operators::{Operator, Prompt};
use crate::scheduler::attempt::Attempt;
use crate::scheduler::control::Scheduler;
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::expand::{ExpandPlan, attempts_of};
use crate::scheduler::services::Services;
use crate::scheduler::summaries::{self, Missing};

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
}

impl Scheduler {
    /// Estimates an EXPAND; nothing is written and nothing runs.
    ///
    /// # Errors
    /// As the EXPAND itself would be refused.
    pub async fn estimate(&self, plan: &ExpandPlan) -> Result<Vec<Estimate>> {
        let services = &self.services;
        services.models.get(&plan.model).await?;
        services.sandbox(&plan.sandbox)?;
        let history = history(services, &plan.model).await?;
        let samples = usize::try_from(plan.options.samples.unwrap_or(1)).unwrap_or(usize::MAX);
        let mut estimates = Vec::with_capacity(plan.rows.len());
        for attempt in attempts_of(services, plan, "estimate").await?.iter().step_by(samples) {
            let operator = attempt.operator()?;
            let known = history.get(operator.as_str()).cloned().unwrap_or_default();
            estimates.push(Estimate {
                task_id: Some(attempt.task_id.clone()),
                prompt_bytes: Some(prompt_bytes(services, attempt, operator).await?),
                ..known
            });
        }
        Ok(estimates)
    }
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

async fn history(services: &Services, model: &str) -> Result<HashMap<String, Estimate>> {
    let rows = services
        .queries
        .rows(
            include_str!("../../../sql/context/estimate.sql"),
            &[("model", ScalarValue::from(model))],
            None,
            None,
        )
        .await
        .map_err(SchedulerError::query("history"))?;
    let read = || -> datafusion::error::Result<_> {
        rows.iter()
            .map(|row| {
                let estimate = Estimate {
                    task_id: None,
                    prompt_bytes: None,
                    tokens_prompt: row.optional_int("tokens_prompt")?,
                    tokens_completion: row.optional_int("tokens_completion")?,
                    cost_usd: row.optional_float("cost_usd")?,
                    model_seconds: row.optional_float("model_seconds")?,
                    sandbox_seconds: row.optional_float("sandbox_seconds")?,
                };
                Ok((row.text("operator")?, estimate))
            })
            .collect()
    };
    read().map_err(SchedulerError::query("history"))
}
