//! `clade bench run` and `clade bench resume`.

use chrono::Utc;
use clap::{ArgGroup, Args};

use super::search::SearchArgs;
use super::told::SuiteView;
use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::interrupt;
use crate::cli::printer::{Format, counted};
use crate::cli::sql_text::literal;
use crate::cli::terminal::note;
use crate::suite::{self, Definition, Event, Outcome, SuiteError, SuiteRequest};

/// Name of a list of tasks that has none of its own.
const UNNAMED: &str = "tasks";

/// Arguments of `clade bench run`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["tasks", "suite"]).required(true))]
pub struct RunArgs {
    /// Tasks, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "TASKS")]
    tasks: Vec<String>,
    /// Suite that names the tasks: mle-bench-lite, or a file.
    #[arg(long, value_name = "NAME|FILE")]
    suite: Option<String>,
    /// Searches of each task, each with a seed of its own [default: what the suite says, else 1].
    #[arg(long, value_name = "N")]
    repeats: Option<u64>,
    /// Name of this run of the suite, to resume it by [default: the suite's name and the time].
    #[arg(long)]
    name: Option<String>,
    /// Pipelines that run at once over all searches [default: those of one search].
    #[arg(long, value_name = "N")]
    max_workers: Option<u64>,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// Arguments of `clade bench resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Name of the suite's run.
    name: String,
    /// Pipelines that run at once over all searches [default: as when the suite began].
    #[arg(long, value_name = "N")]
    max_workers: Option<u64>,
    #[command(flatten)]
    format: FormatArgs,
}

impl From<SuiteError> for CliError {
    fn from(error: SuiteError) -> Self {
        match error {
            SuiteError::Engine(error) => Self::Engine(error),
            SuiteError::Unknown { .. }
            | SuiteError::Definition { .. }
            | SuiteError::Unreadable { .. }
            | SuiteError::Usage(_) => Self::Usage(error.to_string()),
            SuiteError::Request(_) | SuiteError::Differs { .. } => Self::Failed(error.to_string()),
        }
    }
}

/// Runs a suite.
pub async fn run(args: RunArgs, context: &Context) -> Result<(), CliError> {
    let definition = args.suite.as_deref().map(Definition::find).transpose()?;
    let repeats = args
        .repeats
        .or(definition.as_ref().and_then(|definition| definition.repeats));
    let name = args.name.unwrap_or_else(|| {
        let name = definition
            .as_ref()
            .map_or_else(|| UNNAMED.to_owned(), Definition::short_name);
        format!("{name}-{}", Utc::now().format("%Y%m%d-%H%M%S"))
    });
    let (definition, tasks) = match definition {
        Some(definition) => (Some(definition.name), definition.tasks),
        None => (None, args.tasks),
    };
    let request = SuiteRequest {
        name: name.clone(),
        definition,
        tasks,
        repeats: repeats.unwrap_or(1),
        evolve: args.search.evolve()?,
        max_workers: args.max_workers,
    };
    conduct(&name, args.format.format, context, async |client, told| {
        suite::start(client.session(), request, told).await
    })
    .await
}

/// Goes on with a suite.
pub async fn resume(args: ResumeArgs, context: &Context) -> Result<(), CliError> {
    conduct(&args.name, args.format.format, context, async |client, told| {
        suite::resume(client.session(), &args.name, args.max_workers, told).await
    })
    .await
}

/// Conducts a suite under Ctrl-C, shows how far it is, and prints its searches.
async fn conduct(
    name: &str,
    format: Format,
    context: &Context,
    work: impl AsyncFnOnce(&Client, &dyn Fn(Event<'_>)) -> suite::Result<Outcome>,
) -> Result<(), CliError> {
    let mut printer = context.printer(format)?;
    let client = Client::writer(context).await?;
    let view = SuiteView::new(name, context.stderr);
    let told = |event: Event<'_>| view.tell(&event);
    let done = {
        let work = async { work(&client, &told).await.map_err(CliError::from) };
        let work = interrupt::guard(client.engine(), work);
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => break done,
                () = tokio::time::sleep(SuiteView::INTERVAL) => view.look(&client).await,
            }
        }
    };
    view.finish();
    let outcome = match done {
        Ok(outcome) => outcome,
        Err(error) => {
            client.close().await;
            return Err(error);
        }
    };
    printer.set_notes(false);
    client.run(&searches(name, format), &mut printer).await?;
    printer.finish()?;
    client.close().await;
    ending(name, &outcome)
}

/// The searches of a suite: in a table what fits, in other formats everything.
fn searches(name: &str, format: Format) -> String {
    let columns = match format {
        Format::Table => {
            "task_id AS task, repeat, status, concat(steps, '/' || steps_limit) AS steps, round(validation_score, 5) AS validation, \
             round(test_score, 5) AS test, medal"
        }
        _ => "*",
    };
    format!(
        "SELECT {columns} FROM bench.suite_progress WHERE suite_id = {} ORDER BY task_id, repeat",
        literal(name)
    )
}

/// What is left to say; a failed search is a failed command, tasks that are not imported are not.
fn ending(name: &str, outcome: &Outcome) -> Result<(), CliError> {
    let Outcome {
        searches,
        failed,
        missing,
        interrupted,
        ..
    } = *outcome;
    if missing > 0 {
        note(format!(
            "{} left out, because the task is not imported: clade task add, then clade bench resume {name}",
            counted(missing as u64, "search")
        ));
    }
    if interrupted > 0 {
        note(format!(
            "suite {name} is interrupted: clade bench resume {name} goes on with it"
        ));
    }
    if failed > 0 {
        return Err(CliError::Failed(format!(
            "{failed} of {} failed; clade bench show {name} says why, clade bench resume {name} tries them again",
            counted(searches as u64, "search")
        )));
    }
    if missing == searches {
        return Err(CliError::Failed(format!("no task of suite {name} is imported")));
    }
    Ok(())
}
