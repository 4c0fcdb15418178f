//! `clade show`: a program with its facts, plan, code, logs and children.

use clap::Args;

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::printer::{Format, Printer, dollars, duration, log_end, numbered, score, wrapped};
use crate::cli::sql_text::literal;
use crate::cli::terminal::{Look, Terminal};
use crate::session::{ResultRow, ResultRows};

/// Text is broken here when it is not shown on a terminal.
const TEXT_WIDTH: usize = 100;

/// Arguments of `clade show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Node: an id or its beginning.
    node: String,
    /// Print the program alone, to save it to a file.
    #[arg(long)]
    code: bool,
    #[command(flatten)]
    format: FormatArgs,
}

/// Prints the node.
pub async fn run(args: ShowArgs, context: &Context) -> Result<(), CliError> {
    let mut printer = context.printer(args.format.format)?;
    let client = Client::reader(context).await?;
    let id = client.node(&args.node).await?;
    let select = format!("SELECT * FROM evo.nodes WHERE node_id = {}", literal(&id));
    if printer.format() != Format::Table && !args.code {
        client.run(&select, &mut printer).await?;
        return printer.finish();
    }
    let rows = client.rows(&select).await?;
    let node = rows
        .first()
        .ok_or_else(|| CliError::Failed(format!("node {id} is no longer in the store")))?;
    let code = node.optional_text("code")?;
    if args.code {
        let code = code.ok_or_else(|| CliError::Failed(format!("node {id} has no program")))?;
        printer.text(&code)?;
        return Ok(());
    }
    let terminal = printer.terminal();
    facts(&node, &mut printer)?;
    let columns = terminal.width.unwrap_or(TEXT_WIDTH).min(TEXT_WIDTH);
    if let Some(plan) = node.optional_text("plan")?.filter(|plan| !plan.trim().is_empty()) {
        section(&mut printer, "Plan")?;
        printer.text(&wrapped(&plan, "  ", columns))?;
    }
    section(&mut printer, "Program")?;
    match code {
        Some(code) => printer.text(&numbered(&code, terminal))?,
        None => printer.line("  none: the reply of the model held no program")?,
    }
    if let Some(job) = node.optional_text("job_id")? {
        let sql = format!(
            "SELECT stdout_head, stdout_tail, stdout_bytes, stderr_head, stderr_tail, stderr_bytes FROM sandbox.jobs WHERE job_id = {}",
            literal(&job)
        );
        logs(&client.rows(&sql).await?, &mut printer)?;
    }
    let children = format!(
        "SELECT n.node_id, n.step, n.operator, n.status, n.score, e.delta AS gain, n.method_family AS family \
         FROM evo.edges e JOIN evo.nodes n ON n.node_id = e.child_id WHERE e.parent_id = {} ORDER BY n.step",
        literal(&id)
    );
    if !client.rows(&children).await?.is_empty() {
        section(&mut printer, "Children")?;
        printer.set_notes(false);
        client.run(&children, &mut printer).await?;
    }
    printer.finish()
}

fn section(printer: &mut Printer, title: &str) -> Result<(), CliError> {
    let title = printer.terminal().paint(Look::Bold, title);
    printer.line(format!("\n{title}"))
}

/// The facts, those that are NULL left out.
fn facts(node: &ResultRow<'_>, printer: &mut Printer) -> Result<(), CliError> {
    let terminal = printer.terminal();
    let status = node.text("status")?;
    let look = if node.bool("is_buggy")? { Look::Red } else { Look::Green };
    printer.line(terminal.paint(Look::Bold, format!("node {}", node.text("node_id")?)))?;
    let mut fact = |name: &str, value: Option<String>| match value {
        Some(value) => printer.line(format!("  {:<12} {value}", format!("{name}:"))),
        None => Ok(()),
    };
    fact("task", Some(node.text("task_id")?))?;
    fact(
        "run",
        node.optional_text("run_id")?
            .map(|run| format!("{run}, step {}", node.int("step").unwrap_or(0))),
    )?;
    fact(
        "made by",
        Some(format!(
            "{} with {}, seed {}",
            node.text("operator")?,
            node.text("model")?,
            node.int("seed")?
        )),
    )?;
    let parents: Vec<String> = [node.optional_text("parent_id")?, node.optional_text("parent2_id")?]
        .into_iter()
        .flatten()
        .collect();
    fact("parents", (!parents.is_empty()).then(|| parents.join(", ")))?;
    fact("status", Some(terminal.paint(look, &status)))?;
    fact(
        "score",
        node.optional_float("score")?
            .map(|score| score_line(node, score, terminal)),
    )?;
    fact(
        "printed",
        node.optional_float("self_reported_score")?
            .map(|score| format!("{score} by the program itself")),
    )?;
    fact("fault", fault(node)?)?;
    fact("family", Some(node.text("method_family")?))?;
    let imports = node.texts("imports")?;
    fact("imports", (!imports.is_empty()).then(|| imports.join(", ")))?;
    fact("duplicate of", node.optional_text("duplicate_of")?)?;
    fact("spent", spent(node)?)
}

fn score_line(node: &ResultRow<'_>, value: f64, terminal: Terminal) -> String {
    let source = node.text("score_source").unwrap_or_default();
    let gain = node.optional_float("delta_vs_parent").ok().flatten().map(|gain| {
        let look = if gain > 0.0 { Look::Green } else { Look::Red };
        let sign = if gain > 0.0 { "+" } else { "" };
        terminal.paint(look, format!(", {sign}{} against its parent", score(gain)))
    });
    format!("{} ({source}){}", score(value), gain.unwrap_or_default())
}

fn fault(node: &ResultRow<'_>) -> Result<Option<String>, CliError> {
    let words = [
        node.optional_text("error_class")?,
        node.optional_text("error_signature")?,
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    Ok((!words.is_empty()).then(|| words.join(": ")))
}

/// Tokens, cost and seconds, what is unknown left out.
fn spent(node: &ResultRow<'_>) -> Result<Option<String>, CliError> {
    let mut parts = Vec::new();
    if let (Some(prompt), Some(completion)) = (
        node.optional_int("tokens_prompt")?,
        node.optional_int("tokens_completion")?,
    ) {
        parts.push(format!("{prompt} + {completion} tokens"));
    }
    if let Some(cost) = node.optional_float("cost_usd")? {
        parts.push(dollars(cost));
    }
    for (column, place) in [("model_seconds", "the model"), ("sandbox_seconds", "the sandbox")] {
        if let Some(seconds) = node.optional_float(column)? {
            parts.push(format!("{} in {place}", duration(seconds)));
        }
    }
    Ok((!parts.is_empty()).then(|| parts.join(", ")))
}

/// The ends of both logs.
fn logs(rows: &ResultRows, printer: &mut Printer) -> Result<(), CliError> {
    let Some(job) = rows.first() else { return Ok(()) };
    for (title, stream) in [("Standard output", "stdout"), ("Standard error", "stderr")] {
        let bytes = u64::try_from(job.int(&format!("{stream}_bytes"))?).unwrap_or(0);
        if bytes == 0 {
            continue;
        }
        let end = log_end(
            &job.text(&format!("{stream}_head"))?,
            &job.text(&format!("{stream}_tail"))?,
            bytes,
        );
        let note = if end.is_whole {
            String::new()
        } else {
            format!(" (the end of {bytes} bytes)")
        };
        section(printer, &format!("{title}{note}"))?;
        for line in end.text.lines() {
            printer.line(format!("  {line}"))?;
        }
    }
    Ok(())
}
