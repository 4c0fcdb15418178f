//! Flags that say how each search of a suite goes, as the EVOLVE that they mean.

use clap::Args;

use crate::cli::error::CliError;
use crate::cli::evolve_flags::{check_names, option_items};
use crate::dialect::{Evolve, EvolveOptions};

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
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    steps: Option<String>,
    /// Pipelines of each search that run at once.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    workers: Option<String>,
    /// Seed that the seeds of the repeats are derived from.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<String>,
    /// Any other option of EVOLVE, such as max_wall=2h or submit_repeats=3; may be repeated.
    #[arg(short = 'o', long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
}

impl SearchArgs {
    /// The statement of each search, without its task.
    pub fn evolve(self) -> Result<Evolve, CliError> {
        check_names(&[
            ("policy", &self.policy),
            ("model", &self.model),
            ("sandbox", &self.sandbox),
        ])?;
        let flags = [("steps", &self.steps), ("workers", &self.workers), ("seed", &self.seed)];
        let items = option_items(&flags, &self.options)?;
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
        assert!(message(&["--steps", "many"]).contains("--steps many: must be a whole number of 1 or more"));
        assert!(message(&["--steps", "-1"]).contains("--steps -1: must be"));
        assert!(message(&["-o", "nope=1"]).contains("--option nope=1: unknown option nope"));
        assert!(message(&["--model", ""]).contains("--model '': a name is wanted"));
        assert!(message(&["-o", "nope"]).contains("NAME=VALUE"));
    }
}
