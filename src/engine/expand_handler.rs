//! What an EXPAND in a plan calls: from the session's variables and the clause to the scheduler, and endings back to rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use async_trait::async_trait;
use clade_catalog::Snapshot;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};

use super::columns::{floats, ints, texts, timestamps};
use super::defaults::{Defaults, memory_model};
use crate::dialect::ExpandClause;
use crate::plan::{ExpandHandler, ExpandRequest, explain_schema, result_schema};
use crate::scheduler::{AttemptSettings, Ending, ExpandPlan, Scheduler, SchedulerError};
use crate::session::CladeVariables;

/// Text of the statement that a plan comes from, in the session's extensions.
#[derive(Debug, Clone)]
pub struct StatementText(pub String);

/// Hands EXPANDs to the scheduler.
#[derive(Debug)]
pub struct SchedulerExpandHandler {
    scheduler: Arc<Scheduler>,
    defaults: Arc<Defaults>,
}

impl SchedulerExpandHandler {
    /// A handler over a scheduler and the configured defaults.
    pub fn new(scheduler: Arc<Scheduler>, defaults: Arc<Defaults>) -> Self {
        Self { scheduler, defaults }
    }

    async fn plan(&self, request: ExpandRequest) -> Result<ExpandPlan> {
        let ExpandRequest { rows, clause, context } = request;
        let config = context.session_config();
        let variables = config
            .options()
            .extensions
            .get::<CladeVariables>()
            .cloned()
            .unwrap_or_default();
        let sql = config
            .get_extension::<StatementText>()
            .map_or_else(|| clause.to_string(), |text| text.0.clone());
        let ExpandClause {
            operator,
            options,
            model,
            sandbox,
            ..
        } = clause;
        let set = |value: String| (!value.is_empty()).then_some(value);
        let model = model
            .or(set(variables.model))
            .unwrap_or_else(|| self.defaults.model.clone());
        let generator = self.scheduler.services().models.get(&model).await;
        let generator = generator.map_err(|error| external(error.into()))?;
        let default = self.defaults.attempt_with(generator.describe().sampling);
        Ok(ExpandPlan {
            sql,
            operator,
            model,
            sandbox: sandbox
                .or(set(variables.sandbox))
                .unwrap_or_else(|| self.defaults.sandbox.clone()),
            snapshot_id: snapshot(&context)?.seq(),
            run_id: set(variables.run_id),
            settings: AttemptSettings {
                temperature: options.temperature.unwrap_or(default.temperature),
                top_p: options.top_p.unwrap_or(default.top_p),
                timeout_seconds: options
                    .timeout
                    .map_or(default.timeout_seconds, |timeout| timeout.as_secs_f64()),
                warm: options.warm.unwrap_or(default.warm),
                cache: options.cache.unwrap_or(default.cache),
                memory_model: memory_model(options.memory_model.clone(), default.memory_model.clone()),
                prompt_tokens: options.prompt_tokens.unwrap_or(default.prompt_tokens),
                preflight: options.preflight.or(default.preflight),
                ..default
            },
            concurrency: options.concurrency.map_or(self.defaults.workers, |workers| {
                usize::try_from(workers).unwrap_or(usize::MAX)
            }),
            options,
            rows,
        })
    }
}

fn snapshot(context: &TaskContext) -> Result<Arc<Snapshot>> {
    context
        .session_config()
        .get_extension::<Snapshot>()
        .ok_or_else(|| DataFusionError::Internal("the session has no snapshot".to_owned()))
}

fn external(error: SchedulerError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

#[async_trait]
impl ExpandHandler for SchedulerExpandHandler {
    async fn expand(&self, request: ExpandRequest) -> Result<SendableRecordBatchStream> {
        let is_async = request.clause.is_async;
        let plan = self.plan(request).await?;
        let mut expansion = self.scheduler.expand(plan).await.map_err(external)?;
        if is_async {
            let batch = ending_rows(&expansion.planned)?;
            return Ok(Box::pin(RecordBatchStreamAdapter::new(
                result_schema(),
                stream::iter([Ok(batch)]),
            )));
        }
        let rows = stream::poll_fn(move |context| expansion.endings.poll_recv(context))
            .map(|ending| ending.map_err(external).and_then(|ending| ending_rows(&[ending])));
        Ok(Box::pin(RecordBatchStreamAdapter::new(result_schema(), rows)))
    }

    async fn explain(&self, request: ExpandRequest) -> Result<SendableRecordBatchStream> {
        let plan = self.plan(request).await?;
        let estimates = self.scheduler.estimate(&plan).await.map_err(external)?;
        let samples = i64::try_from(plan.options.samples.unwrap_or(1)).unwrap_or(i64::MAX);
        let columns: Vec<ArrayRef> = vec![
            ints((0..).take(plan.rows.len()).map(Some)),
            texts(plan.rows.iter().map(|row| Some(row.operator.as_str()))),
            texts(estimates.iter().map(|estimate| estimate.task_id.as_deref())),
            texts(plan.rows.iter().map(|row| row.parent_id.as_deref())),
            texts(plan.rows.iter().map(|row| row.parent2_id.as_deref())),
            ints(plan.rows.iter().map(|_| Some(samples))),
            ints(estimates.iter().map(|estimate| estimate.prompt_bytes)),
            ints(estimates.iter().map(|estimate| estimate.tokens_prompt)),
            ints(estimates.iter().map(|estimate| estimate.tokens_completion)),
            floats(estimates.iter().map(|estimate| estimate.cost_usd)),
            floats(estimates.iter().map(|estimate| estimate.model_seconds)),
            floats(estimates.iter().map(|estimate| estimate.sandbox_seconds)),
            floats(estimates.iter().map(|estimate| estimate.tokens_per_second)),
            ints(estimates.iter().map(|estimate| estimate.weight_bytes)),
            ints(estimates.iter().map(|estimate| estimate.cache_bytes)),
            texts(estimates.iter().map(|estimate| estimate.note.as_deref())),
        ];
        let batch = RecordBatch::try_new(explain_schema(), columns)?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            explain_schema(),
            stream::iter([Ok(batch)]),
        )))
    }
}

/// Rows of the result schema: the node's result state where there is a node, else the attempt's status.
fn ending_rows(endings: &[Ending]) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = vec![
        texts(endings.iter().map(|ending| Some(ending.attempt.attempt_id.as_str()))),
        texts(endings.iter().map(|ending| ending.node_id.as_deref())),
        texts(endings.iter().map(|ending| Some(ending.attempt.operator.as_str()))),
        texts(endings.iter().map(|ending| ending.attempt.parent_id.as_deref())),
        texts(endings.iter().map(|ending| ending.attempt.parent2_id.as_deref())),
        texts(
            endings
                .iter()
                .map(|ending| Some(ending.state.as_deref().unwrap_or(ending.status))),
        ),
        floats(endings.iter().map(|ending| ending.score)),
        floats(endings.iter().map(|ending| ending.delta_vs_parent)),
        texts(endings.iter().map(|ending| ending.error_class.as_deref())),
        texts(endings.iter().map(|ending| ending.error.as_deref())),
        ints(endings.iter().map(|ending| ending.tokens_prompt)),
        ints(endings.iter().map(|ending| ending.tokens_completion)),
        floats(endings.iter().map(|ending| ending.cost_usd)),
        timestamps(endings.iter().map(|ending| Some(ending.attempt.queued_at))),
        timestamps(endings.iter().map(|ending| ending.started_at)),
        timestamps(endings.iter().map(|ending| ending.finished_at)),
    ];
    Ok(RecordBatch::try_new(result_schema(), columns)?)
}
