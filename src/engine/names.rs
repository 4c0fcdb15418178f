//! Runs, suites and nodes by their ids, by the beginning of an id, and `last` for the newest run.

use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;

use super::error::{EngineError, Result};
use super::open::Engine;
use crate::session::{Queries, ResultRows};

/// Name of the newest run.
pub const NEWEST_RUN: &str = "last";

/// Most ids that a message lists.
const LISTED: usize = 10;

/// Runs that are offered where a name fits none.
const OFFERED: usize = 5;

/// The runs that there are.
const RUNS: &str = include_str!("../../sql/names/runs.sql");
/// The suites that there are.
const SUITES: &str = include_str!("../../sql/names/suites.sql");
/// The nodes that there are.
const NODES: &str = include_str!("../../sql/names/nodes.sql");

/// What a name begins with that says of which kind it is; no id has the character in it.
const RUN_PREFIX: &str = "run/";
const SUITE_PREFIX: &str = "suite/";

/// What a name of a run or a suite names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A run, by its whole id.
    Run(String),
    /// A suite.
    Suite {
        /// Its name.
        suite_id: String,
        /// Whether a run has the same id.
        is_run_too: bool,
    },
}

/// A name that fits nothing, or several things.
#[derive(Debug, thiserror::Error)]
pub(super) enum NameError {
    /// No such thing, or several.
    #[error("{0}")]
    Name(String),
    /// The store could not be asked.
    #[error(transparent)]
    Query(#[from] DataFusionError),
}

impl From<NameError> for EngineError {
    fn from(error: NameError) -> Self {
        match error {
            NameError::Name(message) => Self::Request(message),
            NameError::Query(error) => error.into(),
        }
    }
}

impl Engine {
    /// The run that an id, its beginning or `last` names.
    ///
    /// # Errors
    /// When there is none or several; the message lists runs.
    pub async fn run_id(&self, name: &str) -> Result<String> {
        Ok(find_run(self.queries(), name).await?)
    }

    /// The run or suite that a name names: a suite by its whole name, else a run by its id, its beginning or `last`. `run/` or
    /// `suite/` before the name says which it is.
    ///
    /// # Errors
    /// When there is none or several; the message lists both.
    pub async fn subject(&self, name: &str) -> Result<Subject> {
        Ok(find_subject(self.queries(), name).await?)
    }

    /// Checks that there is a suite of this name.
    ///
    /// # Errors
    /// When there is none; the message lists the newest.
    pub async fn require_suite(&self, name: &str) -> Result<()> {
        let is_there = is_there(self.queries(), SUITES, name).await.map_err(NameError::from)?;
        if is_there {
            return Ok(());
        }
        Err(unknown_suite(self.queries(), name)
            .await
            .map_err(NameError::from)?
            .into())
    }

    /// The node that an id or its beginning names.
    ///
    /// # Errors
    /// When there is none or several.
    pub async fn node_id(&self, name: &str) -> Result<String> {
        let found = list(self.queries(), &beginning(NODES), Some(name))
            .await
            .map_err(NameError::from)?;
        match only("node", name, found)? {
            Some(node) => Ok(node),
            None => Err(EngineError::Request(format!(
                "no node has an id that begins with '{name}'"
            ))),
        }
    }
}

/// The newest runs, newest first.
fn newest_runs() -> String {
    format!("SELECT * FROM ({RUNS}) ORDER BY created_at DESC, id DESC LIMIT {OFFERED}")
}

/// The run that an id, its beginning or `last` names.
pub(super) async fn find_run(queries: &Queries, name: &str) -> Result<String, NameError> {
    let newest = newest_runs();
    if name == NEWEST_RUN {
        let newest = list(queries, &newest, None).await?;
        return match newest.into_iter().next() {
            Some((id, _)) => Ok(id),
            None => Err(NameError::Name("there is no run yet".to_owned())),
        };
    }
    if let Some(run) = fitting_run(queries, name).await? {
        return Ok(run);
    }
    let known = list(queries, &newest, None).await?;
    if known.is_empty() {
        return Err(NameError::Name(format!(
            "there is no run '{name}': this store has none yet"
        )));
    }
    Err(NameError::Name(format!(
        "there is no run '{name}', and no id begins like that; '{NEWEST_RUN}' is the newest run, and the newest are:{}",
        lines(&known)
    )))
}

/// The rows whose id begins with a name, one more than a message lists.
fn beginning(rows: &str) -> String {
    format!(
        "SELECT * FROM ({rows}) WHERE starts_with(id, CAST($name AS VARCHAR)) ORDER BY id LIMIT {}",
        LISTED + 1
    )
}

/// The run whose id is a name, or the only one whose id begins with it.
async fn fitting_run(queries: &Queries, name: &str) -> Result<Option<String>, NameError> {
    only("run", name, list(queries, &beginning(RUNS), Some(name)).await?)
}

/// The run or suite that a name names.
async fn find_subject(queries: &Queries, name: &str) -> Result<Subject, NameError> {
    if let Some(run) = name.strip_prefix(RUN_PREFIX) {
        return Ok(Subject::Run(find_run(queries, run).await?));
    }
    if name == NEWEST_RUN {
        return Ok(Subject::Run(find_run(queries, name).await?));
    }
    let suite = name.strip_prefix(SUITE_PREFIX).unwrap_or(name);
    if is_there(queries, SUITES, suite).await? {
        return Ok(Subject::Suite {
            suite_id: suite.to_owned(),
            is_run_too: is_there(queries, RUNS, name).await?,
        });
    }
    if suite != name {
        return Err(unknown_suite(queries, suite).await?);
    }
    let suites = newest_suites(queries).await?;
    if let Some(run) = fitting_run(queries, name).await? {
        return Ok(Subject::Run(run));
    }
    let runs = newest_runs();
    let runs = list(queries, &runs, None).await?;
    let known = |kind: &str, found: &[(String, String)]| match found.is_empty() {
        true => format!("\nthis store has no {kind} yet"),
        false => format!("\nthe newest {kind}s are:{}", lines(found)),
    };
    Err(NameError::Name(format!(
        "there is no run and no suite '{name}', and no id of a run begins like that{}{}",
        known("run", &runs),
        known("suite", &suites)
    )))
}

/// Whether one of the rows has this id.
async fn is_there(queries: &Queries, rows: &str, id: &str) -> datafusion::error::Result<bool> {
    let sql = format!("SELECT * FROM ({rows}) WHERE id = CAST($name AS VARCHAR)");
    Ok(!list(queries, &sql, Some(id)).await?.is_empty())
}

/// The newest suites, newest first.
async fn newest_suites(queries: &Queries) -> datafusion::error::Result<Vec<(String, String)>> {
    let sql = format!("SELECT * FROM ({SUITES}) ORDER BY created_at DESC, id DESC LIMIT {OFFERED}");
    list(queries, &sql, None).await
}

async fn unknown_suite(queries: &Queries, name: &str) -> datafusion::error::Result<NameError> {
    let suites = newest_suites(queries).await?;
    Ok(NameError::Name(match suites.is_empty() {
        true => format!("there is no suite '{name}': this store has none yet"),
        false => format!("there is no suite '{name}'; the newest are:{}", lines(&suites)),
    }))
}

/// Ids with what they are. An empty name would fit everything and fits nothing.
async fn list(queries: &Queries, sql: &str, name: Option<&str>) -> datafusion::error::Result<Vec<(String, String)>> {
    let rows: ResultRows = match name {
        Some("") => return Ok(Vec::new()),
        Some(name) => {
            queries
                .rows(sql, &[("name", ScalarValue::from(name))], None, None)
                .await?
        }
        None => queries.rows(sql, &[], None, None).await?,
    };
    rows.iter()
        .map(|row| Ok((row.text("id")?, row.text("what")?)))
        .collect()
}

/// The only id of a list, or the one that is the name itself.
fn only(kind: &str, name: &str, found: Vec<(String, String)>) -> Result<Option<String>, NameError> {
    if let [(id, _)] = found.as_slice() {
        return Ok(Some(id.clone()));
    }
    if let Some((id, _)) = found.iter().find(|(id, _)| id == name) {
        return Ok(Some(id.clone()));
    }
    if found.is_empty() {
        return Ok(None);
    }
    let mut message = format!("'{name}' is the beginning of several {kind} ids:{}", lines(&found));
    if found.len() > LISTED {
        message.push_str("\n  …");
    }
    Err(NameError::Name(message))
}

fn lines(found: &[(String, String)]) -> String {
    found
        .iter()
        .take(LISTED)
        .map(|(id, what)| format!("\n  {id}  {what}"))
        .collect()
}
