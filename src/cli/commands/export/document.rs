//! JSON documents about a run, each made from SQL.

use std::path::Path;
use std::sync::Arc;

use clade_catalog::Snapshot;
use serde_json::Value;

use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::new_file::NewFile;
use crate::cli::printer::Format;
use crate::cli::terminal::note;
use crate::engine::EngineError;
use crate::session::ResultRows;

/// Version of the published shape.
pub const SCHEMA_VERSION: i64 = 1;

/// Queries about one run, all of them on one snapshot: the run may be at work.
pub struct RunQueries {
    client: Client,
    run_id: String,
    snapshot: Arc<Snapshot>,
}

impl RunQueries {
    /// Rows of a query; `run.*` shows the run.
    pub async fn rows(&self, sql: &str) -> Result<ResultRows, CliError> {
        let queries = self.client.engine().queries();
        let snapshot = Some(Arc::clone(&self.snapshot));
        Ok(queries.rows(sql, &[], Some(&self.run_id), snapshot).await?)
    }
}

/// Makes the document of a run and writes it to a file, or to standard output.
pub async fn write(
    context: &Context,
    run: &str,
    out: Option<&Path>,
    document: impl AsyncFnOnce(&RunQueries) -> Result<Value, CliError>,
) -> Result<(), CliError> {
    let client = Client::reader(context).await?;
    let run_id = client.run_id(run).await?;
    let snapshot = client
        .engine()
        .store()
        .snapshot(None)
        .await
        .map_err(EngineError::from)?;
    let queries = RunQueries {
        client,
        run_id,
        snapshot,
    };
    let text = format!("{:#}\n", document(&queries).await?);
    let Some(path) = out else {
        let mut printer = context.printer(Format::Table)?;
        printer.text(&text)?;
        return printer.finish();
    };
    NewFile::write(path, text)?;
    note(format!("wrote {}", path.display()));
    Ok(())
}
