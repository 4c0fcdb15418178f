//! A session: variables and access of one client, and the running of statement texts.

use std::sync::Arc;

use clade_catalog::Snapshot;
use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;

use super::error::{EngineError, Result};
use super::expand_handler::StatementText;
use super::open::Engine;
use super::output::QueryOutput;
use super::place::locate;
use super::query_note::QueryNote;
use crate::dialect::{self, Evolve, ParsedStatement, Position, Statement};
use crate::plan::{Access, ExpandHandlerHandle};
use crate::scheduler::Run;
use crate::session::CladeVariables;

/// How a session is opened.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// Queries only.
    pub read_only: bool,
    /// Run that `run.*` and the policies show.
    pub run: Option<String>,
}

/// A client's session.
pub struct Session {
    pub(super) engine: Arc<Engine>,
    pub(super) access: Access,
    context: SessionContext,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(super) fn new(engine: Arc<Engine>, options: &SessionOptions) -> Self {
        let mut state = engine.base_state().clone();
        let settings = state.config_mut().options_mut();
        if let Some(variables) = settings.extensions.get_mut::<CladeVariables>() {
            variables.run_id = options.run.clone().unwrap_or_default();
        }
        // So that planning errors name their place; the engine's own queries need none.
        settings.sql_parser.collect_spans = true;
        let read_only = options.read_only || engine.store().is_read_only();
        let access = if read_only { Access::ReadOnly } else { Access::ReadWrite };
        Self {
            engine,
            access,
            context: SessionContext::new_with_state(state),
        }
    }

    /// The session's variables.
    pub fn variables(&self) -> CladeVariables {
        self.context
            .state()
            .config()
            .options()
            .extensions
            .get::<CladeVariables>()
            .cloned()
            .unwrap_or_default()
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The run that an EVOLVE would start; nothing is started or recorded.
    ///
    /// # Errors
    /// When there is no such policy, or in a session that only reads.
    pub async fn planned_run(&self, evolve: Evolve) -> Result<Run> {
        self.require_write(&Statement::Evolve(Box::new(evolve.clone())))?;
        let dir = self.engine.store().dir();
        let planned = async {
            let snapshot = self.snapshot().await?;
            self.engine.refresh_policies(&snapshot).await?;
            self.run_of(evolve).await
        };
        planned.await.map_err(|error| error.with_database(dir))
    }

    pub(super) fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Runs every statement of a text in order. Rows of all but the last statement are read to their end first.
    ///
    /// # Errors
    /// The first statement that does not parse or fails; statements before it have been done.
    pub async fn execute(&self, text: &str) -> Result<Vec<QueryOutput>> {
        let statements = dialect::parse(text)?;
        let count = statements.len();
        let mut outputs = Vec::with_capacity(count);
        for (position, statement) in statements.into_iter().enumerate() {
            let output = self.execute_statement(statement).await?;
            outputs.push(if position + 1 == count {
                output
            } else {
                let schema = Arc::clone(&output.schema);
                QueryOutput::of_batches(schema, output.collect().await?)
            });
        }
        Ok(outputs)
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// When it is refused or fails before its first row.
    pub async fn execute_statement(&self, statement: ParsedStatement) -> Result<QueryOutput> {
        let started_at = self.engine.now();
        let text = statement.sql.clone();
        let start = Position {
            line: statement.line,
            column: statement.column,
        };
        let create_model = match &statement.statement {
            Statement::CreateModel(create) => Some(create.clone()),
            _ => None,
        };
        let dir = self.engine.store().dir();
        let snapshot = self.snapshot().await.map_err(|error| error.with_database(dir))?;
        self.engine
            .refresh_policies(&snapshot)
            .await
            .map_err(|error| error.with_database(dir))?;
        let outcome = self
            .dispatch(statement, Arc::clone(&snapshot))
            .await
            .map_err(|error| locate(error, &text, start).with_database(dir));
        // What was refused may hold a key in the wrong place.
        let text = match create_model {
            Some(create) if outcome.is_err() => create.without_texts().to_string(),
            _ => text,
        };
        let note = QueryNote::new(&self.engine, text, &snapshot, started_at);
        match outcome {
            Ok(mut output) => {
                output.stream = note.follow(output.stream);
                Ok(output)
            }
            Err(error) => {
                note.failed(&error);
                Err(error)
            }
        }
    }

    /// The snapshot that the next statement reads.
    async fn snapshot(&self) -> Result<Arc<Snapshot>> {
        let wanted = self.variables().snapshot;
        let at = match wanted.as_str() {
            "" => None,
            number => Some(number.parse().map_err(|_| EngineError::snapshot_number(number))?),
        };
        Ok(self.engine.store().snapshot(at).await?)
    }

    /// The state that a statement is planned and executed with.
    pub(super) fn statement_state(&self, snapshot: Arc<Snapshot>, text: &str) -> SessionState {
        let mut state = self.context.state();
        let config = state.config_mut();
        config.set_extension(snapshot);
        config.set_extension(Arc::new(StatementText(text.to_owned())));
        config.set_extension(Arc::new(ExpandHandlerHandle(self.engine.expand_handler())));
        state
    }
}
