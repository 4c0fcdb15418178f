//! Starting or resuming a run in this process and following it to its end.

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
    let Conducted { row, ended } = finish(client, run_id, sql, context).await?;
    printer.set_notes(false);
    printer.print(row).await?;
    printer.finish()?;
    ended
}

/// The same without printing the row.
pub async fn follow(client: &Client, run_id: &str, sql: &str, context: &Context) -> Result<(), CliError> {
    finish(client, run_id, sql, context).await?.ended
}

/// A run that has ended, well or not.
struct Conducted {
    /// Its row.
    row: QueryOutput,
    /// What the command returns.
    ended: Result<(), CliError>,
}

async fn finish(client: &Client, run_id: &str, sql: &str, context: &Context) -> Result<Conducted, CliError> {
    let work = async {
        let output = client.output(sql).await?;
        let schema = output.schema.clone();
        Ok::<_, CliError>(QueryOutput::of_batches(schema, output.collect().await?))
    };
    let work = interrupt::watch(client.engine(), work);
    tokio::pin!(work);
    let mut view = ProgressView::new(context.stderr);
    let (row, interrupted) = loop {
        tokio::select! {
            guarded = &mut work => break guarded?.split(),
            () = tokio::time::sleep(INTERVAL) => {
                if let Some(progress) = RunProgress::read(client, run_id).await? {
                    view.show(&progress);
                }
            }
        }
    };
    let row = match row {
        Ok(row) => row,
        Err(error) => return Err(interrupted.err().unwrap_or(error)),
    };
    let progress = RunProgress::read(client, run_id).await?;
    if let Some(progress) = &progress {
        view.finish(progress);
    }
    let ended = interrupted.and_then(|()| check(progress));
    Ok(Conducted { row, ended })
}

/// A failed run is a failed command; one that was drained or ran out of budget is not.
fn check(progress: Option<RunProgress>) -> Result<(), CliError> {
    match progress {
        Some(progress) if progress.status == "failed" => {
            Err(CliError::Failed(format!("run {} failed", progress.run_id)))
        }
        _ => Ok(()),
    }
}
