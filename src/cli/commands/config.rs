//! `clade config`: the configuration with the origin of every value, secrets redacted.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use clap::Args;

use crate::cli::args::FormatArgs;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::config::{DEFAULTS, Entry};
use crate::engine::QueryOutput;

/// Arguments of `clade config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Print the embedded defaults with their comments, as a file to start from.
    #[arg(long)]
    defaults: bool,
    /// Only keys that hold this text.
    #[arg(value_name = "PATTERN", conflicts_with = "defaults")]
    pattern: Option<String>,
    #[command(flatten)]
    format: FormatArgs,
}

/// Prints the configuration.
pub async fn run(args: ConfigArgs, context: &Context) -> Result<(), CliError> {
    let mut printer = context.printer(args.format.format)?;
    if args.defaults {
        printer.text(DEFAULTS)?;
        return Ok(());
    }
    printer.set_notes(false);
    let mut entries = context.loaded.entries();
    entries.retain(|entry| {
        args.pattern
            .as_deref()
            .is_none_or(|pattern| entry.key.contains(pattern))
    });
    let optional = |field: fn(&Entry) -> Option<&String>| -> ArrayRef {
        Arc::new(StringArray::from_iter(entries.iter().map(field)))
    };
    let output = QueryOutput::of_columns(vec![
        (
            "key",
            Arc::new(StringArray::from_iter_values(entries.iter().map(|entry| &entry.key))) as ArrayRef,
        ),
        ("value", optional(|entry| entry.value.as_ref())),
        ("origin", optional(|entry| entry.origin.as_ref())),
        (
            "variable",
            Arc::new(StringArray::from_iter_values(entries.iter().map(Entry::variable))),
        ),
    ])?;
    printer.print(output).await?;
    printer.finish()
}
