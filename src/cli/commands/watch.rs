//! `clade watch`: follow a run, whichever process conducts it.

use std::time::Duration;

use clap::Args;

use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::printer::Format;
use crate::cli::progress::{INTERVAL, ProgressView, RunProgress};

/// Arguments of `clade watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Run: an id, its beginning, or last.
    #[arg(default_value = "last")]
    run: String,
    /// Print one line and end.
    #[arg(long)]
    once: bool,
    /// Seconds between two looks.
    #[arg(long, value_name = "SECONDS", default_value_t = INTERVAL.as_secs_f64(), allow_negative_numbers = true)]
    interval: f64,
}

/// Follows the run to its end.
pub async fn run(args: WatchArgs, context: &Context) -> Result<(), CliError> {
    let interval = Duration::try_from_secs_f64(args.interval)
        .ok()
        .filter(|interval| !interval.is_zero())
        .ok_or_else(|| CliError::Usage(format!("--interval {}: must be above 0", args.interval)))?;
    let client = Client::reader(context).await?;
    let run = client.run_id(&args.run).await?;
    if args.once {
        let mut printer = context.printer(Format::Table)?;
        if let Some(progress) = RunProgress::read(&client, &run).await? {
            printer.line(progress.title())?;
            printer.line(progress.ending())?;
        }
        return printer.finish();
    }
    let mut view = ProgressView::new(context.stderr);
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        let Some(progress) = RunProgress::read(&client, &run).await? else {
            return Err(CliError::Failed(format!("run {run} is no longer in the store")));
        };
        if !progress.is_going_on() {
            view.finish(&progress);
            return Ok(());
        }
        view.show(&progress);
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            _ = &mut interrupted => return Ok(()),
        }
    }
}
