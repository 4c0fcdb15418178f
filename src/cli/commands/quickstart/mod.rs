//! `clade quickstart`: an example store, a search on an example task, and what came out of it.

mod report;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::Args;
use tokio::process::Command;

use crate::cli::client::Client;
use crate::cli::conduct;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::printer::{Format, Printer, counted};
use crate::cli::sql_text::literal;
use crate::cli::terminal::Look;
use crate::config::Override;
use crate::engine::{OpenMode, SessionOptions};
use crate::scheduler::fresh_id;

/// Makes the example task packages; it needs no network.
const BUILD_SCRIPT: &str = include_str!("../../../../examples/tasks/build.py");

/// Task that the search works on: of the examples the one whose programs run shortest.
const TASK: &str = "breast-cancer";

/// Folder in the store that the example package is built in, so that it can be looked at and imported again.
const EXAMPLES: &str = "examples";

/// Store that is made where the user names none.
const STORE: &str = "clade-quickstart";

/// Longest run of one program. The model is told and writes programs that need a small part of it.
const TIMEOUT: &str = "60s";

const POLICY: &str = "openmle_evo";
const MODEL: &str = "evolver";

/// Tables keep whole numbers as signed ones.
const LARGEST: u64 = 1 << 63;

/// Arguments of `clade quickstart`.
#[derive(Debug, Args)]
pub struct QuickstartArgs {
    /// Programs to try.
    #[arg(long, default_value_t = 20, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..LARGEST))]
    steps: u64,
    /// Programs at once.
    #[arg(long, default_value_t = 2, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1024))]
    workers: u64,
    /// Seed of the search.
    #[arg(long, default_value_t = 42, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(..LARGEST))]
    seed: u64,
}

/// Makes the store, searches, and tells the story.
pub async fn run(args: QuickstartArgs, context: &Context) -> Result<(), CliError> {
    let store = (!context.names_store()).then(|| Override {
        key: "store.path".to_owned(),
        value: STORE.to_owned(),
        flag: "quickstart".to_owned(),
    });
    let context = context.with(store)?;
    let mut printer = context.printer(Format::Table)?;
    printer.set_notes(false);
    let client = Client::open(&context, OpenMode::CreateIfMissing, &SessionOptions::default()).await?;
    let result = tell(&args, &context, client, &mut printer).await;
    printer.finish()?;
    result
}

async fn tell(args: &QuickstartArgs, context: &Context, client: Client, printer: &mut Printer) -> Result<(), CliError> {
    let path = context.loaded.config.store.path.clone();
    heading(printer, "Clade quickstart")?;
    fact(printer, "store", path.display())?;
    import(context, &client, &path).await?;
    let task = client
        .rows(&format!("SELECT * FROM gym.tasks WHERE task_id = {}", literal(TASK)))
        .await?;
    let task = task
        .first()
        .ok_or_else(|| CliError::Failed(format!("the task {TASK} was not imported")))?;
    let rows = |name| Ok::<_, CliError>(task.optional_int(name)?.unwrap_or(0));
    let direction = if task.bool("higher_is_better")? {
        "higher"
    } else {
        "lower"
    };
    fact(printer, "task", format!("{TASK}: {}", task.text("title")?))?;
    fact(
        printer,
        "",
        format!(
            "{} rows to train on, {} to predict; {}, {direction} is better",
            rows("train_rows")?,
            rows("test_rows")?,
            task.text("metric")?
        ),
    )?;
    fact(
        printer,
        "search",
        format!(
            "{}, {} at once, written by the model {MODEL}, parents chosen by the policy {POLICY}",
            counted(args.steps, "program"),
            args.workers
        ),
    )?;
    printer.line("")?;

    let run_id = fresh_id();
    let sql = format!(
        "EVOLVE TASK {} WITH POLICY {POLICY} USING MODEL {MODEL} \
         WITH (id => {}, steps => {}, workers => {}, seed => {}, timeout => {}, warm => true)",
        literal(TASK),
        literal(&run_id),
        args.steps,
        args.workers,
        args.seed,
        literal(TIMEOUT)
    );
    conduct::follow(&client, &run_id, &sql, context).await?;

    let client = client.with_run(run_id.clone(), false);
    report::write(&client, &run_id, &path, args.workers, printer).await?;
    client.close().await;
    Ok(())
}

/// Builds the example package with the configured interpreter and imports it.
async fn import(context: &Context, client: &Client, store: &Path) -> Result<(), CliError> {
    let folder = store.join(EXAMPLES);
    build(context, &folder).await?;
    client
        .output(&format!(
            "CREATE TASK FROM {}",
            literal(&folder.join(TASK).to_string_lossy())
        ))
        .await?;
    Ok(())
}

async fn build(context: &Context, folder: &Path) -> Result<(), CliError> {
    std::fs::create_dir_all(folder).map_err(CliError::file(folder))?;
    let script = folder.join("build.py");
    std::fs::write(&script, BUILD_SCRIPT).map_err(CliError::file(&script))?;
    let config = &context.loaded.config;
    let cwd = std::env::current_dir().map_err(CliError::file("."))?;
    let python = config.python.resolve(&config.store.path, &cwd);
    let hint = "it needs Python with numpy, pandas and scikit-learn; name one with CLADE_PYTHON, see clade doctor";
    let output = Command::new(&python)
        .arg("-I")
        .arg(&script)
        .arg(folder)
        .arg(TASK)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| CliError::Failed(format!("cannot start {}: {error}; {hint}", python.display())))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        let last = error.lines().last().unwrap_or("it says nothing").to_owned();
        return Err(CliError::Failed(format!(
            "the example task could not be made: {last}; {hint}"
        )));
    }
    Ok(())
}

/// A heading.
fn heading(printer: &mut Printer, text: &str) -> Result<(), CliError> {
    let text = printer.terminal().paint(Look::Bold, text);
    printer.line(text)
}

/// A fact with its name in the margin.
fn fact(printer: &mut Printer, name: &str, value: impl std::fmt::Display) -> Result<(), CliError> {
    let name = printer.terminal().paint(Look::Dim, format!("{name:<10}"));
    printer.line(format!("  {name}{value}"))
}

/// The picture lies in the store.
fn picture(store: &Path) -> PathBuf {
    store.join("run.svg")
}
