//! Genomes as Python programs: one plain script, with only what the genome uses.

mod data;
mod estimators;
mod ranking;
mod scoring;
mod script;
mod sources;
mod tabular;
mod transformers;

use super::genome::Genome;
use super::profile::{Outcome, TaskProfile};

/// The program of a genome that fits the task.
pub(crate) fn program(genome: &Genome, profile: &TaskProfile) -> String {
    match (genome, &profile.outcome) {
        (Genome::Ranking(scorers), Outcome::Ranking(ranking)) => ranking::program(genome, scorers, ranking, profile),
        (Genome::Tabular(tabular), _) => tabular::program(genome, tabular, profile),
        (Genome::Ranking(_), _) => String::new(),
    }
}
