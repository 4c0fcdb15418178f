//! Starting or resuming a run in this process and following it to its end.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::client::Client;
use super::context::Context;
use super::error::CliError;
use super::interrupt;
use super::printer::Printer;
use super::progress::{INTERVAL, ProgressView, RunProgress};
use crate::engine::QueryOutput;

/// Runs a statement that conducts a run, shows its progress, and prints its row.
pub async fn run(
    client: &Client,
    run_id: &str,
    sql: &str,
    mut printer: Printer,
    context: &Context,
) -> Result<(), CliError> {
    let (schema, batches, ended) = finish(client, run_id, sql, context).await?;
    printer.set_notes(false);
    printer.print(QueryOutput::of_batches(schema, batches)).await?;
    printer.finish()?;
    check(ended)
}

/// The same without printing the row.
pub async fn follow(client: &Client, run_id: &str, sql: &str, context: &Context) -> Result<(), CliError> {
    let (_, _, ended) = finish(client, run_id, sql, context).await?;
    check(ended)
}

async fn finish(
    client: &Client,
    run_id: &str,
    sql: &str,
    context: &Context,
) -> Result<(SchemaRef, Vec<RecordBatch>, Option<RunProgress>), CliError> {
    let work = async {
        let output = client.output(sql).await?;
        let schema = output.schema.clone();
        Ok::<_, CliError>((schema, output.collect().await?))
    };
    let work = interrupt::guard(client.engine(), work);
    tokio::pin!(work);
    let mut view = ProgressView::new(context.stderr);
    let (schema, batches) = loop {
        tokio::select! {
            result = &mut work => break result??,
            () = tokio::time::sleep(INTERVAL) => {
                if let Some(progress) = RunProgress::read(client, run_id).await? {
                    view.show(&progress);
                }
            }
        }
    };
    let ended = RunProgress::read(client, run_id).await?;
    if let Some(progress) = &ended {
        view.finish(progress);
    }
    Ok((schema, batches, ended))
}

/// A failed run is a failed command; one that was stopped or ran out of budget is not.
fn check(ended: Option<RunProgress>) -> Result<(), CliError> {
    match ended {
        Some(progress) if progress.status == "failed" => {
            Err(CliError::Failed(format!("run {} failed", progress.run_id)))
        }
        _ => Ok(()),
    }
}
