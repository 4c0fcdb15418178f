//! `clade runs`: list, cancel and resume runs.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringArray};
use clap::{Args, Subcommand};

use crate::cli::args::{FormatArgs, PromptSourceArgs};
use crate::cli::client::Client;
use crate::cli::conduct;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::printer::{Format, Printer, duration};
use crate::cli::sql_text::literal;
use crate::engine::QueryOutput;
use crate::session::ResultRow;

/// Arguments of `clade runs`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsArgs {
    #[command(subcommand)]
    action: Option<RunsAction>,
    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Debug, Subcommand)]
enum RunsAction {
    /// End a run; what it found stays.
    Cancel {
        /// Run: an id, its beginning, or last.
        run: String,
    },
    /// Go on with a run that was interrupted.
    Resume {
        /// Run: an id, its beginning, or last.
        run: String,
        #[command(flatten)]
        sources: PromptSourceArgs,
        #[command(flatten)]
        format: FormatArgs,
    },
}

/// Runs the action; without one, lists the runs.
pub async fn run(args: RunsArgs, context: &Context) -> Result<(), CliError> {
    match args.action {
        None => {
            let mut printer = context.printer(args.format.format)?;
            list(&Client::reader(context).await?, &mut printer).await?;
            printer.finish()
        }
        Some(RunsAction::Cancel { run }) => {
            let client = Client::writer(context).await?;
            let run = client.run_id(&run).await?;
            let mut printer = context.printer(Format::Table)?;
            let result = client.act(&format!("CANCEL RUN {}", literal(&run)), &mut printer).await;
            client.close().await;
            result
        }
        Some(RunsAction::Resume { run, sources, format }) => {
            let context = &context.with(sources.overrides())?;
            let printer = context.printer(format.format)?;
            let client = Client::writer(context).await?;
            let run = client.run_id(&run).await?;
            let result = conduct::run(
                &client,
                &run,
                &format!("RESUME RUN {}", literal(&run)),
                printer,
                context,
            )
            .await;
            client.close().await;
            result
        }
    }
}

/// Lists the runs. A table has what fits beside the whole ids; the other formats have everything.
pub async fn list(client: &Client, printer: &mut Printer) -> Result<(), CliError> {
    const SHOW: &str = "SHOW RUNS";
    if printer.format() != Format::Table {
        client.run(SHOW, printer).await?;
        return Ok(());
    }
    let runs = client.statement_rows(SHOW).await?;
    let text = |column: &dyn Fn(&ResultRow<'_>) -> datafusion::error::Result<String>| {
        let values = runs.iter().map(|run| column(&run)).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, CliError>(Arc::new(StringArray::from(values)) as ArrayRef)
    };
    let best = runs
        .iter()
        .map(|run| {
            Ok(run
                .optional_float("best_score")?
                .map(|score| (score * 1e5).round() / 1e5))
        })
        .collect::<Result<Vec<_>, CliError>>()?;
    printer
        .print(QueryOutput::of_columns(vec![
            ("run_id", text(&|run| run.text("run_id"))?),
            ("task", text(&|run| run.text("task_id"))?),
            ("status", text(&|run| run.text("status"))?),
            (
                "steps",
                text(&|run| Ok(format!("{}/{}", run.int("steps")?, run.int("steps_limit")?)))?,
            ),
            ("best", Arc::new(Float64Array::from(best))),
            (
                "took",
                text(&|run| Ok(run.optional_float("seconds")?.map_or_else(String::new, duration)))?,
            ),
        ])?)
        .await?;
    Ok(())
}
