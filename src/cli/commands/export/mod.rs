//! `clade export`: write a table or the result of a query to a file, or a run's board or cards as JSON.

mod board;
mod cards;
mod document;
mod table;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Arguments of `clade export`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ExportArgs {
    #[command(subcommand)]
    document: Option<Document>,
    /// Table, such as evo.nodes, or a query.
    #[arg(value_name = "TABLE|SQL", required = true)]
    source: Option<String>,
    /// File to write; its ending chooses the format: parquet, csv, json or arrow.
    #[arg(short, long, value_name = "FILE", required = true)]
    out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Document {
    /// Write the strategy board of a run as JSON, in the shape of the published search.
    Board(RunArgs),
    /// Write the experience cards of a run as JSON, in the shape of the published search.
    Cards(RunArgs),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Run: an id, its beginning, or last.
    run: String,
    /// File to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes what was asked for.
pub async fn run(args: ExportArgs, context: &Context) -> Result<(), CliError> {
    match (args.document, args.source, args.out) {
        (Some(Document::Board(args)), ..) => {
            document::write(context, &args.run, args.out.as_deref(), board::document).await
        }
        (Some(Document::Cards(args)), ..) => {
            document::write(context, &args.run, args.out.as_deref(), cards::document).await
        }
        (None, Some(source), Some(out)) => table::run(&source, &out, context).await,
        (None, ..) => Err(CliError::Usage(
            "name a table or a query, and the file to write with --out".to_owned(),
        )),
    }
}
