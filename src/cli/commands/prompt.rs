//! `clade prompt`: what an operator would send, without sending it.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use clap::Args;

use crate::cli::args::{FormatArgs, PromptSourceArgs};
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::printer::{Format, Printer};
use crate::cli::terminal::Look;
use crate::engine::{PromptRequest, QueryOutput};
use crate::operators::{Operator, UnknownOperator};
use crate::scheduler::Preview;

/// Arguments of `clade prompt`.
#[derive(Debug, Args)]
pub struct PromptArgs {
    /// draft, improve, debug or crossover.
    operator: String,
    /// Program to start from: a node's id or its beginning.
    #[arg(long, value_name = "NODE")]
    parent: Option<String>,
    /// Second program of a crossover.
    #[arg(long, value_name = "NODE")]
    parent2: Option<String>,
    /// Task of a draft.
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Run that the program would join: an id, its beginning, or last.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Model that would be asked; its tokenizer counts [default: the run's, else search.model].
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    #[command(flatten)]
    sources: PromptSourceArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// Prints the prompt.
pub async fn run(args: PromptArgs, context: &Context) -> Result<(), CliError> {
    let operator: Operator = args
        .operator
        .parse()
        .map_err(|error: UnknownOperator| CliError::Usage(error.to_string()))?;
    for (flag, given, wanted) in [
        ("--parent", &args.parent, operator.arity() > 0),
        ("--parent2", &args.parent2, operator.arity() > 1),
    ] {
        match (given, wanted) {
            (None, true) => return Err(CliError::Usage(format!("{operator} needs {flag}"))),
            (Some(_), false) => return Err(CliError::Usage(format!("{operator} takes no {flag}"))),
            _ => {}
        }
    }
    if operator == Operator::Draft && args.task.is_none() && args.run.is_none() {
        return Err(CliError::Usage("draft needs --task or --run".to_owned()));
    }
    let context = &context.with(args.sources.overrides())?;
    let mut printer = context.printer(args.format.format)?;
    let client = Client::reader(context).await?;
    let preview = client
        .engine()
        .preview_prompt(&PromptRequest {
            operator,
            parent: args.parent,
            parent2: args.parent2,
            task: args.task,
            run: args.run,
            model: args.model,
        })
        .await?;
    if printer.format() == Format::Table {
        return page(&preview, &mut printer);
    }
    printer.print(rows(&preview)?).await?;
    printer.finish()
}

/// The messages as they would be sent, then what is known of them.
fn page(preview: &Preview, printer: &mut Printer) -> Result<(), CliError> {
    let terminal = printer.terminal();
    let prompt = &preview.prompt;
    for (message, tokens) in prompt.messages.iter().zip(&prompt.tokens) {
        let head = format!("──── {}, {tokens} tokens ────", message.role.as_str());
        printer.line(terminal.paint(Look::Bold, head))?;
        printer.line(&message.content)?;
    }
    printer.line(terminal.paint(Look::Bold, "──── not sent ────"))?;
    let mut fact = |name: &str, value: &str| printer.line(format!("{:<8} {value}", format!("{name}:")));
    fact("task", &preview.task_id)?;
    fact("model", &preview.model)?;
    if let Some(run) = &preview.run_id {
        fact("run", run)?;
    }
    let total = prompt.total_tokens();
    fact(
        "tokens",
        &format!("{total} of at most {} ({})", preview.budget, preview.counted_by),
    )?;
    for (role, node) in &prompt.shown {
        fact("shown", &format!("{role} {node}"))?;
    }
    for skill in &prompt.skills {
        fact("skill", skill)?;
    }
    for cut in &prompt.cuts {
        fact("left out", cut)?;
    }
    Ok(())
}

/// A row a message.
fn rows(preview: &Preview) -> Result<QueryOutput, CliError> {
    let prompt = &preview.prompt;
    let messages = &prompt.messages;
    let same = |value: Option<String>| -> ArrayRef { Arc::new(StringArray::from(vec![value; messages.len()])) };
    let number = |values: Vec<u64>| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(
            values.into_iter().map(|value| i64::try_from(value).unwrap_or(i64::MAX)),
        ))
    };
    let listed = |values: Vec<String>| same((!values.is_empty()).then(|| values.join("; ")));
    let shown = prompt
        .shown
        .iter()
        .map(|(role, node)| format!("{role} {node}"))
        .collect();
    Ok(QueryOutput::of_columns(vec![
        ("task_id", same(Some(preview.task_id.clone()))),
        ("run_id", same(preview.run_id.clone())),
        ("model", same(Some(preview.model.clone()))),
        ("message", number((0u64..).take(messages.len()).collect())),
        (
            "role",
            Arc::new(StringArray::from_iter_values(
                messages.iter().map(|message| message.role.as_str()),
            )),
        ),
        (
            "content",
            Arc::new(StringArray::from_iter_values(
                messages.iter().map(|message| &message.content),
            )),
        ),
        ("tokens", number(prompt.tokens.clone())),
        ("counted_by", same(Some(preview.counted_by.to_owned()))),
        ("prompt_tokens", number(vec![prompt.total_tokens(); messages.len()])),
        ("most_prompt_tokens", number(vec![preview.budget; messages.len()])),
        ("shown", listed(shown)),
        ("skills", listed(prompt.skills.clone())),
        ("left_out", listed(prompt.cuts.clone())),
    ])?)
}
