//! What is left of a run's budgets, for the plan of the next steps and for what a prompt says of them.

use crate::operators::PromptBudget;
use crate::scheduler::budget::{self, Resource};
use crate::scheduler::error::Result;
use crate::scheduler::services::Services;

/// Budgets of time; a prompt states the one that ends first.
const TIMES: [Resource; 3] = [Resource::ActiveSeconds, Resource::SandboxSeconds, Resource::WallSeconds];

/// What is left of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    /// Steps that are neither done nor in flight.
    pub steps: i64,
    /// Seconds as a prompt states them; `None` for a run without a limit of time.
    pub seconds: Option<i64>,
}

impl Remaining {
    /// What is left of a run.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn of_run(services: &Services, run_id: &str) -> Result<Self> {
        let scope = run_id.to_owned();
        Ok(services
            .store
            .control_read(move |conn| {
                let steps = budget::balance(conn, &scope, Resource::Steps)?;
                let mut seconds: Option<i64> = None;
                for resource in TIMES {
                    let balance = budget::balance(conn, &scope, resource)?;
                    if let Some(limit) = balance.limit {
                        let stated = PromptBudget::stated_seconds(limit, limit - balance.spent);
                        seconds = Some(seconds.map_or(stated, |least| least.min(stated)));
                    }
                }
                Ok::<_, rusqlite::Error>(Self {
                    steps: steps.left().min(1e15) as i64,
                    seconds,
                })
            })
            .await?)
    }

    /// What the prompt of a step says, when `before` steps are planned ahead of it.
    pub fn prompt_budget(self, before: i64) -> PromptBudget {
        PromptBudget {
            steps_left: Some(self.steps - before),
            seconds_left: self.seconds,
        }
    }
}
