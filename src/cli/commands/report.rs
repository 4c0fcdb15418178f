//! `clade report`: a page about one or several runs, or about a suite.

use std::path::PathBuf;

use clap::Args;

use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::new_file::NewFile;
use crate::cli::printer::{Format, counted};
use crate::cli::terminal::note;
use crate::engine::Subject;
use crate::report::{report, suite_report};

/// Arguments of `clade report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Runs (ids, their beginnings, or last), or one suite by its name; run/ or suite/ before a name that is both says which.
    #[arg(default_value = "last", value_name = "RUN|SUITE")]
    subjects: Vec<String>,
    /// HTML file to write; - is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
}

/// Writes the page.
pub async fn run(args: ReportArgs, context: &Context) -> Result<(), CliError> {
    let client = Client::reader(context).await?;
    let engine = client.engine();
    let (mut runs, mut suites) = (Vec::new(), Vec::new());
    for name in &args.subjects {
        match engine.subject(name).await? {
            Subject::Run(run) if !runs.contains(&run) => runs.push(run),
            Subject::Suite { suite_id, is_run_too } if !suites.contains(&suite_id) => {
                if is_run_too {
                    note(format!(
                        "{suite_id} is a suite and a run; the page is about the suite, run/{suite_id} is the run"
                    ));
                }
                suites.push(suite_id);
            }
            Subject::Run(_) | Subject::Suite { .. } => {}
        }
    }
    let (page, what) = match suites.as_slice() {
        [] => (
            report(engine.store(), engine.queries(), &runs).await?,
            counted(runs.len() as u64, "run"),
        ),
        [suite] if runs.is_empty() => (
            suite_report(engine.store(), engine.queries(), suite).await?,
            format!("suite {suite}"),
        ),
        _ => {
            return Err(CliError::Usage(
                "a page is about runs or about one suite: write one page for each suite, and one for the runs"
                    .to_owned(),
            ));
        }
    };
    if args.out.as_os_str() == "-" {
        return context.printer(Format::Table)?.text(&page);
    }
    NewFile::write(&args.out, page)?;
    note(format!("wrote a page about {what} to {}", args.out.display()));
    Ok(())
}
