//! A session with what commands need: rows of a query, and ids by names.

use std::sync::Arc;
use std::time::Instant;

use super::context::Context;
use super::error::CliError;
use super::interrupt;
use super::printer::Printer;
use crate::dialect;
use crate::engine::{Engine, OpenMode, QueryOutput, Session, SessionOptions};
use crate::session::ResultRows;

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

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
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
            rows += interrupt::guard(&self.engine, work).await?;
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

    /// Runs a statement without rows and says what it did.
    pub async fn act(&self, sql: &str, printer: &mut Printer) -> Result<(), CliError> {
        let output = self.output(sql).await?;
        printer.print(output).await?;
        Ok(())
    }

    /// The node that an id or its first characters name.
    pub async fn node(&self, name: &str) -> Result<String, CliError> {
        Ok(self.engine.node_id(name).await?)
    }

    /// The run that an id, its first characters or `last` name.
    pub async fn run_id(&self, name: &str) -> Result<String, CliError> {
        Ok(self.engine.run_id(name).await?)
    }

    /// Waits for what the engine still writes.
    pub async fn close(self) {
        self.engine.close().await;
    }
}
