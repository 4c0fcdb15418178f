//! The genome of a program: every choice the grammar makes. A program carries its genome as the literal `CONFIG`, so it can
//! be read back from the text alone.

mod family;
mod ordered;
mod parts;
mod ranking;
mod scalar;
mod tabular;

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

pub(crate) use family::Family;
pub(crate) use ordered::Ordered;
pub(crate) use parts::{
    Analyzer, Blend, Categorical, ForecastFeatures, ImageFeatures, Level, Numeric, Reduce, SeriesFeatures, Target, Text,
};
pub(crate) use ranking::{RankingGenome, Scorer, ScorerKind};
pub(crate) use scalar::{Domain, Scalar, plain, plain_int};
pub(crate) use tabular::{MOST_MEMBERS, Member, TabularGenome, counts};

use super::literal::Literal;
use super::profile::{Outcome, TaskProfile};

/// Every choice of one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Genome {
    /// Predicts each row from its features.
    Tabular(TabularGenome),
    /// Ranks items for users.
    Ranking(RankingGenome),
}

static CONFIG: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?m)^CONFIG\s*=\s*").ok());

impl Genome {
    /// The genome made to fit the task, or `None` when nothing of it does.
    pub(crate) fn normalised(self, profile: &TaskProfile) -> Option<Self> {
        match (self, &profile.outcome) {
            (Self::Ranking(genome), Outcome::Ranking(ranking)) => {
                genome.normalised(ranking.time.is_some()).map(Self::Ranking)
            }
            (Self::Tabular(_), Outcome::Ranking(_)) | (Self::Ranking(_), _) => None,
            (Self::Tabular(genome), _) => genome.normalised(profile).map(Self::Tabular),
        }
    }

    /// The genome a program of ours carries, made to fit the task.
    pub(crate) fn read(code: &str, profile: &TaskProfile) -> Option<Self> {
        let start = CONFIG.as_ref()?.find(code)?.end();
        let literal = Literal::parse(code.get(start..)?)?;
        let genome: Self = serde_json::from_str(&literal.json()).ok()?;
        genome.normalised(profile)
    }

    /// The `CONFIG` literal.
    pub(crate) fn python(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        Literal::parse(&json).map_or_else(String::new, |literal| literal.python(0, "CONFIG = ".len()))
    }

    /// Names of the members or scorers.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::Tabular(genome) => genome.members.0.iter().map(|(name, _)| name.as_str()).collect(),
            Self::Ranking(genome) => genome.scorers.0.iter().map(|(name, _)| name.as_str()).collect(),
        }
    }
}
