//! `clade report`: a page about one or several runs.

use std::path::PathBuf;

use clap::Args;

use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::printer::{Format, counted};
use crate::cli::terminal::note;
use crate::report::report;

/// Arguments of `clade report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Runs: ids, their beginnings, or last.
    #[arg(default_value = "last", value_name = "RUN")]
    runs: Vec<String>,
    /// HTML file to write; - is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
}

/// Writes the page.
pub async fn run(args: ReportArgs, context: &Context) -> Result<(), CliError> {
    let client = Client::reader(context).await?;
    let mut runs: Vec<String> = Vec::with_capacity(args.runs.len());
    for name in &args.runs {
        let run = client.run_id(name).await?;
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    let engine = client.engine();
    let page = report(engine.store(), engine.queries(), &runs).await?;
    if args.out.as_os_str() == "-" {
        return context.printer(Format::Table)?.text(&page);
    }
    std::fs::write(&args.out, page).map_err(CliError::file(&args.out))?;
    let what = counted(runs.len() as u64, "run");
    note(format!("wrote a page about {what} to {}", args.out.display()));
    Ok(())
}
