//! What came out: the best program, its gain, what was spent, three questions in SQL, what to do next.

use std::path::Path;

use super::{fact, heading, picture};
use crate::cli::client::Client;
use crate::cli::commands::plot;
use crate::cli::error::CliError;
use crate::cli::new_file::NewFile;
use crate::cli::printer::{Printer, counted, dollars, duration, numbered, thousands};
use crate::cli::program::{program, shell_word};
use crate::cli::sql_text::literal;
use crate::cli::standing::STANDING;
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
pub(super) async fn write(
    client: &Client,
    run_id: &str,
    store: &Path,
    workers: u64,
    printer: &mut Printer,
) -> Result<(), CliError> {
    let sql = include_str!("../../sql/quickstart_summary.sql")
        .replace("$run", &literal(run_id))
        .replace("$standing", STANDING);
    let summary = client.rows(&sql).await?;
    let summary = summary
        .first()
        .ok_or_else(|| CliError::Failed(format!("run {run_id} left no row")))?;
    match summary.optional_text("best_node_id")? {
        Some(node) => best_program(&summary, &node, printer)?,
        None => printer.line("No program has a valid score; see the errors: SELECT error FROM evo.nodes")?,
    }
    printer.line("")?;
    found(&summary, printer)?;
    spent(&summary, workers, printer)?;
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
    NewFile::write(&picture, svg)?;
    printer.line("")?;
    heading(printer, "The picture of the search")?;
    printer.line(format!("  {}", picture.display()))?;
    printer.line("")?;
    heading(printer, "Next, to paste")?;
    for (purpose, command) in next(&summary, store)? {
        let purpose = printer.terminal().paint(Look::Dim, format!("  # {purpose}"));
        printer.line(purpose)?;
        printer.line(format!("  {command}"))?;
    }
    Ok(())
}

/// What can be done next, each with its command.
fn next(summary: &ResultRow<'_>, store: &Path) -> Result<Vec<(&'static str, String)>, CliError> {
    let program = program();
    let store = format!("--store {}", shell_word(&store.to_string_lossy()));
    let mut commands = Vec::new();
    let mut command = |purpose, arguments: String| commands.push((purpose, format!("{program} {arguments} {store}")));
    if let Some(best) = summary.optional_text("best_node_id")? {
        command("the best program with its facts and logs", format!("show {best}"));
        if let Some(first) = summary.optional_text("first_node_id")?.filter(|first| *first != best) {
            command("what changed since the first draft", format!("diff {first} {best}"));
        }
    }
    command("ask questions of your own", "sql --run last".to_owned());
    command(
        "search on with another policy",
        format!("evolve {} --steps 32 --policy aide_greedy", super::TASK),
    );
    command("what the task asks for", format!("task show {}", super::TASK));
    Ok(commands)
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

/// The best score, its gain over the first draft, and how it did on the hidden answers.
fn found(summary: &ResultRow<'_>, printer: &mut Printer) -> Result<(), CliError> {
    if let (Some(best), Some(first)) = (
        summary.optional_float("best_score")?,
        summary.optional_float("first_score")?,
    ) {
        let (metric, direction) = if summary.bool("higher_is_better")? {
            (summary.text("metric")?, "higher")
        } else {
            (summary.text("metric")?, "lower")
        };
        fact(printer, "score", format!("{metric} {best:.5} ({direction} is better)"))?;
        let gain = if best == first {
            format!("none: the first draft, {first:.5}, is still the best program")
        } else {
            let gain = (best - first).abs();
            let share = if first == 0.0 {
                String::new()
            } else {
                format!(" ({:.2} %)", gain / first.abs() * 100.0)
            };
            format!("{gain:.5} better than the first draft, which scored {first:.5}{share}")
        };
        let gain = printer.terminal().paint(Look::Green, gain);
        fact(printer, "gain", gain)?;
    }
    if let Some(status) = summary.optional_text("grade_status")? {
        let grade = match summary.optional_float("test_score")? {
            Some(score) => {
                let standing = summary
                    .optional_text("standing")?
                    .map(|standing| format!(": {standing}"))
                    .unwrap_or_default();
                format!("{score:.5} on the hidden answers{standing}")
            }
            None => format!("not valid on the hidden answers: {status}"),
        };
        fact(printer, "grade", grade)?;
    }
    Ok(())
}

/// What the search took of everything that costs.
fn spent(summary: &ResultRow<'_>, workers: u64, printer: &mut Printer) -> Result<(), CliError> {
    let count = |name| Ok::<_, CliError>(summary.optional_int(name)?.unwrap_or(0));
    let seconds = |name| Ok::<_, CliError>(duration(summary.optional_float(name)?.unwrap_or(0.0)));
    fact(
        printer,
        "tried",
        format!(
            "{}, {} of them failed",
            counted(count("programs")?.unsigned_abs(), "program"),
            count("failed")?
        ),
    )?;
    let tokens = match summary.optional_int("tokens")? {
        Some(0) => "no tokens (the model is a grammar, not a language model)".to_owned(),
        Some(tokens) => format!("{} tokens read and written by the model", thousands(tokens)),
        None => "tokens unknown".to_owned(),
    };
    let cost = match summary.optional_float("cost_usd")? {
        Some(cost) => dollars(cost),
        None => "cost unknown".to_owned(),
    };
    fact(printer, "spent", format!("{tokens}, {cost}"))?;
    fact(
        printer,
        "",
        format!("{} in the model, writing programs", seconds("model_seconds")?),
    )?;
    fact(
        printer,
        "",
        format!(
            "{} in the sandbox, running and scoring them, {workers} at once",
            seconds("sandbox_seconds")?
        ),
    )?;
    fact(
        printer,
        "",
        format!("{} of wall time, from start to end", seconds("seconds")?),
    )
}
