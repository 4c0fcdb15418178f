//! `SET`, `RESET` and `SHOW` of our own variables: values are checked when they are set, not when a later statement trips over them.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use datafusion::common::config::ExtensionOptions;
use datafusion::logical_expr::{LogicalPlan, ResetVariable, SetVariable, Statement as PlanStatement};
use datafusion::sql::parser::{ResetStatement, Statement as DataFusionStatement};
use datafusion::sql::sqlparser::ast::{ObjectName, Set, Spanned, Statement as SqlStatement};
use datafusion::sql::sqlparser::tokenizer::Span;

use super::error::{EngineError, Result};
use super::notice::Notice;
use super::output::QueryOutput;
use super::refusal::Refusal;
use super::session::Session;
use crate::plan::lineage;
use crate::policy::CURRENT_RUN;
use crate::session::DEFAULT_SCHEMA;

/// Variables whose names DataFusion takes beside those of its list.
const ALIASES: [&str; 2] = ["timezone", "time.zone"];
/// Prefix of variables of DataFusion that are in no list.
const RUNTIME: &str = "datafusion.runtime.";

/// What a statement does to a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Show,
    Change,
}

/// The variable that a statement shows or changes, with its place.
fn variable(statement: &DataFusionStatement) -> Option<(Use, String, Span)> {
    let statement = match statement {
        DataFusionStatement::Reset(ResetStatement::Variable(name)) => {
            return Some((Use::Change, dotted(name), name.span()));
        }
        DataFusionStatement::Statement(statement) => statement.as_ref(),
        _ => return None,
    };
    match statement {
        SqlStatement::Set(Set::SingleAssignment { variable, .. }) => {
            Some((Use::Change, dotted(variable), variable.span()))
        }
        SqlStatement::ShowVariable { variable } => {
            let is_verbose = |part: &str| part.eq_ignore_ascii_case("verbose");
            let name = match variable.as_slice() {
                [name @ .., last] if !name.is_empty() && is_verbose(&last.value) => name,
                whole => whole,
            };
            let parts: Vec<String> = name.iter().map(|part| part.value.to_lowercase()).collect();
            let span = name.first().map_or_else(Span::empty, |part| part.span);
            Some((Use::Show, parts.join("."), span))
        }
        _ => None,
    }
}

fn dotted(name: &ObjectName) -> String {
    let parts = name.0.iter().filter_map(|part| part.as_ident());
    let parts: Vec<String> = parts.map(|part| part.value.to_lowercase()).collect();
    parts.join(".")
}

/// The variable of ours that a SHOW asks for.
pub(super) fn shown(statement: &DataFusionStatement) -> Option<String> {
    match variable(statement) {
        Some((Use::Show, name, _)) if name.starts_with("clade.") => Some(name),
        _ => None,
    }
}

impl Session {
    /// Why a statement cannot show or change the variable that it names.
    pub(super) fn refused_variable(&self, statement: &DataFusionStatement) -> Option<Refusal> {
        if let DataFusionStatement::Statement(statement) = statement
            && let SqlStatement::Set(Set::MultipleAssignments { .. } | Set::ParenthesizedAssignments { .. }) =
                statement.as_ref()
        {
            let message = "SET takes one variable: write a statement for each";
            return Some(Refusal::new(Span::empty(), message));
        }
        let (usage, name, span) = variable(statement)?;
        let own = self.variables().entries();
        let is_known = match name.strip_prefix("clade.") {
            Some(name) => own.iter().any(|entry| entry.key == name),
            None => {
                let state = self.context().state();
                (usage == Use::Show && name == "all")
                    || ALIASES.contains(&name.as_str())
                    || name.starts_with(RUNTIME)
                    || state.config_options().entries().iter().any(|entry| entry.key == name)
            }
        };
        if is_known {
            return None;
        }
        let own: Vec<String> = own.iter().map(|entry| format!("clade.{}", entry.key)).collect();
        let mut message = format!("there is no variable {name}: a session has {}", own.join(", "));
        message.push_str(match usage {
            Use::Show => {
                "; there are also SHOW TABLES, SHOW COLUMNS FROM table, SHOW RUNS, SHOW POLICIES, SHOW CREATE POLICY name, \
                 SHOW FUNCTIONS and SHOW ALL"
            }
            Use::Change => "; the configuration is set by --set, by CLADE_* variables or in clade.toml",
        });
        Some(Refusal::new(span, message))
    }

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
        let refused = format!("{variable} cannot be '{value}'");
        let plan = LogicalPlan::Statement(PlanStatement::SetVariable(SetVariable { variable, value }));
        match self.context().execute_logical_plan(plan).await {
            Ok(_) => Ok(QueryOutput::done(said)),
            // What DataFusion says names neither of the two.
            Err(error) => Err(EngineError::Request(format!("{refused}: {}", EngineError::from(error)))),
        }
    }

    /// Gives a variable its default.
    ///
    /// # Errors
    /// When there is no such variable.
    pub(super) async fn reset(&self, reset: ResetVariable) -> Result<QueryOutput> {
        let variable = reset.variable.clone();
        // DataFusion resets its own variables only. Those of Clade are empty by default.
        let plan = match variable.starts_with("clade.") {
            true => PlanStatement::SetVariable(SetVariable {
                variable: variable.clone(),
                value: String::new(),
            }),
            false => PlanStatement::ResetVariable(reset),
        };
        self.context()
            .execute_logical_plan(LogicalPlan::Statement(plan))
            .await?;
        Ok(QueryOutput::done(format!("{variable} has its default again")))
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
