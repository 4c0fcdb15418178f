//! `clade model`: list, show and test models.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use clap::{Args, Subcommand};

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::sql_text::literal;
use crate::cli::terminal::note;
use crate::engine::{EngineError, QueryOutput};
use crate::model::Sample;

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
        ModelAction::Test { name, format } => {
            let mut printer = context.printer(format.format)?;
            let client = Client::reader(context).await?;
            match client.engine().probe_model(&name).await.map_err(EngineError::from)? {
                None => note(format!("model {name} is built in: there is nothing to connect to")),
                Some(sample) => {
                    printer.print(answer(&name, &sample)?).await?;
                }
            }
            printer.finish()
        }
    }
}

/// The answer to the small request as one row.
fn answer(name: &str, sample: &Sample) -> Result<QueryOutput, CliError> {
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
