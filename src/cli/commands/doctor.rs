//! `clade doctor`: what works on this machine, and what does not.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, StringArray};
use clap::Args;
use tokio::process::Command;

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::printer::counted;
use crate::cli::terminal::note;
use crate::engine::{OpenMode, QueryOutput, SessionOptions};
use crate::scheduler::ENGINE_VERSION;

/// Prints the version and each package with its version or its error.
const PYTHON_PROBE: &str = include_str!("../python/probe.py");

/// Importing the usual packages for the first time takes seconds on a slow disk.
const PYTHON_LIMIT: Duration = Duration::from_secs(60);

/// Beginning of the names of checks that stand for a problem of the store.
const PROBLEM: &str = "problem: ";

/// Problems that are shown, the newest first.
const MOST_PROBLEMS: usize = 20;

/// Arguments of `clade doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Take the problems noted so far as dealt with: they are shown no more. What is still wrong is noted again.
    #[arg(long)]
    acknowledge: bool,
    #[command(flatten)]
    format: FormatArgs,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Ok,
    Warning,
    Failed,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// One check.
struct Check {
    name: String,
    outcome: Outcome,
    detail: String,
}

impl Check {
    fn new(name: impl Into<String>, outcome: Outcome, detail: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            outcome,
            detail: detail.into(),
        }
    }
}

/// Runs all checks; fails when one of them does.
pub async fn run(args: DoctorArgs, context: &Context) -> Result<(), CliError> {
    let mut printer = context.printer(args.format.format)?;
    if args.acknowledge {
        acknowledge(context).await?;
    }
    printer.set_notes(false);
    let mut checks = vec![
        Check::new("clade", Outcome::Ok, format!("version {ENGINE_VERSION}")),
        machine(context),
    ];
    python(context, &mut checks).await;
    store(context, &mut checks).await;
    let column =
        |field: fn(&Check) -> &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(checks.iter().map(field))) };
    printer
        .print(QueryOutput::of_columns(vec![
            ("check", column(|check| &check.name)),
            ("result", column(|check| check.outcome.as_str())),
            ("detail", column(|check| &check.detail)),
        ])?)
        .await?;
    printer.finish()?;
    let failed: Vec<&Check> = checks.iter().filter(|check| check.outcome == Outcome::Failed).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let hint = if failed.iter().any(|check| check.name.starts_with(PROBLEM)) {
        "; once its problems are dealt with, clade doctor --acknowledge drops them"
    } else {
        ""
    };
    Err(CliError::Failed(format!(
        "{} of {} checks failed{hint}",
        failed.len(),
        checks.len()
    )))
}

/// Takes the problems of the store as known.
async fn acknowledge(context: &Context) -> Result<(), CliError> {
    let client = Client::writer(context).await?;
    let count = client.engine().acknowledge_problems().await?;
    client.close().await;
    let count = counted(u64::try_from(count).unwrap_or(0), "problem");
    note(format!("{count} taken as dealt with"));
    Ok(())
}

fn machine(context: &Context) -> Check {
    let sandbox = &context.loaded.config.sandbox;
    let jobs = sandbox.effective_concurrency();
    let detail = format!(
        "{jobs} job{} at once, each with {} core{} and {} of memory",
        if jobs == 1 { "" } else { "s" },
        sandbox.cpus,
        if sandbox.cpus == 1 { "" } else { "s" },
        sandbox.memory
    );
    Check::new("machine", Outcome::Ok, detail)
}

/// The interpreter and the packages that programs usually import.
async fn python(context: &Context, checks: &mut Vec<Check>) {
    let config = &context.loaded.config;
    let cwd = std::env::current_dir().unwrap_or_default();
    let interpreter = config.python.resolve(&config.store.path, &cwd);
    let name = interpreter.display().to_string();
    let child = Command::new(&interpreter)
        .args(["-I", "-c", PYTHON_PROBE])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match tokio::time::timeout(PYTHON_LIMIT, child).await {
        Ok(Ok(output)) if output.status.success() => output,
        Ok(Ok(output)) => {
            let error = String::from_utf8_lossy(&output.stderr);
            let last = error.lines().last().unwrap_or("it says nothing").to_owned();
            checks.push(Check::new("python", Outcome::Failed, format!("{name} fails: {last}")));
            return;
        }
        Ok(Err(error)) => {
            let hint = "set python.interpreter, or CLADE_PYTHON";
            checks.push(Check::new(
                "python",
                Outcome::Failed,
                format!("{name} cannot be started: {error}; {hint}"),
            ));
            return;
        }
        Err(_) => {
            checks.push(Check::new(
                "python",
                Outcome::Failed,
                format!("{name} does not end within 60 s"),
            ));
            return;
        }
    };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        match line.split('\t').collect::<Vec<_>>().as_slice() {
            ["python", "ok", version] => {
                checks.push(Check::new("python", Outcome::Ok, format!("{name}, version {version}")));
            }
            [package, "ok", version] => {
                checks.push(Check::new(
                    format!("python: {package}"),
                    Outcome::Ok,
                    format!("version {version}"),
                ));
            }
            [package, _, error] => checks.push(Check::new(
                format!("python: {package}"),
                Outcome::Failed,
                format!("{error}; programs need it: {name} -m pip install {package}"),
            )),
            _ => {}
        }
    }
}

/// The sandboxes, and the store where there is one.
async fn store(context: &Context, checks: &mut Vec<Check>) {
    let path = context.loaded.config.store.path.display().to_string();
    if !context.loaded.config.store.path.join("store.toml").exists() {
        let detail = format!("there is none at {path}: clade init makes one; sandboxes are checked with a store");
        checks.push(Check::new("store", Outcome::Warning, detail));
        return;
    }
    let client = match Client::open(
        context,
        OpenMode::ReadOnly,
        &SessionOptions {
            read_only: true,
            run: None,
        },
    )
    .await
    {
        Ok(client) => client,
        Err(error) => {
            checks.push(Check::new("store", Outcome::Failed, format!("{path}: {error}")));
            return;
        }
    };
    match counts(&client).await {
        Ok(detail) => checks.push(Check::new("store", Outcome::Ok, format!("{path}: {detail}"))),
        Err(error) => checks.push(Check::new("store", Outcome::Failed, format!("{path}: {error}"))),
    }
    if let Err(error) = problems(&client, checks).await {
        checks.push(Check::new("problems", Outcome::Failed, error.to_string()));
    }
    let default = &context.loaded.config.sandbox.executor;
    for (name, sandbox) in &client.engine().scheduler().services().sandboxes {
        let report = match sandbox.executor.capabilities().await {
            Ok(report) => report,
            Err(error) => {
                let outcome = if name == default {
                    Outcome::Failed
                } else {
                    Outcome::Warning
                };
                checks.push(Check::new(format!("sandbox: {name}"), outcome, error.to_string()));
                continue;
            }
        };
        let missing: Vec<String> = report
            .layers
            .iter()
            .filter(|(_, capability)| !capability.available)
            .map(|(layer, capability)| match &capability.advice {
                // Advice is for what the user works with.
                Some(advice) if name == default => format!("{} ({advice})", layer.as_str()),
                _ => layer.as_str().to_owned(),
            })
            .collect();
        let detail = match (missing.is_empty(), report.layers.is_empty()) {
            (_, true) if report.summary.is_some() => report.summary.clone().unwrap_or_default(),
            (_, true) => "no isolation: for programs you trust".to_owned(),
            (true, false) => format!("all {} layers are there", report.layers.len()),
            (false, false) => format!("not available: {}", missing.join(", ")),
        };
        let outcome = match (report.usable, name == default) {
            (true, _) => Outcome::Ok,
            (false, true) => Outcome::Failed,
            (false, false) => Outcome::Warning,
        };
        checks.push(Check::new(format!("sandbox: {name}"), outcome, detail));
    }
}

/// The newest problems of the store that nobody has acknowledged.
async fn problems(client: &Client, checks: &mut Vec<Check>) -> Result<(), CliError> {
    let since = client.engine().problems_acknowledged_at().await?.unwrap_or(0);
    let sql = format!(
        "SELECT component, severity, subject, message FROM system.problems \
         WHERE CAST(at AS BIGINT) > {since} ORDER BY at DESC LIMIT {MOST_PROBLEMS}"
    );
    for row in client.rows(&sql).await?.iter() {
        let outcome = if row.text("severity")? == "error" {
            Outcome::Failed
        } else {
            Outcome::Warning
        };
        checks.push(Check::new(
            format!("{PROBLEM}{}", row.text("component")?),
            outcome,
            format!("{}: {}", row.text("subject")?, row.text("message")?),
        ));
    }
    Ok(())
}

async fn counts(client: &Client) -> Result<String, CliError> {
    let sql = "SELECT (SELECT count(*) FROM gym.tasks) AS tasks, (SELECT count(*) FROM evo.runs) AS runs, \
               (SELECT count(*) FROM evo.nodes) AS nodes";
    let rows = client.rows(sql).await?;
    let Some(row) = rows.first() else {
        return Ok(String::new());
    };
    Ok(format!(
        "{} tasks, {} runs, {} programs",
        row.int("tasks")?,
        row.int("runs")?,
        row.int("nodes")?
    ))
}
