//! Prompts: their sources as the configuration names them, and the preview of one.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use tracing::warn;

use super::error::{EngineError, Result};
use super::open::Engine;
use crate::config::Config;
use crate::dialect::ExpandOptions;
use crate::memory::MemoryPrompts;
use crate::operators::{Operator, Prompts};
use crate::plan::ExpandInput;
use crate::scheduler::{ExpandPlan, Preview, Run};
use crate::session::Queries;
use crate::templates::{SourceError, Templates};

/// What a prompt is asked for.
#[derive(Debug, Clone)]
pub struct PromptRequest {
    /// Operator.
    pub operator: Operator,
    /// Parent: a node's id or the beginning of it.
    pub parent: Option<String>,
    /// Second parent, likewise.
    pub parent2: Option<String>,
    /// Task of a draft.
    pub task: Option<String>,
    /// Run that the program would join: an id, its beginning, or `last`.
    pub run: Option<String>,
    /// Model that would be asked; the run's or the configured one by default.
    pub model: Option<String>,
}

/// Templates and skills of the configuration: prompts of operators and of the memory model. A skill for a task that the store does
/// not have is warned of.
pub(super) async fn prompts(config: &Config, queries: &Queries) -> Result<(Prompts, MemoryPrompts)> {
    let wrong = |error: SourceError| EngineError::Config(error.to_string());
    let config = &config.prompts;
    let templates = Arc::new(Templates::new(config.templates.as_deref()).map_err(wrong)?);
    let of_memory = MemoryPrompts::new(Arc::clone(&templates)).map_err(wrong)?;
    let prompts = Prompts::new(templates, config.skills.as_deref()).map_err(wrong)?;
    for task in prompts.skills().tasks() {
        let known = queries
            .rows(
                "SELECT task_id FROM gym.tasks WHERE task_id = $task",
                &[("task", ScalarValue::from(task))],
                None,
                None,
            )
            .await?;
        if known.is_empty() {
            warn!("the skill {task}.md enters no prompt: the store has no task '{task}'");
        }
    }
    Ok((prompts, of_memory))
}

impl Engine {
    /// The prompt that a request would send. Nothing is written and nothing is sent.
    ///
    /// # Errors
    /// When a name is not known, or an EXPAND of the same row would be refused.
    pub async fn preview_prompt(&self, request: &PromptRequest) -> Result<Preview> {
        let services = self.scheduler().services();
        let run = match &request.run {
            Some(name) => Some(Run::load(services, &self.run_id(name).await?).await?),
            None => None,
        };
        let node = async |name: &Option<String>| -> Result<Option<String>> {
            match name {
                Some(name) => Ok(Some(self.node_id(name).await?)),
                None => Ok(None),
            }
        };
        let model = request
            .model
            .clone()
            .or(run.as_ref().map(|run| run.model.clone()))
            .unwrap_or_else(|| self.defaults().model.clone());
        let sampling = services.models.get(&model).await?.describe().sampling;
        let settings = match &run {
            Some(run) => run.options.attempt.clone(),
            None => self.defaults().attempt_with(sampling),
        };
        let plan = ExpandPlan {
            sql: String::new(),
            operator: request.operator,
            options: ExpandOptions::default(),
            rows: vec![ExpandInput {
                ordinal: 0,
                operator: request.operator,
                task_id: request.task.clone().or_else(|| {
                    let of_run = run.as_ref().filter(|_| request.operator.arity() == 0);
                    of_run.map(|run| run.task_id.clone())
                }),
                parent_id: node(&request.parent).await?,
                parent2_id: node(&request.parent2).await?,
                seed: None,
                weight: None,
            }],
            model,
            sandbox: run
                .as_ref()
                .map_or_else(|| self.defaults().sandbox.clone(), |run| run.sandbox.clone()),
            snapshot_id: self.store().snapshot(None).await?.seq(),
            run_id: run.map(|run| run.run_id),
            settings,
            concurrency: 1,
        };
        let preview = self.scheduler().preview(&plan).await?;
        preview.ok_or_else(|| EngineError::Request("there is nothing to ask for".to_owned()))
    }
}
