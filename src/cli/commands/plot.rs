//! `clade plot`: draw a run.

use std::path::PathBuf;

use clap::Args;

use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::new_file::NewFile;
use crate::cli::sql_text::literal;
use crate::cli::terminal::note;
use crate::plot::{PlotNode, PlotRun, render};

/// Arguments of `clade plot`.
#[derive(Debug, Args)]
pub struct PlotArgs {
    /// Run: an id, its beginning, or last.
    #[arg(default_value = "last")]
    run: String,
    /// SVG file to write; - is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "run.svg")]
    out: PathBuf,
}

/// Draws the run.
pub async fn run(args: PlotArgs, context: &Context) -> Result<(), CliError> {
    let client = Client::reader(context).await?;
    let run = client.run_id(&args.run).await?;
    let svg = draw(&client, &run).await?;
    if args.out.as_os_str() == "-" {
        return context.printer(crate::cli::printer::Format::Table)?.text(&svg);
    }
    NewFile::write(&args.out, svg)?;
    note(format!("drew run {run} to {}", args.out.display()));
    Ok(())
}

/// A run as SVG.
pub async fn draw(client: &Client, run_id: &str) -> Result<String, CliError> {
    let id = literal(run_id);
    let rows = client
        .rows(&format!(
            "SELECT r.run_id, r.task_id, r.policy, r.model, r.status, t.metric, t.higher_is_better \
             FROM evo.runs r JOIN gym.tasks t ON t.task_id = r.task_id WHERE r.run_id = {id}"
        ))
        .await?;
    let row = rows
        .first()
        .ok_or_else(|| CliError::Failed(format!("the task of run {run_id} is not in this store")))?;
    let run = PlotRun {
        run_id: row.text("run_id")?,
        task: row.text("task_id")?,
        policy: row.text("policy")?,
        model: row.text("model")?,
        metric: row.text("metric")?,
        higher_is_better: row.bool("higher_is_better")?,
        status: row.text("status")?,
    };
    let nodes = client
        .rows(&format!(
            "SELECT node_id, step, operator, parent_id, parent2_id, score, is_buggy, status \
             FROM evo.nodes WHERE run_id = {id} ORDER BY step"
        ))
        .await?;
    let nodes = nodes
        .iter()
        .map(|row| {
            Ok(PlotNode {
                node_id: row.text("node_id")?,
                step: u64::try_from(row.int("step")?).unwrap_or(0),
                operator: row.text("operator")?,
                parent_id: row.optional_text("parent_id")?,
                parent2_id: row.optional_text("parent2_id")?,
                score: row.optional_float("score")?,
                failed: row.bool("is_buggy")?,
                status: row.text("status")?,
            })
        })
        .collect::<datafusion::error::Result<Vec<_>>>()?;
    Ok(render(&run, &nodes)?)
}
