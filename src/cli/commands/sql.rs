//! `clade sql`: run statements, or open the shell.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::shell;
use crate::engine::{OpenMode, SessionOptions};

/// Arguments of `clade sql`.
#[derive(Debug, Args)]
pub struct SqlArgs {
    /// Statements to run; may be repeated. Without them and without --file: standard input, or the shell on a terminal.
    #[arg(short, long = "command", value_name = "SQL")]
    commands: Vec<String>,
    /// File of statements to run after those of --command; - is standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Open the store for reading only.
    #[arg(long)]
    read_only: bool,
    /// Run that run.* shows; an id, its beginning, or last.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    format: FormatArgs,
}

/// Runs the statements or the shell.
pub async fn run(args: SqlArgs, context: &Context) -> Result<(), CliError> {
    let mut printer = context.printer(args.format.format)?;
    let mode = if args.read_only {
        OpenMode::ReadOnly
    } else {
        OpenMode::Existing
    };
    let mut client = Client::open(
        context,
        mode,
        &SessionOptions {
            read_only: args.read_only,
            run: None,
        },
    )
    .await?;
    if let Some(run) = &args.run {
        let run = client.run_id(run).await?;
        client = client.with_run(run, args.read_only);
    }
    let mut texts = args.commands;
    match &args.file {
        Some(path) if path.as_os_str() == "-" => texts.push(standard_input()?),
        Some(path) => texts.push(std::fs::read_to_string(path).map_err(CliError::file(path))?),
        None if texts.is_empty() && std::io::stdin().is_terminal() => {
            let result = shell::run(&client, printer, context).await;
            client.close().await;
            return result;
        }
        None if texts.is_empty() => texts.push(standard_input()?),
        None => {}
    }
    let mut result = Ok(());
    for text in &texts {
        result = shell::run_text(&client, text, &mut printer).await;
        if result.is_err() {
            break;
        }
    }
    client.close().await;
    result?;
    printer.finish()
}

fn standard_input() -> Result<String, CliError> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(CliError::file("standard input"))?;
    Ok(text)
}
