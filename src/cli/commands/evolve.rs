//! `clade evolve`: search for better programs on a task.

use clap::Args;

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::conduct;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::sql_text::literal;

/// Arguments of `clade evolve`.
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
    #[arg(long)]
    steps: Option<u64>,
    /// Pipelines that run at once.
    #[arg(long)]
    workers: Option<u64>,
    /// Seed of every draw.
    #[arg(long)]
    seed: Option<u64>,
    /// async (steady state) or generation (a barrier after every generation).
    #[arg(long)]
    mode: Option<String>,
    /// Longest run of one program, such as 90s or '10 min'.
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Budget: wall time of the run, such as 2h.
    #[arg(long, value_name = "TIME")]
    max_wall: Option<String>,
    /// Budget: prompt and completion tokens.
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Budget: US dollars.
    #[arg(long, value_name = "USD")]
    max_cost_usd: Option<f64>,
    /// Any other option of EVOLVE, such as quality_weight=2; may be repeated.
    #[arg(short = 'o', long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// Id of the run, to name it yourself [default: a new one].
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    format: FormatArgs,
}

/// Starts the run and follows it.
pub async fn run(args: EvolveArgs, context: &Context) -> Result<(), CliError> {
    let printer = context.printer(args.format.format)?;
    let run_id = args.id.clone().unwrap_or_else(crate::scheduler::fresh_id);
    let sql = statement(&args, &run_id)?;
    let client = Client::writer(context).await?;
    let result = conduct::run(&client, &run_id, &sql, printer, context).await;
    client.close().await;
    result
}

/// The EVOLVE statement of the arguments.
fn statement(args: &EvolveArgs, run_id: &str) -> Result<String, CliError> {
    let mut options = vec![format!("id => {}", literal(run_id))];
    let mut option = |name: &str, value: Option<String>| {
        options.extend(value.map(|value| format!("{name} => {value}")));
    };
    let text = |value: &Option<String>| value.as_deref().map(literal);
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    option("steps", number(args.steps));
    option("workers", number(args.workers));
    option("seed", number(args.seed));
    option("mode", text(&args.mode));
    option("timeout", text(&args.timeout));
    option("max_wall", text(&args.max_wall));
    option("max_tokens", number(args.max_tokens));
    option("max_cost_usd", args.max_cost_usd.map(|value| value.to_string()));
    for item in &args.options {
        let (name, value) = item
            .split_once('=')
            .ok_or_else(|| CliError::Usage(format!("--option {item}: write NAME=VALUE, such as quality_weight=2")))?;
        let value = value.trim();
        let bare = value.parse::<f64>().is_ok_and(f64::is_finite) || matches!(value, "true" | "false");
        option(name.trim(), Some(if bare { value.to_owned() } else { literal(value) }));
    }
    let mut sql = format!("EVOLVE TASK {}", literal(&args.task));
    for (clause, name) in [
        ("WITH POLICY", &args.policy),
        ("USING MODEL", &args.model),
        ("IN SANDBOX", &args.sandbox),
    ] {
        if let Some(name) = name {
            sql.push_str(&format!(" {clause} {}", literal(name)));
        }
    }
    sql.push_str(&format!(" WITH ({})", options.join(", ")));
    Ok(sql)
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
        statement(&harness.args, "r1").unwrap()
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
            "EVOLVE TASK 'it''s' WITH POLICY 'my policy' USING MODEL 'evolver' IN SANDBOX 'native' WITH (id => 'r1', \
             steps => 8, workers => 2, seed => 1, mode => 'generation', timeout => '90s', max_cost_usd => 0.5, \
             quality_weight => 2, grade => false)"
        );
        dialect::parse(&text).unwrap();
        dialect::parse(&sql(&["abalone"])).unwrap();
    }
}
