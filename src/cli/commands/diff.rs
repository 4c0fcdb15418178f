//! `clade diff`: compare two programs.

use clap::Args;

use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::printer::{Format, score, unified_diff};
use crate::cli::sql_text::literal;
use crate::cli::terminal::Look;

/// Arguments of `clade diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Node: an id or its beginning.
    #[arg(value_name = "A")]
    old: String,
    /// Node: an id or its beginning.
    #[arg(value_name = "B")]
    new: String,
}

/// What is compared.
struct Side {
    label: String,
    code: String,
    score: Option<f64>,
    signed: Option<f64>,
    task: String,
}

/// Prints the difference.
pub async fn run(args: DiffArgs, context: &Context) -> Result<(), CliError> {
    let client = Client::reader(context).await?;
    let old = side(&client, &args.old).await?;
    let new = side(&client, &args.new).await?;
    let mut printer = context.printer(Format::Table)?;
    let terminal = printer.terminal();
    let change = unified_diff((&old.label, &old.code), (&new.label, &new.code), terminal);
    if change.is_empty() {
        printer.line("the programs are equal")?;
    } else {
        printer.text(&change)?;
    }
    printer.line("")?;
    let found = |side: &Side| side.score.map_or_else(|| "no valid score".to_owned(), score);
    let mut line = format!("score {} → {}", found(&old), found(&new));
    let mut look = Look::Dim;
    if let (Some(before), Some(after)) = (old.signed, new.signed)
        && old.task == new.task
    {
        let gain = after - before;
        let (word, found) = match gain {
            gain if gain > 0.0 => ("better", Look::Green),
            gain if gain < 0.0 => ("worse", Look::Red),
            _ => ("the same", Look::Dim),
        };
        look = found;
        line.push_str(&if gain == 0.0 {
            format!("  ({word})")
        } else {
            format!("  ({word} by {})", score(gain.abs()))
        });
    }
    printer.line(terminal.paint(look, line))?;
    printer.finish()
}

async fn side(client: &Client, prefix: &str) -> Result<Side, CliError> {
    let id = client.node(prefix).await?;
    let sql = format!(
        "SELECT node_id, step, operator, code, score, signed_score, task_id FROM evo.nodes WHERE node_id = {}",
        literal(&id)
    );
    let rows = client.rows(&sql).await?;
    let row = rows
        .first()
        .ok_or_else(|| CliError::Failed(format!("node {id} is no longer in the store")))?;
    let code = row
        .optional_text("code")?
        .ok_or_else(|| CliError::Failed(format!("node {id} has no program: the reply of the model held none")))?;
    Ok(Side {
        label: format!("{id}  step {} ({})", row.int("step")?, row.text("operator")?),
        code,
        score: row.optional_float("score")?,
        signed: row.optional_float("signed_score")?,
        task: row.text("task_id")?,
    })
}
