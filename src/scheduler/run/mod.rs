//! A run: what was asked for, as its row keeps it, and how it ended.

pub mod cancel;
pub mod conductor;
pub mod draw;
pub mod index;
pub mod progress;
pub mod wall_clock;

use clade_catalog::{Rows, Value};
use serde::{Deserialize, Serialize};

use super::attempt::AttemptSettings;
use super::budget::Resource;
use super::error::{Result, SchedulerError};
use super::services::Services;
use crate::dialect::RunMode;
use crate::grading::FinalSelection;

/// Version of this engine, as rows keep it.
pub const ENGINE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Effective options of a run: what the user gave, over the configured defaults. Policies read them through `run.settings`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    /// Step budget.
    pub steps: i64,
    /// Pipelines at once.
    pub workers: usize,
    /// Seed of every draw.
    pub seed: i64,
    /// generation or async.
    pub mode: String,
    /// Programs of a generation.
    pub generation_size: i64,
    /// Islands.
    pub islands: i64,
    /// Wall seconds of the run.
    pub max_wall: Option<f64>,
    /// Seconds in the sandbox.
    pub max_sandbox: Option<f64>,
    /// Seconds in the model and the sandbox.
    pub max_model_sandbox: Option<f64>,
    /// Prompt and completion tokens.
    pub max_tokens: Option<i64>,
    /// US dollars.
    pub max_cost_usd: Option<f64>,
    /// Sandbox jobs.
    pub max_jobs: Option<i64>,
    /// Wall seconds of the chosen program on the final data.
    pub final_timeout: f64,
    /// Run the chosen program on the final data and grade it.
    pub grade: bool,
    /// What the final selection goes by.
    #[serde(default)]
    pub final_selection: FinalSelection,
    /// Times the chosen program is run on the final data.
    #[serde(default = "once")]
    pub submit_repeats: i64,
    /// Grade every node that was the best so far, too.
    #[serde(default)]
    pub grade_incumbents: bool,
    /// Go on under a cost budget although the price is not known.
    pub allow_unknown_cost: bool,
    /// Sampling and limits of each attempt.
    #[serde(flatten)]
    pub attempt: AttemptSettings,
    /// Settings that only policies read.
    #[serde(flatten)]
    pub policy: serde_json::Map<String, serde_json::Value>,
}

/// What runs of earlier versions did.
fn once() -> i64 {
    1
}

/// A run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Run id.
    pub run_id: String,
    /// Statement that started it.
    pub statement_id: String,
    /// Task.
    pub task_id: String,
    /// Policy name.
    pub policy: String,
    /// Policy text when the run started.
    pub policy_sql: String,
    /// Generator name.
    pub model: String,
    /// Executor name.
    pub sandbox: String,
    /// Effective options.
    pub options: RunOptions,
    /// When it was recorded.
    pub created_at: i64,
    /// When the first attempt was dispatched.
    pub started_at: Option<i64>,
    /// Status in the store.
    pub status: String,
}

impl Run {
    /// Whether there is nothing to cancel any more; a failed run may still be resumed.
    pub fn has_ended(&self) -> bool {
        matches!(self.status.as_str(), "finished" | "cancelled" | "failed")
    }

    /// Whether a barrier stands between generations.
    pub fn has_generations(&self) -> bool {
        self.options.mode == RunMode::Generation.as_str()
    }

    /// Budgets of the run; those without a limit are counted only.
    pub fn limits(&self) -> [(Resource, Option<f64>); 7] {
        let options = &self.options;
        [
            (Resource::Steps, Some(options.steps as f64)),
            (Resource::Jobs, options.max_jobs.map(|jobs| jobs as f64)),
            (Resource::SandboxSeconds, options.max_sandbox),
            (Resource::ActiveSeconds, options.max_model_sandbox),
            (Resource::WallSeconds, options.max_wall),
            (Resource::Tokens, options.max_tokens.map(|tokens| tokens as f64)),
            (Resource::CostUsd, options.max_cost_usd),
        ]
    }

    /// Effective options as rows keep them.
    ///
    /// # Errors
    /// When they cannot be written as JSON.
    pub fn options_text(&self) -> Result<String> {
        serde_json::to_string(&self.options)
            .map_err(|error| SchedulerError::Request(format!("the run's options cannot be stored: {error}")))
    }

    /// The run's row.
    ///
    /// # Errors
    /// When a value does not fit its column.
    pub fn rows(&self, progress: &Progress) -> Result<Rows> {
        let timestamp = |time: Option<i64>| time.map_or(Value::Null, Value::Timestamp);
        let mut rows = Rows::new("evo.runs")?;
        rows.push([
            ("run_id", self.run_id.clone().into()),
            ("task_id", self.task_id.clone().into()),
            ("statement_id", self.statement_id.clone().into()),
            ("status", progress.status.into()),
            ("policy", self.policy.clone().into()),
            ("policy_sql", self.policy_sql.clone().into()),
            ("model", self.model.clone().into()),
            ("sandbox", self.sandbox.clone().into()),
            ("mode", self.options.mode.clone().into()),
            ("seed", self.options.seed.into()),
            (
                "workers",
                i64::try_from(self.options.workers).unwrap_or(i64::MAX).into(),
            ),
            ("steps_limit", self.options.steps.into()),
            ("steps_done", progress.steps_done.into()),
            ("options", self.options_text()?.into()),
            (
                "best_node_id",
                progress.best.as_ref().map(|best| best.node_id.clone()).into(),
            ),
            ("best_score", progress.best.as_ref().and_then(|best| best.score).into()),
            ("best_step", progress.best.as_ref().map(|best| best.step).into()),
            ("final_node_id", progress.final_node_id.clone().into()),
            ("stop_reason", progress.stop_reason.clone().into()),
            ("error", progress.error.clone().into()),
            ("engine_version", ENGINE_VERSION.into()),
            ("created_at", Value::Timestamp(self.created_at)),
            ("started_at", timestamp(self.started_at)),
            ("finished_at", timestamp(progress.finished_at)),
        ])?;
        Ok(rows)
    }

    /// A run of the store.
    ///
    /// # Errors
    /// When there is no run of this id; a run is never made anew for a name that is not known.
    pub async fn load(services: &Services, run_id: &str) -> Result<Self> {
        let rows = services
            .queries
            .rows(
                "SELECT run_id, statement_id, task_id, policy, policy_sql, model, sandbox, options, created_at, started_at, status
                 FROM evo.runs WHERE run_id = $run",
                &[("run", datafusion::common::ScalarValue::from(run_id))],
                None,
                None,
            )
            .await
            .map_err(SchedulerError::query("runs"))?;
        let Some(row) = rows.first() else {
            return Err(SchedulerError::Request(format!(
                "there is no run '{run_id}' in this store; SHOW RUNS lists them"
            )));
        };
        let options = row.text("options").map_err(SchedulerError::query("runs"))?;
        let options = serde_json::from_str(&options).map_err(|error| {
            SchedulerError::Request(format!("the options of run '{run_id}' cannot be read: {error}"))
        })?;
        let read = || -> datafusion::error::Result<Self> {
            Ok(Self {
                run_id: row.text("run_id")?,
                statement_id: row.text("statement_id")?,
                task_id: row.text("task_id")?,
                policy: row.text("policy")?,
                policy_sql: row.text("policy_sql")?,
                model: row.text("model")?,
                sandbox: row.text("sandbox")?,
                options,
                created_at: row.int("created_at")?,
                started_at: row.optional_int("started_at")?,
                status: row.text("status")?,
            })
        };
        read().map_err(SchedulerError::query("runs"))
    }
}

/// The best node of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct BestNode {
    /// Node id.
    pub node_id: String,
    /// Validation score.
    pub score: Option<f64>,
    /// Step that found it.
    pub step: i64,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Status to store.
    pub status: &'static str,
    /// Committed steps.
    pub steps_done: i64,
    /// Best node.
    pub best: Option<BestNode>,
    /// Node of the final selection.
    pub final_node_id: Option<String>,
    /// Why it ended.
    pub stop_reason: Option<String>,
    /// Error that ended it.
    pub error: Option<String>,
    /// When it ended.
    pub finished_at: Option<i64>,
}

impl Progress {
    /// A run that begins or goes on.
    pub fn running(steps_done: i64) -> Self {
        Self {
            status: "running",
            steps_done,
            best: None,
            final_node_id: None,
            stop_reason: None,
            error: None,
            finished_at: None,
        }
    }
}
