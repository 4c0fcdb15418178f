//! `clade task`: import, list and show tasks.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::interrupt;
use crate::cli::printer::{Format, Printer, wrapped};
use crate::cli::sql_text::literal;
use crate::cli::terminal::{Look, note};
use crate::gym::{Layout, MleBenchOptions, Progress};

/// Columns of `clade task list`.
const LIST: &str = "SELECT task_id, title, modality, task_type, metric, \
     CASE WHEN higher_is_better THEN 'higher' ELSE 'lower' END AS better, train_rows, test_rows, validation \
     FROM gym.tasks ORDER BY task_id";

/// Text is broken here when it is not shown on a terminal.
const TEXT_WIDTH: usize = 100;

/// Arguments of `clade task`.
#[derive(Debug, Args)]
pub struct TaskArgs {
    #[command(subcommand)]
    action: TaskAction,
}

#[derive(Debug, Subcommand)]
enum TaskAction {
    /// Import task packages; one with the id of a known task takes its place.
    Add {
        /// Folders of the packages.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Import a package although it fails its checks.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        layout: LayoutArgs,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// List the tasks.
    List {
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Show a task with its description, checks and best scores.
    Show {
        /// Task.
        #[arg(value_name = "TASK")]
        task: String,
        #[command(flatten)]
        format: FormatArgs,
    },
}

/// How the folders are laid out.
#[derive(Debug, Args)]
struct LayoutArgs {
    /// Layout of the folders: clade (a task package), mle-bench (a competition that MLE-Bench has prepared) or naturebench (a
    /// task of NatureBench).
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "LAYOUT",
        hide_possible_values = true
    )]
    layout: LayoutName,
    /// Folder of competitions with their graders and leaderboards: mlebench/competitions of MLE-Bench [default: they lie
    /// beside the data].
    #[arg(long, value_name = "DIR")]
    competitions: Option<PathBuf>,
    /// Which way scores are better, higher or lower, where the leaderboard does not tell.
    #[arg(long, value_enum, value_name = "WAY", hide_possible_values = true)]
    better: Option<Better>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum LayoutName {
    #[default]
    Clade,
    MleBench,
    Naturebench,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Better {
    Higher,
    Lower,
}

impl LayoutArgs {
    fn layout(self) -> Result<Layout, CliError> {
        if self.layout == LayoutName::MleBench {
            return Ok(Layout::MleBench(MleBenchOptions {
                competitions: self.competitions,
                higher_is_better: self.better.map(|better| better == Better::Higher),
            }));
        }
        if self.layout == LayoutName::Naturebench && self.competitions.is_none() && self.better.is_none() {
            return Ok(Layout::NatureBench);
        }
        if self.competitions.is_some() || self.better.is_some() {
            return Err(CliError::Usage(
                "--competitions and --better are for --layout mle-bench; other tasks say both themselves".to_owned(),
            ));
        }
        Ok(Layout::Package)
    }
}

/// Runs the action.
pub async fn run(args: TaskArgs, context: &Context) -> Result<(), CliError> {
    match args.action {
        TaskAction::Add {
            paths,
            force,
            layout,
            format,
        } => {
            let layout = layout.layout()?;
            let mut printer = context.printer(format.format)?;
            let client = Client::writer(context).await?;
            let result = interrupt::guard(client.engine(), add(&client, &paths, &layout, force, &mut printer)).await;
            client.close().await;
            result?;
            printer.finish()
        }
        TaskAction::List { format } => {
            let mut printer = context.printer(format.format)?;
            Client::reader(context).await?.run(LIST, &mut printer).await?;
            printer.finish()
        }
        TaskAction::Show { task, format } => {
            let mut printer = context.printer(format.format)?;
            show(&Client::reader(context).await?, &task, &mut printer).await?;
            printer.finish()
        }
    }
}

async fn add(
    client: &Client,
    paths: &[PathBuf],
    layout: &Layout,
    force: bool,
    printer: &mut Printer,
) -> Result<(), CliError> {
    for path in paths {
        let started = Instant::now();
        let path = path.canonicalize().map_err(CliError::file(path))?;
        let output = client
            .session()
            .create_task(&path, layout.clone(), force, Progress::to(|line| note(line)))
            .await?;
        printer.print_since(output, started).await?;
    }
    Ok(())
}

async fn show(client: &Client, task: &str, printer: &mut Printer) -> Result<(), CliError> {
    let id = literal(task);
    let row = format!("SELECT * FROM gym.tasks WHERE task_id = {id}");
    let rows = client.rows(&row).await?;
    let Some(facts) = rows.first() else {
        let known = client.rows("SELECT task_id FROM gym.tasks ORDER BY task_id").await?;
        let known: Vec<String> = known.iter().filter_map(|row| row.text("task_id").ok()).collect();
        let known = if known.is_empty() {
            "there are none yet".to_owned()
        } else {
            known.join(", ")
        };
        return Err(CliError::Failed(format!(
            "there is no task '{task}'; the tasks: {known}"
        )));
    };
    if printer.format() != Format::Table {
        client.run(&row, printer).await?;
        return Ok(());
    }
    let terminal = printer.terminal();
    let direction = if facts.bool("higher_is_better")? {
        "higher"
    } else {
        "lower"
    };
    printer.line(terminal.paint(Look::Bold, format!("{task}: {}", facts.text("title")?)))?;
    let mut fact = |name: &str, value: String| printer.line(format!("  {name:<12} {value}"));
    fact("metric:", format!("{} ({direction} is better)", facts.text("metric")?))?;
    fact(
        "kind:",
        format!("{}, {}", facts.text("modality")?, facts.text("task_type")?),
    )?;
    let size = |name| {
        Ok::<_, CliError>(
            facts
                .optional_int(name)?
                .map_or_else(|| "?".to_owned(), |n| n.to_string()),
        )
    };
    fact(
        "rows:",
        format!("{} to train on, {} to predict", size("train_rows")?, size("test_rows")?),
    )?;
    fact("targets:", facts.texts("target_columns")?.join(", "))?;
    fact("validation:", facts.text("validation")?)?;
    if let Some(text) = facts.optional_text("validation_note")? {
        fact("", text)?;
    }
    if let Some(leak) = facts.optional_text("known_leak")? {
        fact("leak:", leak)?;
    }
    fact("imported:", facts.text("source")?)?;
    printer.line("")?;
    printer.text(&wrapped(
        &facts.text("description")?,
        "  ",
        terminal.width.unwrap_or(TEXT_WIDTH).min(TEXT_WIDTH),
    ))?;
    let package = literal(&facts.text("package_hash")?);
    let checks = format!(
        "SELECT check_id, status, detail FROM gym.quality_checks \
         WHERE task_id = {id} AND package_hash = {package} AND status <> 'passed' ORDER BY check_id"
    );
    let runs = format!(
        "SELECT run_id, policy, model, status, steps_done, best_score, best_step FROM evo.runs \
         WHERE task_id = {id} ORDER BY created_at DESC LIMIT 10"
    );
    for (title, sql) in [("Checks that did not pass", checks), ("Newest runs", runs)] {
        if !client.rows(&sql).await?.is_empty() {
            printer.line(format!("\n{}", terminal.paint(Look::Bold, title)))?;
            client.run(&sql, printer).await?;
        }
    }
    Ok(())
}
