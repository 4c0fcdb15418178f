//! `SET`, `RESET` and `SHOW` of our own variables: values are checked when they are set, not when a later statement trips over them.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use datafusion::common::config::ExtensionOptions;
use datafusion::logical_expr::{LogicalPlan, SetVariable, Statement as PlanStatement};
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;

use super::error::{EngineError, Result};
use super::notice::Notice;
use super::output::QueryOutput;
use super::session::Session;
use crate::plan::lineage;
use crate::policy::CURRENT_RUN;
use crate::session::DEFAULT_SCHEMA;

/// The variable of ours that a SHOW asks for.
pub(super) fn shown(statement: &DataFusionStatement) -> Option<String> {
    let DataFusionStatement::Statement(statement) = statement else {
        return None;
    };
    let SqlStatement::ShowVariable { variable } = statement.as_ref() else {
        return None;
    };
    let name: Vec<String> = variable.iter().map(|part| part.value.to_lowercase()).collect();
    Some(name.join(".")).filter(|name| name.starts_with("clade."))
}

impl Session {
    /// The value of a variable of ours, NULL when it is not set; none when there is no such variable.
    pub(super) fn show(&self, name: &str) -> Result<Option<QueryOutput>> {
        let entry = self
            .variables()
            .entries()
            .into_iter()
            .find(|entry| format!("clade.{}", entry.key) == name);
        let Some(entry) = entry else { return Ok(None) };
        let value = entry.value.filter(|value| !value.is_empty());
        let output = QueryOutput::of_columns(vec![
            ("name", Arc::new(StringArray::from(vec![name])) as ArrayRef),
            ("value", Arc::new(StringArray::from(vec![value]))),
        ])?;
        Ok(Some(output))
    }

    /// Sets a variable and says so.
    pub(super) async fn set(&self, set: SetVariable) -> Result<QueryOutput> {
        let SetVariable { variable, value } = set;
        let value = self.checked(&variable, value).await?;
        let said = if value.is_empty() {
            format!("{variable} is not set any more: its default holds")
        } else {
            format!("{variable} is {value}")
        };
        let plan = LogicalPlan::Statement(PlanStatement::SetVariable(SetVariable { variable, value }));
        self.context().execute_logical_plan(plan).await?;
        Ok(QueryOutput::done(said))
    }

    /// The value that is meant. An empty one stands for the default.
    async fn checked(&self, variable: &str, value: String) -> Result<String> {
        let engine = &self.engine;
        if value.is_empty() {
            return Ok(value);
        }
        match variable {
            "clade.run_id" => engine.run_id(&value).await,
            "clade.snapshot" => {
                let number = value.parse().map_err(|_| EngineError::snapshot_number(&value))?;
                engine.store().snapshot(Some(number)).await?;
                Ok(value)
            }
            "clade.policy" => Ok(engine.policy(&value).await?.name),
            "clade.model" => {
                engine.scheduler().services().models.get(&value).await?;
                Ok(value)
            }
            "clade.sandbox" => {
                engine.sandbox(&value)?;
                Ok(value)
            }
            _ => Ok(value),
        }
    }

    /// A warning where a plan asks for the current run and there is none.
    pub(super) fn missing_run(&self, plan: &LogicalPlan) -> Result<Option<Notice>> {
        if !self.variables().run_id.is_empty() {
            return Ok(None);
        }
        let asks = lineage(plan, DEFAULT_SCHEMA)?.stable.contains(CURRENT_RUN);
        Ok(asks.then(|| {
            Notice::Warning(
                "no run is chosen, so run.* and the policies are empty: SET clade.run_id = 'last' chooses the newest run, \
                 as clade sql --run last does; SHOW RUNS lists them"
                    .to_owned(),
            )
        }))
    }
}
