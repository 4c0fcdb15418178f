//! What each statement does.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use clade_catalog::Snapshot;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, Statement as PlanStatement};
use datafusion::physical_plan::execute_stream;

use super::error::{EngineError, Result};
use super::output::QueryOutput;
use super::session::Session;
use crate::dialect::{CreateModel, Evolve, Expand, ParsedStatement, Statement};
use crate::plan::{Access, ExpandMode, PlanError, check_statement, plan_expand};
use crate::scheduler::{Progress, Run, RunHandle, fresh_id};

impl Session {
    pub(super) async fn dispatch(&self, parsed: ParsedStatement, snapshot: Arc<Snapshot>) -> Result<QueryOutput> {
        let ParsedStatement { statement, sql, .. } = parsed;
        match statement {
            Statement::DataFusion(statement) => {
                let state = self.statement_state(snapshot, &sql);
                let plan = state.statement_to_plan(*statement).await?;
                self.run_plan(&state, plan).await
            }
            Statement::Expand(expand) => self.expand(*expand, ExpandMode::Run, snapshot, &sql).await,
            Statement::ExplainExpand(explain) => self.expand(explain.expand, ExpandMode::Explain, snapshot, &sql).await,
            Statement::ShowPolicies => self.select(snapshot, include_str!("../../sql/show/policies.sql")).await,
            Statement::ShowRuns => self.select(snapshot, include_str!("../../sql/show/runs.sql")).await,
            Statement::ShowCreatePolicy { name } => {
                let policy = self.engine.policy(&name).await?;
                QueryOutput::of_columns(vec![
                    ("policy", text(&name)),
                    ("create_policy", text(&policy.create_statement())),
                ])
                .map_err(EngineError::from)
            }
            acting => {
                self.require_write(&acting)?;
                self.act(acting, &sql).await
            }
        }
    }

    /// Statements that write.
    async fn act(&self, statement: Statement, sql: &str) -> Result<QueryOutput> {
        let engine = &self.engine;
        match statement {
            Statement::CreatePolicy(create) => {
                engine.create_policy(*create).await?;
                Ok(QueryOutput::nothing())
            }
            Statement::DropPolicy(drop) => {
                engine.drop_policy(&drop).await?;
                Ok(QueryOutput::nothing())
            }
            Statement::Evolve(evolve) => self.evolve(*evolve, sql).await,
            Statement::CancelRun { run_id } => {
                engine.scheduler().cancel(&run_id).await?;
                Ok(QueryOutput::nothing())
            }
            Statement::ResumeRun { run_id } => {
                let handle = engine.scheduler().resume(&run_id).await?;
                run_row(handle).await
            }
            Statement::Checkpoint => {
                engine.store().checkpoint().await?;
                Ok(QueryOutput::nothing())
            }
            Statement::Optimize { table } => {
                let table = table.map(|parts| parts.join("."));
                engine.store().optimize(table.as_deref()).await?;
                Ok(QueryOutput::nothing())
            }
            Statement::CreateTask { path } => {
                let task = engine.import_task(Path::new(&path), false).await?;
                QueryOutput::of_columns(vec![
                    ("task_id", text(&task.task.task_id)),
                    ("metric", text(&task.task.metric)),
                    ("validation", text(&task.task.validation)),
                    (
                        "checks",
                        Arc::new(Int64Array::from(vec![
                            i64::try_from(task.checks.len()).unwrap_or(i64::MAX),
                        ])),
                    ),
                ])
                .map_err(EngineError::from)
            }
            Statement::CreateModel(CreateModel { name, .. }) => Err(EngineError::Request(format!(
                "CREATE MODEL {name}: this version has no provider that takes options; the models are {}",
                engine
                    .scheduler()
                    .services()
                    .models
                    .names()
                    .collect::<Vec<_>>()
                    .join(", ")
            ))),
            Statement::DataFusion(_)
            | Statement::Expand(_)
            | Statement::ExplainExpand(_)
            | Statement::ShowPolicies
            | Statement::ShowRuns
            | Statement::ShowCreatePolicy { .. } => {
                Err(EngineError::Request("this statement does not write".to_owned()))
            }
        }
    }

    fn require_write(&self, statement: &Statement) -> Result<()> {
        match self.access {
            Access::ReadWrite => Ok(()),
            Access::ReadOnly => {
                let words: Vec<String> = statement
                    .to_string()
                    .split_whitespace()
                    .take(2)
                    .map(str::to_owned)
                    .collect();
                Err(PlanError::ReadOnly {
                    statement: words.join(" "),
                }
                .into())
            }
        }
    }

    async fn run_plan(&self, state: &SessionState, plan: LogicalPlan) -> Result<QueryOutput> {
        check_statement(&plan, self.access)?;
        match &plan {
            // Statements that change the session are for the session's own state; a statement's state ends with it.
            LogicalPlan::Statement(PlanStatement::SetVariable(_) | PlanStatement::ResetVariable(_))
            | LogicalPlan::Ddl(_) => {
                let frame = self.context().execute_logical_plan(plan).await?;
                Ok(QueryOutput::of_stream(frame.execute_stream().await?))
            }
            LogicalPlan::Statement(_) => {
                let frame = self.context().execute_logical_plan(plan).await?;
                Ok(QueryOutput::of_stream(frame.execute_stream().await?))
            }
            _ => {
                let physical = state.create_physical_plan(&plan).await?;
                Ok(QueryOutput::of_stream(execute_stream(physical, state.task_ctx())?))
            }
        }
    }

    async fn select(&self, snapshot: Arc<Snapshot>, sql: &str) -> Result<QueryOutput> {
        let state = self.statement_state(snapshot, sql);
        let plan = state.create_logical_plan(sql).await?;
        self.run_plan(&state, plan).await
    }

    async fn expand(
        &self,
        expand: Expand,
        mode: ExpandMode,
        snapshot: Arc<Snapshot>,
        sql: &str,
    ) -> Result<QueryOutput> {
        let state = self.statement_state(snapshot, sql);
        let plan = plan_expand(&state, &expand, mode).await?;
        self.run_plan(&state, plan).await
    }

    async fn evolve(&self, evolve: Evolve, sql: &str) -> Result<QueryOutput> {
        let engine = &self.engine;
        let variables = self.variables();
        let set = |value: String| (!value.is_empty()).then_some(value);
        let defaults = engine.defaults();
        let policy = evolve
            .policy
            .or(set(variables.policy))
            .unwrap_or_else(|| defaults.policy.clone());
        let policy_sql = engine.policy(&policy).await?.sql;
        let run_id = evolve.options.id.clone().unwrap_or_else(fresh_id);
        let run = Run {
            statement_id: run_id.clone(),
            run_id,
            task_id: evolve.task_id,
            policy,
            policy_sql,
            model: evolve
                .model
                .or(set(variables.model))
                .unwrap_or_else(|| defaults.model.clone()),
            sandbox: evolve
                .sandbox
                .or(set(variables.sandbox))
                .unwrap_or_else(|| defaults.sandbox.clone()),
            options: defaults.run_options(&evolve.options),
            created_at: engine.now(),
            started_at: None,
            status: "running".to_owned(),
        };
        let handle = engine.scheduler().start(run, sql).await?;
        if evolve.is_async {
            return QueryOutput::of_columns(vec![("run_id", text(&handle.run_id)), ("status", text("running"))])
                .map_err(EngineError::from);
        }
        run_row(handle).await
    }
}

/// Waits for a run and returns it as one row.
async fn run_row(handle: RunHandle) -> Result<QueryOutput> {
    let run_id = handle.run_id.clone();
    let Progress {
        status,
        steps_done,
        best,
        final_node_id,
        stop_reason,
        error,
        ..
    } = handle.wait().await?;
    let optional = |value: Option<String>| Arc::new(StringArray::from(vec![value])) as ArrayRef;
    QueryOutput::of_columns(vec![
        ("run_id", text(&run_id)),
        ("status", text(status)),
        ("steps", Arc::new(Int64Array::from(vec![steps_done]))),
        ("best_node_id", optional(best.as_ref().map(|best| best.node_id.clone()))),
        (
            "best_score",
            Arc::new(Float64Array::from(vec![best.as_ref().and_then(|best| best.score)])),
        ),
        (
            "best_step",
            Arc::new(Int64Array::from(vec![best.as_ref().map(|best| best.step)])),
        ),
        ("final_node_id", optional(final_node_id)),
        ("stop_reason", optional(stop_reason)),
        ("error", optional(error)),
    ])
    .map_err(EngineError::from)
}

fn text(value: &str) -> ArrayRef {
    Arc::new(StringArray::from(vec![value]))
}
