//! `clade bench list`: the suites of the store.

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Lists the suites.
pub async fn run(format: FormatArgs, context: &Context) -> Result<(), CliError> {
    let mut printer = context.printer(format.format)?;
    let client = Client::reader(context).await?;
    client.run(include_str!("../../sql/suites.sql"), &mut printer).await?;
    printer.finish()
}
