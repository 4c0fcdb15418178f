//! `clade evolve`: search for better programs on a task.

use clap::Args;

use crate::cli::args::{FormatArgs, PromptSourceArgs};
use crate::cli::client::Client;
use crate::cli::conduct;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::evolve_flags::{check, check_names, option_items};
use crate::dialect::{Evolve, EvolveOptions, OptionItem, OptionValue, Statement};
use crate::engine::NEWEST_RUN;

/// Arguments of `clade evolve`. The values of options are checked where those of the statement are, so that both say the same.
#[derive(Debug, Args)]
pub struct EvolveArgs {
    /// Task to search on.
    task: String,
    /// Selection policy.
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Model that writes the programs.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Executor that runs them.
    #[arg(long, value_name = "NAME")]
    sandbox: Option<String>,
    /// Attempts that may be committed.
    #[arg(long, allow_negative_numbers = true)]
    steps: Option<String>,
    /// Pipelines that run at once.
    #[arg(long, allow_negative_numbers = true)]
    workers: Option<String>,
    /// Seed of every draw.
    #[arg(long, allow_negative_numbers = true)]
    seed: Option<String>,
    /// async (steady state) or generation (a barrier after every generation).
    #[arg(long)]
    mode: Option<String>,
    /// Longest run of one program, such as 90s or '10 min'.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<String>,
    /// Budget: wall time of the run, such as 2h.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    max_wall: Option<String>,
    /// Budget: prompt and completion tokens.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_tokens: Option<String>,
    /// Budget: US dollars.
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    max_cost_usd: Option<String>,
    /// Any other option of EVOLVE, such as quality_weight=2; may be repeated.
    #[arg(short = 'o', long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// Id of the run, to name it yourself [default: a new one].
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    sources: PromptSourceArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// Starts the run and follows it.
pub async fn run(args: EvolveArgs, context: &Context) -> Result<(), CliError> {
    let context = &context.with(args.sources.overrides())?;
    let printer = context.printer(args.format.format)?;
    let run_id = args.id.clone().unwrap_or_else(crate::scheduler::fresh_id);
    let sql = statement(&args, &run_id)?.to_string();
    let client = Client::writer(context).await?;
    let result = conduct::run(&client, &run_id, &sql, printer, context).await;
    client.close().await;
    result
}

/// The EVOLVE statement of the arguments.
fn statement(args: &EvolveArgs, run_id: &str) -> Result<Statement, CliError> {
    check_names(&[
        ("policy", &args.policy),
        ("model", &args.model),
        ("sandbox", &args.sandbox),
    ])?;
    Ok(Statement::Evolve(Box::new(Evolve {
        task_id: args.task.clone(),
        policy: args.policy.clone(),
        model: args.model.clone(),
        sandbox: args.sandbox.clone(),
        options: options(args, run_id)?,
        is_async: false,
    })))
}

/// The options, each checked under the name of its flag.
fn options(args: &EvolveArgs, run_id: &str) -> Result<EvolveOptions, CliError> {
    let id = OptionItem::unplaced("id", OptionValue::Text(run_id.to_owned()));
    if let Some(written) = &args.id {
        check(&format!("--id '{written}'"), &id)?;
        if written == NEWEST_RUN {
            return Err(CliError::Usage(format!(
                "--id {written}: that names the newest run, whichever it is; choose another id"
            )));
        }
    }
    let flags = [
        ("steps", &args.steps),
        ("workers", &args.workers),
        ("seed", &args.seed),
        ("mode", &args.mode),
        ("timeout", &args.timeout),
        ("max-wall", &args.max_wall),
        ("max-tokens", &args.max_tokens),
        ("max-cost-usd", &args.max_cost_usd),
    ];
    let mut items = vec![id];
    items.extend(option_items(&flags, &args.options)?);
    EvolveOptions::from_items(&items).map_err(|error| CliError::Usage(error.message))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use clap::Parser;

    use super::*;
    use crate::dialect;

    #[derive(Debug, Parser)]
    struct Harness {
        #[command(flatten)]
        args: EvolveArgs,
    }

    fn sql(arguments: &[&str]) -> String {
        let harness = Harness::try_parse_from(["evolve"].iter().chain(arguments)).unwrap();
        statement(&harness.args, "r1").unwrap().to_string()
    }

    #[test]
    fn arguments_become_a_statement_that_parses() {
        let text = sql(&[
            "it's",
            "--policy",
            "my policy",
            "--model",
            "evolver",
            "--sandbox",
            "native",
            "--steps",
            "8",
            "--workers",
            "2",
            "--seed",
            "1",
            "--mode",
            "generation",
            "--timeout",
            "90s",
            "--max-cost-usd",
            "0.5",
            "-o",
            "quality_weight=2",
            "-o",
            "grade=false",
        ]);
        assert_eq!(
            text,
            "EVOLVE TASK 'it''s' WITH POLICY 'my policy' USING MODEL evolver IN SANDBOX native WITH (steps => 8, \
             workers => 2, seed => 1, mode => 'generation', id => 'r1', max_cost_usd => 0.5, timeout => '90 s', \
             grade => false, quality_weight => 2)"
        );
        assert_eq!(dialect::parse(&text).unwrap()[0].statement.to_string(), text);
        dialect::parse(&sql(&["abalone"])).unwrap();
    }
}
