//! `clade runs`: list, cancel and resume runs.

use clap::{Args, Subcommand};

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::conduct;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::sql_text::literal;
use crate::cli::terminal::note;

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
        format: FormatArgs,
    },
}

/// Runs the action; without one, lists the runs.
pub async fn run(args: RunsArgs, context: &Context) -> Result<(), CliError> {
    match args.action {
        None => {
            let mut printer = context.printer(args.format.format)?;
            Client::reader(context).await?.run("SHOW RUNS", &mut printer).await?;
            printer.finish()
        }
        Some(RunsAction::Cancel { run }) => {
            let client = Client::writer(context).await?;
            let run = client.run_id(&run).await?;
            let result = client
                .output(&format!("CANCEL RUN {}", literal(&run)))
                .await
                .map(|_| ());
            client.close().await;
            result?;
            note(format!("run {run} was asked to end"));
            Ok(())
        }
        Some(RunsAction::Resume { run, format }) => {
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
