//! What each statement does.

use std::path::Path;
use std::sync::Arc;

use clade_catalog::Snapshot;
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement as PlanStatement};
use datafusion::physical_plan::execute_stream;

use super::columns::{floats, ints, texts};
use super::describe::described;
use super::error::{EngineError, Result};
use super::names::NEWEST_RUN;
use super::notice::Notice;
use super::output::QueryOutput;
use super::session::Session;
use super::settings::shown;
use crate::dialect::{Evolve, Expand, ParsedStatement, Position, Statement};
use crate::gym::{Layout, Progress as ImportProgress};
use crate::plan::{Access, ExpandMode, PlanError, check_statement, plan_expand};
use crate::scheduler::{Progress, Run, RunHandle, fresh_id};

impl Session {
    pub(super) async fn dispatch(&self, parsed: ParsedStatement, snapshot: Arc<Snapshot>) -> Result<QueryOutput> {
        let ParsedStatement {
            statement,
            sql,
            line,
            column,
        } = parsed;
        match statement {
            Statement::DataFusion(statement) => {
                let refused = match described(&statement) {
                    Some(table) => match self.engine.describe_rows(table).await? {
                        Some(columns) => return Ok(columns),
                        None => self.refused_description(table)?,
                    },
                    None => match self.refused_variable(&statement) {
                        None => self.refused_target(&statement).await?,
                        refused => refused,
                    },
                };
                if let Some(refusal) = refused {
                    return Err(refusal.within(&sql, Position { line, column }));
                }
                if let Some(variable) = shown(&statement)
                    && let Some(value) = self.show(&variable)?
                {
                    return Ok(value);
                }
                let state = self.statement_state(snapshot, &sql);
                let plan = state.statement_to_plan(*statement).await?;
                self.run_plan(&state, plan).await
            }
            Statement::Expand(expand) => self.expand(*expand, ExpandMode::Run, snapshot, &sql).await,
            Statement::ExplainExpand(explain) => self.expand(explain.expand, ExpandMode::Explain, snapshot, &sql).await,
            Statement::ShowPolicies => self.select(snapshot, include_str!("../../sql/show/policies.sql")).await,
            Statement::ShowModels => self.select(snapshot, include_str!("../../sql/show/models.sql")).await,
            Statement::ShowRuns => self.select(snapshot, include_str!("../../sql/show/runs.sql")).await,
            Statement::ShowCreatePolicy { name } => {
                let policy = self.engine.policy(&name).await?;
                QueryOutput::of_columns(vec![("create_policy", texts([Some(&policy.create_statement())]))])
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
                let name = create.name.clone();
                let verb = engine.create_policy(*create).await?;
                Ok(QueryOutput::done(format!(
                    "policy {name} is {verb}: EVOLVE TASK '…' WITH POLICY {name} searches with it"
                )))
            }
            Statement::DropPolicy(drop) => {
                let dropped = engine.drop_policy(&drop).await?;
                let name = &drop.name;
                Ok(QueryOutput::done(if dropped {
                    format!("policy {name} is dropped; the runs that used it keep it")
                } else {
                    format!("there was no policy {name} to drop")
                }))
            }
            Statement::Evolve(evolve) => self.evolve(*evolve, sql).await,
            Statement::CancelRun { run_id } => {
                let run_id = engine.run_id(&run_id).await?;
                engine.scheduler().cancel(&run_id).await?;
                Ok(QueryOutput::done(format!(
                    "run {run_id} was asked to end; what it found stays"
                )))
            }
            Statement::ResumeRun { run_id } => {
                let run_id = engine.run_id(&run_id).await?;
                let handle = engine.scheduler().resume(&run_id).await?;
                run_row(handle).await
            }
            Statement::Checkpoint => {
                engine.store().checkpoint().await?;
                Ok(QueryOutput::done("all rows are in Parquet files now"))
            }
            Statement::Optimize { table } => {
                let table = table.map(|parts| parts.join("."));
                engine.store().optimize(table.as_deref()).await?;
                let what = table.map_or_else(|| "all tables".to_owned(), |table| format!("table {table}"));
                Ok(QueryOutput::done(format!("small files of {what} are merged")))
            }
            Statement::CreateTask { path } => {
                self.create_task(Path::new(&path), Layout::Package, false, ImportProgress::default())
                    .await
            }
            Statement::CreateModel(create) => {
                let name = create.name.clone();
                let verb = engine.create_model(create).await?;
                Ok(QueryOutput::done(format!(
                    "model {name} is {verb}: clade model test {name} asks it for a few tokens"
                )))
            }
            Statement::DropModel(drop) => {
                let dropped = engine.drop_model(&drop).await?;
                let name = &drop.name;
                Ok(QueryOutput::done(if dropped {
                    format!("model {name} is dropped; what it wrote stays")
                } else {
                    format!("there was no model {name} to drop")
                }))
            }
            Statement::DataFusion(_)
            | Statement::Expand(_)
            | Statement::ExplainExpand(_)
            | Statement::ShowPolicies
            | Statement::ShowModels
            | Statement::ShowRuns
            | Statement::ShowCreatePolicy { .. } => {
                Err(EngineError::Request("this statement does not write".to_owned()))
            }
        }
    }

    /// Imports a task package; with `force` also one that fails its checks. `progress` is told what begins.
    ///
    /// # Errors
    /// As [`Engine::import_task`], and in a session that only reads.
    pub async fn create_task(
        &self,
        path: &Path,
        layout: Layout,
        force: bool,
        progress: ImportProgress,
    ) -> Result<QueryOutput> {
        self.require_write(&Statement::CreateTask {
            path: path.to_string_lossy().into_owned(),
        })?;
        let imported = self.engine.import_task(path, layout, force, progress).await?;
        let task = &imported.task;
        let checks = i64::try_from(imported.checks.len()).unwrap_or(i64::MAX);
        let output = QueryOutput::of_columns(vec![
            ("task_id", texts([Some(&task.task_id)])),
            ("metric", texts([Some(&task.metric)])),
            ("validation", texts([Some(&task.validation)])),
            ("checks", ints([Some(checks)])),
        ])?;
        Ok(match self.engine.earlier_packages(task).await? {
            0 => output,
            _ => output.with(Notice::Warning(format!(
                "task {} had another package before: the new one takes its place from now on; the runs on the old one stay",
                task.task_id
            ))),
        })
    }

    pub(super) fn require_write(&self, statement: &Statement) -> Result<()> {
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
        match plan {
            // Statements that change the session are for the session's own state; a statement's state ends with it.
            LogicalPlan::Statement(PlanStatement::SetVariable(set)) => self.set(set).await,
            LogicalPlan::Statement(PlanStatement::ResetVariable(reset)) => self.reset(reset).await,
            LogicalPlan::Ddl(ddl) => {
                let said = made(&ddl);
                let frame = self.context().execute_logical_plan(LogicalPlan::Ddl(ddl)).await?;
                Ok(QueryOutput::of_stream(frame.execute_stream().await?).with(Notice::Info(said)))
            }
            plan @ LogicalPlan::Statement(_) => {
                let frame = self.context().execute_logical_plan(plan).await?;
                Ok(QueryOutput::of_stream(frame.execute_stream().await?))
            }
            plan => {
                if let LogicalPlan::Copy(copy) = &plan {
                    check_copy(copy)?;
                }
                let warning = self.missing_run(&plan)?;
                let physical = state.create_physical_plan(&plan).await?;
                let mut output = QueryOutput::of_stream(execute_stream(physical, state.task_ctx())?);
                output.notices.extend(warning);
                Ok(output)
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
        let is_async = evolve.is_async;
        let run = self.run_of(evolve).await?;
        let handle = self.engine.scheduler().start(run, sql).await?;
        if is_async {
            return QueryOutput::of_columns(vec![
                ("run_id", texts([Some(&handle.run_id)])),
                ("status", texts([Some("running")])),
            ])
            .map_err(EngineError::from);
        }
        run_row(handle).await
    }

    /// The run that an EVOLVE means: what it does not say comes from the session, then from the configuration.
    pub(super) async fn run_of(&self, evolve: Evolve) -> Result<Run> {
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
        if run_id == NEWEST_RUN {
            return Err(EngineError::Request(format!(
                "'{NEWEST_RUN}' names the newest run, whichever it is: choose another id"
            )));
        }
        let model = evolve
            .model
            .or(set(variables.model))
            .unwrap_or_else(|| defaults.model.clone());
        let sampling = engine
            .scheduler()
            .services()
            .models
            .get(&model)
            .await?
            .describe()
            .sampling;
        Ok(Run {
            statement_id: run_id.clone(),
            run_id,
            task_id: evolve.task_id,
            policy,
            policy_sql,
            model,
            sandbox: evolve
                .sandbox
                .or(set(variables.sandbox))
                .unwrap_or_else(|| defaults.sandbox.clone()),
            options: defaults.run_options(&evolve.options, sampling),
            created_at: engine.now(),
            started_at: None,
            status: "running".to_owned(),
        })
    }
}

/// Refuses what a CSV file cannot hold before any of it is written.
fn check_copy(copy: &CopyTo) -> Result<()> {
    if copy.file_type.get_ext() != "csv" {
        return Ok(());
    }
    match copy
        .input
        .schema()
        .fields()
        .iter()
        .find(|field| field.data_type().is_nested())
    {
        Some(field) => Err(EngineError::Request(format!(
            "COPY to CSV cannot write the column {name}, which is a list: leave it out, write \
             array_to_string({name}, ' ') AS {name}, or copy to Parquet or JSON",
            name = field.name()
        ))),
        None => Ok(()),
    }
}

/// What a statement that makes or drops something did, which holds for the session.
fn made(ddl: &DdlStatement) -> String {
    match ddl {
        DdlStatement::CreateView(view) => format!("view {} is made for this session", view.name),
        DdlStatement::DropView(view) => format!("view {} is dropped", view.name),
        DdlStatement::CreateMemoryTable(table) => format!("table {} is made for this session", table.name),
        DdlStatement::DropTable(table) => format!("table {} is dropped", table.name),
        other => format!("{} is done", other.name()),
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
    QueryOutput::of_columns(vec![
        ("run_id", texts([Some(&run_id)])),
        ("status", texts([Some(status)])),
        ("steps", ints([Some(steps_done)])),
        ("best_node_id", texts([best.as_ref().map(|best| &best.node_id)])),
        ("best_score", floats([best.as_ref().and_then(|best| best.score)])),
        ("best_step", ints([best.as_ref().map(|best| best.step)])),
        ("final_node_id", texts([final_node_id])),
        ("stop_reason", texts([stop_reason])),
        ("error", texts([error])),
    ])
    .map_err(EngineError::from)
}
