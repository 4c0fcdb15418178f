//! `clade bench show`: a suite's rates, its tasks over their repeats, and what went wrong.

use clap::Args;

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::printer::{Format, Printer, counted, dollars, thousands};
use crate::cli::sql_text::literal;
use crate::cli::terminal::Look;
use crate::session::ResultRow;

/// Arguments of `clade bench show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Name of the suite's run.
    name: String,
    #[command(flatten)]
    format: FormatArgs,
}

/// Shows the suite; formats for programs have its rows of `bench.by_task`.
pub async fn run(args: ShowArgs, context: &Context) -> Result<(), CliError> {
    let mut printer = context.printer(args.format.format)?;
    let client = Client::reader(context).await?;
    let suite = literal(&args.name);
    client.engine().require_suite(&args.name).await?;
    let report = client
        .rows(&format!("SELECT * FROM bench.suite_report WHERE suite_id = {suite}"))
        .await?;
    let Some(row) = report.first() else {
        return Err(CliError::Failed(format!("suite '{}' has no searches", args.name)));
    };
    if printer.format() != Format::Table {
        let sql = format!("SELECT * FROM bench.by_task WHERE suite_id = {suite} ORDER BY task_id");
        client.run(&sql, &mut printer).await?;
        return printer.finish();
    }
    printer.set_notes(false);
    facts(&row, &mut printer)?;
    for (title, sql) in tables(&suite) {
        if !client.rows(&sql).await?.is_empty() {
            let title = printer.terminal().paint(Look::Bold, title);
            printer.line(format!("\n{title}"))?;
            client.run(&sql, &mut printer).await?;
        }
    }
    printer.finish()
}

fn tables(suite: &str) -> [(&'static str, String); 2] {
    [
        (
            "Tasks, mean ± standard deviation over the repeats",
            include_str!("../../sql/suite_tasks.sql").replace("$suite", suite),
        ),
        (
            "Searches without a result",
            include_str!("../../sql/suite_faults.sql").replace("$suite", suite),
        ),
    ]
}

fn facts(row: &ResultRow<'_>, printer: &mut Printer) -> Result<(), CliError> {
    let number = |name| Ok::<_, CliError>(row.optional_float(name)?);
    let count = |name| Ok::<_, CliError>(row.optional_int(name)?.unwrap_or(0));
    let percent = |mean, std| -> Result<String, CliError> {
        let share = |value: f64| format!("{:.1}", value * 100.0);
        Ok(match (number(mean)?, number(std)?) {
            (Some(mean), Some(std)) => format!("{} ± {} %", share(mean), share(std)),
            (Some(mean), None) => format!("{} %", share(mean)),
            (None, _) => "none yet".to_owned(),
        })
    };
    let terminal = printer.terminal();
    printer.line(terminal.paint(Look::Bold, format!("suite {}", row.text("suite_id")?)))?;
    let mut fact = |name: &str, value: String| printer.line(format!("  {name:<12} {value}"));
    fact(
        "searched:",
        format!(
            "{}, {} each, with {} and {}",
            counted(count("tasks")? as u64, "task"),
            counted(count("repeats")? as u64, "time"),
            row.text("policy")?,
            row.text("model")?
        ),
    )?;
    fact(
        "ended:",
        format!(
            "{} of {}, {} failed, {} without their task",
            count("finished")?,
            counted(count("searches")? as u64, "search"),
            count("failed")?,
            count("missing")?
        ),
    )?;
    fact("valid:", percent("mean_valid_rate", "std_valid_rate")?)?;
    fact(
        "medals:",
        format!(
            "{}: {} gold, {} silver, {} bronze",
            percent("mean_medal_rate", "std_medal_rate")?,
            count("gold")?,
            count("silver")?,
            count("bronze")?
        ),
    )?;
    fact("human rank:", percent("mean_human_rank", "std_human_rank")?)?;
    let cost = [
        number("tokens_per_medal")?.map(|tokens| format!("{} tokens", thousands(tokens.round() as i64))),
        number("usd_per_medal")?.map(dollars),
        number("sandbox_seconds_per_medal")?
            .map(|seconds| format!("{} in the sandbox", crate::cli::printer::duration(seconds))),
    ];
    let cost: Vec<String> = cost.into_iter().flatten().collect();
    if !cost.is_empty() {
        fact("per medal:", cost.join(", "))?;
    }
    Ok(())
}
