//! `clade bench`: run, resume, list and show suites.

mod list;
mod run;
mod search;
mod show;
mod told;

use clap::{Args, Subcommand};

use crate::cli::args::FormatArgs;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Arguments of `clade bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    action: BenchAction,
}

#[derive(Debug, Subcommand)]
enum BenchAction {
    /// Search on several tasks, several times each, with the same options.
    ///
    /// Every search is a run of its own: one that fails stops no other. Tasks that are not imported are reported and left
    /// out. Ctrl-C finishes the programs in flight and ends; `clade bench resume` goes on.
    Run(Box<run::RunArgs>),
    /// Go on with a suite: with what never began, was interrupted or failed.
    ///
    /// Options, policy, sandbox limits and tasks must be those that the suite began with. Tasks that were not imported then
    /// and are now are taken in.
    Resume(run::ResumeArgs),
    /// List the suites of the store.
    List {
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Show a suite: its rates, each task over its repeats, and what went wrong.
    Show(show::ShowArgs),
}

/// Runs the action.
pub async fn run(args: BenchArgs, context: &Context) -> Result<(), CliError> {
    match args.action {
        BenchAction::Run(args) => run::run(*args, context).await,
        BenchAction::Resume(args) => run::resume(args, context).await,
        BenchAction::List { format } => list::run(format, context).await,
        BenchAction::Show(args) => show::run(args, context).await,
    }
}
