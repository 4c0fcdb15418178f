//! What came out: the best program, its gain, what was spent, three questions in SQL, what to do next.

use std::path::Path;

use super::{fact, heading, picture};
use crate::cli::client::Client;
use crate::cli::commands::plot;
use crate::cli::error::CliError;
use crate::cli::printer::{Printer, dollars, numbered};
use crate::cli::sql_text::literal;
use crate::cli::terminal::Look;
use crate::session::ResultRow;

/// Lines of the best program that are shown.
const HEAD: usize = 24;

/// Questions of an analyst, each with its answer in SQL.
const QUESTIONS: [(&str, &str); 3] = [
    (
        "Which operator earned the gain, and at what price?",
        include_str!("../../sql/quickstart_operators.sql"),
    ),
    (
        "How did the best program come about?",
        include_str!("../../sql/quickstart_lineage.sql"),
    ),
    (
        "Which parents would the policy choose next?",
        include_str!("../../sql/quickstart_parents.sql"),
    ),
];

/// Writes the report of a run that ended.
pub(super) async fn write(client: &Client, run_id: &str, store: &Path, printer: &mut Printer) -> Result<(), CliError> {
    let summary = client
        .rows(&include_str!("../../sql/quickstart_summary.sql").replace("$run", &literal(run_id)))
        .await?;
    let summary = summary
        .first()
        .ok_or_else(|| CliError::Failed(format!("run {run_id} left no row")))?;
    let best = summary.optional_text("best_node_id")?;
    match &best {
        Some(node) => best_program(&summary, node, printer)?,
        None => printer.line("No program has a valid score; see the errors: SELECT error FROM evo.nodes")?,
    }
    printer.line("")?;
    numbers(&summary, printer)?;
    for (question, sql) in QUESTIONS {
        printer.line("")?;
        heading(printer, question)?;
        let terminal = printer.terminal();
        for line in sql.trim_end().lines() {
            printer.line(terminal.paint(Look::Cyan, format!("  {line}")))?;
        }
        printer.line("")?;
        client.run(sql, printer).await?;
    }
    let svg = plot::draw(client, run_id).await?;
    let picture = picture(store);
    std::fs::write(&picture, svg).map_err(CliError::file(&picture))?;
    printer.line("")?;
    heading(printer, "Next")?;
    let store = store.display();
    let show = best.map_or_else(|| "clade runs".to_owned(), |node| format!("clade show {node}"));
    fact(printer, "look", picture.display())?;
    fact(printer, "ask", format!("clade sql --store {store}"))?;
    fact(printer, "read", format!("{show} --store {store}"))?;
    fact(
        printer,
        "go on",
        format!(
            "clade evolve {} --steps 64 --policy aide_greedy --store {store}",
            super::TASK
        ),
    )?;
    fact(printer, "your own", format!("clade task add PATH --store {store}"))
}

fn best_program(summary: &ResultRow<'_>, node: &str, printer: &mut Printer) -> Result<(), CliError> {
    let code = summary.optional_text("best_code")?.unwrap_or_default();
    heading(printer, "Best program")?;
    let what = format!(
        "{node}, step {}, {}",
        summary.int("best_step")?,
        summary.text("best_operator")?
    );
    printer.line(format!("  {what}\n"))?;
    let head: Vec<&str> = code.lines().take(HEAD).collect();
    let shown = numbered(&head.join("\n"), printer.terminal());
    for line in shown.lines() {
        printer.line(format!("  {line}"))?;
    }
    let more = code.lines().count().saturating_sub(HEAD);
    if more > 0 {
        let more = printer.terminal().paint(Look::Dim, format!("… {more} more lines"));
        printer.line(format!("  {more}"))?;
    }
    Ok(())
}

fn numbers(summary: &ResultRow<'_>, printer: &mut Printer) -> Result<(), CliError> {
    if let (Some(best), Some(first)) = (
        summary.optional_float("best_score")?,
        summary.optional_float("first_score")?,
    ) {
        let share = if first == 0.0 {
            String::new()
        } else {
            format!(", {:.1} %", (best - first).abs() / first.abs() * 100.0)
        };
        let metric = summary.text("metric")?;
        let gain = if best == first {
            format!("{metric} {best:.5}: the first draft is still the best")
        } else {
            format!("{metric} {best:.5}, the first draft had {first:.5}{share} better")
        };
        let gain = printer.terminal().paint(Look::Green, gain);
        fact(printer, "gain", gain)?;
    }
    let count = |name| Ok::<_, CliError>(summary.optional_int(name)?.unwrap_or(0));
    let seconds = |name| Ok::<_, CliError>(summary.optional_float(name)?.unwrap_or(0.0));
    fact(
        printer,
        "programs",
        format!("{}, of which {} failed", count("programs")?, count("failed")?),
    )?;
    let tokens = match summary.optional_int("tokens")? {
        Some(tokens) => format!("{tokens} tokens"),
        None => "tokens unknown".to_owned(),
    };
    let cost = match summary.optional_float("cost_usd")? {
        Some(cost) => dollars(cost),
        None => "cost unknown".to_owned(),
    };
    let spent = format!(
        "{:.1} s, of which programs ran {:.1} s in the sandbox; {tokens}, {cost}",
        seconds("seconds")?,
        seconds("sandbox_seconds")?
    );
    fact(printer, "spent", spent)?;
    if let Some(status) = summary.optional_text("grade_status")? {
        let grade = match (summary.optional_float("test_score")?, summary.optional_text("medal")?) {
            (Some(score), Some(medal)) => {
                let medal = if medal == "none" {
                    "no medal".to_owned()
                } else {
                    format!("a {medal} medal")
                };
                format!(
                    "{score:.5} on the hidden answers: rank {} of {}, {medal}",
                    count("rank")?,
                    count("teams")?
                )
            }
            (Some(score), None) => format!("{score:.5} on the hidden answers"),
            (None, _) => format!("not valid on the hidden answers: {status}"),
        };
        fact(printer, "grade", grade)?;
    }
    Ok(())
}
