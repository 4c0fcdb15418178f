//! The prompt that a request would send, without sending it.

use super::estimate;
use crate::operators::Prompt;
use crate::scheduler::budget::remaining::Remaining;
use crate::scheduler::control::Scheduler;
use crate::scheduler::error::Result;
use crate::scheduler::expand::{ExpandPlan, attempts_of};
use crate::scheduler::summaries::Missing;

/// A prompt that is not sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// Task of the program.
    pub task_id: String,
    /// Run that the program would join.
    pub run_id: Option<String>,
    /// Model that would be asked.
    pub model: String,
    /// How its tokens are counted, in words.
    pub counted_by: &'static str,
    /// Most tokens of the prompt.
    pub budget: u64,
    /// The prompt.
    pub prompt: Prompt,
}

impl Scheduler {
    /// The prompt of the first row of an EXPAND; nothing is written and nothing is sent. In a run it says what is left of the run's
    /// budgets, as the prompt of the next step would.
    ///
    /// # Errors
    /// As the EXPAND itself would be refused, and when it has no row.
    pub async fn preview(&self, plan: &ExpandPlan) -> Result<Option<Preview>> {
        let services = &self.services;
        let Some(mut attempt) = attempts_of(services, plan, "preview").await?.into_iter().next() else {
            return Ok(None);
        };
        if let Some(run_id) = &attempt.run_id {
            attempt.prompt_budget = Remaining::of_run(services, run_id).await?.prompt_budget(0);
        }
        let operator = attempt.operator()?;
        let prompt = estimate::prompt(services, &attempt, operator, Missing::Facts).await?;
        let counter = services.models.get(&attempt.model).await?.token_counter().await?;
        Ok(Some(Preview {
            task_id: attempt.task_id,
            run_id: attempt.run_id,
            model: attempt.model,
            counted_by: counter.method(),
            budget: attempt.settings.prompt_tokens,
            prompt,
        }))
    }
}
