//! Flags that say how each search of a suite goes, as the EVOLVE that they mean.

use clap::Args;

use crate::cli::error::CliError;
use crate::dialect::{Evolve, EvolveOptions, OptionItem, OptionValue};

/// How each search goes.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// Selection policy.
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Model that writes the programs.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Executor that runs them.
    #[arg(long, value_name = "NAME")]
    sandbox: Option<String>,
    /// Attempts that each search may commit.
    #[arg(long, value_name = "N")]
    steps: Option<String>,
    /// Pipelines of each search that run at once.
    #[arg(long, value_name = "N")]
    workers: Option<String>,
    /// Seed that the seeds of the repeats are derived from.
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// Any other option of EVOLVE, such as max_wall=2h or submit_repeats=3; may be repeated.
    #[arg(short = 'o', long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
}

impl SearchArgs {
    /// The statement of each search, without its task.
    pub fn evolve(self) -> Result<Evolve, CliError> {
        let mut items = Vec::new();
        for (name, value) in [("steps", &self.steps), ("workers", &self.workers), ("seed", &self.seed)] {
            if let Some(text) = value {
                items.push(OptionItem::unplaced(name, value_of(text)));
            }
        }
        for text in &self.options {
            let (name, value) = text.split_once('=').ok_or_else(|| {
                CliError::Usage(format!("--option {text}: write NAME=VALUE, such as submit_repeats=3"))
            })?;
            items.push(OptionItem::unplaced(name.trim(), value_of(value.trim())));
        }
        Ok(Evolve {
            task_id: String::new(),
            policy: self.policy,
            model: self.model,
            sandbox: self.sandbox,
            options: EvolveOptions::from_items(&items).map_err(|error| CliError::Usage(error.message))?,
            is_async: false,
        })
    }
}

/// A value as it is written in SQL: a number, true or false, else a text.
fn value_of(text: &str) -> OptionValue {
    match text {
        "true" => OptionValue::Bool(true),
        "false" => OptionValue::Bool(false),
        _ if text.parse::<f64>().is_ok_and(f64::is_finite) => OptionValue::Number(text.to_owned()),
        _ => OptionValue::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Harness {
        #[command(flatten)]
        args: SearchArgs,
    }

    fn evolve(arguments: &[&str]) -> Result<Evolve, CliError> {
        Harness::try_parse_from(["run"].iter().chain(arguments))
            .unwrap()
            .args
            .evolve()
    }

    #[test]
    fn flags_become_options() {
        let evolve = evolve(&[
            "--policy",
            "uniform",
            "--steps",
            "8",
            "--workers",
            "2",
            "--seed",
            "1",
            "-o",
            "max_wall=2h",
            "-o",
            "grade=false",
            "-o",
            "final_selection=self_reported",
        ])
        .unwrap();
        assert_eq!(
            evolve.to_string(),
            "EVOLVE TASK '' WITH POLICY uniform WITH (steps => 8, workers => 2, seed => 1, max_wall => '2 h', \
             grade => false, final_selection => 'self_reported')"
        );
    }

    #[test]
    fn wrong_flags_are_refused() {
        let message = |arguments: &[&str]| evolve(arguments).unwrap_err().to_string();
        assert!(message(&["--steps", "many"]).contains("option steps must be a whole number"));
        assert!(message(&["-o", "nope=1"]).contains("unknown option nope"));
        assert!(message(&["-o", "nope"]).contains("NAME=VALUE"));
    }
}
