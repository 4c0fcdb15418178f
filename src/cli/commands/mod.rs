//! One file a command.

pub mod bench;
pub mod config;
pub mod diff;
pub mod doctor;
pub mod evolve;
pub mod exec;
pub mod export;
pub mod grade;
pub mod init;
pub mod key;
pub mod model;
pub mod plot;
pub mod policy;
pub mod prompt;
pub mod quickstart;
pub mod report;
pub mod router;
pub mod runs;
pub mod sandbox;
pub mod serve;
pub mod show;
pub mod sql;
pub mod task;
pub mod watch;
pub mod worker;

use super::args::Command;
use super::context::Context;
use super::error::CliError;

/// Runs a command.
pub async fn run(command: Command, context: Context) -> Result<(), CliError> {
    match command {
        Command::Init(args) => init::run(args, &context).await,
        Command::Quickstart(args) => quickstart::run(args, &context).await,
        Command::Sql(args) => sql::run(args, &context).await,
        Command::Task(args) => task::run(args, &context).await,
        Command::Model(args) => model::run(args, &context).await,
        Command::Policy(args) => policy::run(args, &context).await,
        Command::Prompt(args) => prompt::run(args, &context).await,
        Command::Evolve(args) => evolve::run(*args, &context).await,
        Command::Bench(args) => bench::run(args, &context).await,
        Command::Exec(args) => exec::run(args, &context).await,
        Command::Sandbox(args) => sandbox::run(args, &context).await,
        Command::Runs(args) => runs::run(args, &context).await,
        Command::Watch(args) => watch::run(args, &context).await,
        Command::Plot(args) => plot::run(args, &context).await,
        Command::Report(args) => report::run(args, &context).await,
        Command::Show(args) => show::run(args, &context).await,
        Command::Diff(args) => diff::run(args, &context).await,
        Command::Export(args) => export::run(args, &context).await,
        Command::Grade(args) => grade::run(args, &context).await,
        Command::Serve(args) => serve::run(args, &context).await,
        Command::Worker(args) => worker::run(args, &context).await,
        Command::Router(args) => router::run(args).await,
        Command::Key(args) => key::run(args, &context).await,
        Command::Doctor(args) => doctor::run(args, &context).await,
        Command::Config(args) => config::run(args, &context).await,
    }
}
