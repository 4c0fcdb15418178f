//! A session with what commands need: rows of a query, and ids by their first characters.

use std::sync::Arc;
use std::time::Instant;

use super::context::Context;
use super::error::CliError;
use super::interrupt;
use super::printer::Printer;
use super::sql_text::literal;
use crate::dialect;
use crate::engine::{Engine, OpenMode, QueryOutput, Session, SessionOptions};
use crate::session::ResultRows;

/// Most ids that an ambiguous prefix lists.
const LISTED: usize = 10;

/// Short name of the newest run.
const NEWEST: &str = "last";

/// A session on an engine that this command opened.
pub struct Client {
    engine: Arc<Engine>,
    session: Session,
}

impl Client {
    /// Opens the configured store.
    pub async fn open(context: &Context, mode: OpenMode, options: &SessionOptions) -> Result<Self, CliError> {
        let engine = context.engine(mode).await?;
        let session = engine.session(options);
        Ok(Self { engine, session })
    }

    /// Opens the configured store for reading only.
    pub async fn reader(context: &Context) -> Result<Self, CliError> {
        Self::open(
            context,
            OpenMode::ReadOnly,
            &SessionOptions {
                read_only: true,
                run: None,
            },
        )
        .await
    }

    /// Opens the configured store for reading and writing.
    pub async fn writer(context: &Context) -> Result<Self, CliError> {
        Self::open(context, OpenMode::Existing, &SessionOptions::default()).await
    }

    /// The same engine with a session that shows a run.
    pub fn with_run(self, run: String, read_only: bool) -> Self {
        let session = self.engine.session(&SessionOptions {
            read_only,
            run: Some(run),
        });
        Self { session, ..self }
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Runs the statements of a text one after the other and prints their rows; returns the number of rows.
    pub async fn run(&self, sql: &str, printer: &mut Printer) -> Result<usize, CliError> {
        let mut rows = 0;
        for statement in dialect::parse(sql).map_err(crate::engine::EngineError::from)? {
            let started = Instant::now();
            let work = async {
                let output = self.session.execute_statement(statement).await?;
                printer.print_since(output, started).await
            };
            rows += interrupt::guard(&self.engine, work).await??;
        }
        Ok(rows)
    }

    /// The result of one statement.
    pub async fn output(&self, sql: &str) -> Result<QueryOutput, CliError> {
        let mut outputs = self.session.execute(sql).await?;
        outputs
            .pop()
            .ok_or_else(|| CliError::Failed("there is no statement in the text".to_owned()))
    }

    /// All rows of one statement.
    pub async fn statement_rows(&self, sql: &str) -> Result<ResultRows, CliError> {
        Ok(ResultRows::new(self.output(sql).await?.collect().await?))
    }

    /// All rows of a query of ours; unlike a user's it is not noted in `system.queries`.
    pub async fn rows(&self, sql: &str) -> Result<ResultRows, CliError> {
        Ok(self.engine.queries().rows(sql, &[], None, None).await?)
    }

    /// The node that an id or its first characters name.
    pub async fn node(&self, prefix: &str) -> Result<String, CliError> {
        let sql = format!(
            "SELECT node_id AS id, concat('step ', step, ', ', operator, ', ', status) AS what FROM evo.nodes \
             WHERE starts_with(node_id, {}) ORDER BY node_id LIMIT {}",
            literal(prefix),
            LISTED + 1
        );
        self.unique("node", prefix, &sql).await
    }

    /// The run that an id, its first characters or `last` name.
    pub async fn run_id(&self, prefix: &str) -> Result<String, CliError> {
        let condition = if prefix == NEWEST {
            "TRUE ORDER BY created_at DESC LIMIT 1".to_owned()
        } else {
            format!(
                "starts_with(run_id, {}) ORDER BY run_id LIMIT {}",
                literal(prefix),
                LISTED + 1
            )
        };
        let sql = format!("SELECT run_id AS id, concat(task_id, ', ', status) AS what FROM evo.runs WHERE {condition}");
        self.unique("run", prefix, &sql).await
    }

    async fn unique(&self, kind: &str, prefix: &str, sql: &str) -> Result<String, CliError> {
        let rows = self.rows(sql).await?;
        let found = rows
            .iter()
            .map(|row| Ok((row.text("id")?, row.text("what")?)))
            .collect::<datafusion::error::Result<Vec<_>>>()?;
        match found.as_slice() {
            [] if prefix == NEWEST => Err(CliError::Failed(format!("there is no {kind} yet"))),
            [] => Err(CliError::Failed(format!(
                "no {kind} has an id that begins with '{prefix}'"
            ))),
            [(id, _)] => Ok(id.clone()),
            several => {
                if let Some((id, _)) = several.iter().find(|(id, _)| id == prefix) {
                    return Ok(id.clone());
                }
                let mut message = format!("'{prefix}' is the beginning of several {kind} ids:");
                for (id, what) in several.iter().take(LISTED) {
                    message.push_str(&format!("\n  {id}  {what}"));
                }
                if several.len() > LISTED {
                    message.push_str("\n  …");
                }
                Err(CliError::Failed(message))
            }
        }
    }

    /// Waits for what the engine still writes.
    pub async fn close(self) {
        self.engine.close().await;
    }
}
