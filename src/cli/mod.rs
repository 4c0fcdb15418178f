//! The command line: arguments, commands, the SQL shell, output formats.

mod args;
mod cache_folder;
mod client;
mod commands;
mod conduct;
mod context;
mod error;
mod evolve_flags;
mod interrupt;
mod logging;
mod new_file;
mod output;
mod printer;
mod program;
mod progress;
mod shell;
mod sql_text;
mod standing;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

pub use args::Cli;
pub use error::CliError;

use context::Context;
use terminal::{Look, note};

/// Stack of the thread that plans statements; only what is used takes memory.
const STACK_BYTES: usize = 1 << 29;
/// Stack of the threads that plan policies.
const WORKER_STACK_BYTES: usize = 1 << 24;

/// Reads the arguments, runs the command, says what went wrong, and gives the exit code: 0 done, 1 failed, 2 usage, 130
/// interrupted.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let color = cli.global.color;
    // A statement is planned by recursion over its terms; a long one needs more than the usual stack.
    let worker = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(|| run(cli));
    let result = match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => Err(CliError::Failed(format!("cannot start threads: {error}"))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            let terminal = terminal::Terminal::stderr(color);
            note(format!("{} {error}", terminal.paint(Look::Red, "error:")));
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(mut cli: Cli) -> Result<(), CliError> {
    if let args::Command::Router(router) = &mut cli.command {
        router.file = cli.global.config.take();
    }
    let context = Context::new(&cli.global)?;
    logging::start(&context.loaded.config.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(WORKER_STACK_BYTES)
        .build()
        .map_err(|error| CliError::Failed(format!("cannot start threads: {error}")))?;
    let result = runtime.block_on(async {
        let result = commands::run(cli.command, context.clone()).await;
        context.close_stores().await;
        result
    });
    // A thread that waits for the terminal must not hold up the end.
    runtime.shutdown_background();
    result
}
