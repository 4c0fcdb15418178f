//! Genome of programs that rank items for users: a weighted sum of scorers.

use serde::{Deserialize, Serialize};

use super::family::Usual;
use super::ordered::Ordered;
use super::scalar::{Domain, Scalar};

/// A way to score items for a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ScorerKind {
    /// How many chose the item, lately more than long ago.
    Popular,
    /// Items chosen by those who chose the user's items.
    ItemCosine,
    /// Items chosen soon after the user's items.
    NextItem,
    /// Items near the user in a truncated SVD.
    Svd,
    /// Items that a ridge regression on all other items predicts.
    Ease,
}

/// One scorer with its share of the sum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scorer {
    /// Share of the sum.
    pub(crate) weight: f64,
    /// Parameters.
    pub(crate) params: Ordered<Scalar>,
}

/// A weighted sum of scorers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RankingGenome {
    /// Scorers by name.
    pub(crate) scorers: Ordered<Scorer>,
}

type Spec = (&'static str, Domain, Usual);

const RECENT: Spec = ("recent", Domain::LogInt(1, 100), Usual::Int(10));
const DECAY: Spec = ("decay", Domain::Linear(0.3, 1.0), Usual::Float(0.85));
const DAMPING: Spec = ("damping", Domain::Linear(0.0, 1.0), Usual::Float(0.5));

impl ScorerKind {
    /// Every kind.
    pub(crate) const ALL: [Self; 5] = [Self::Popular, Self::ItemCosine, Self::NextItem, Self::Svd, Self::Ease];

    /// Name in programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Popular => "popular",
            Self::ItemCosine => "item_cosine",
            Self::NextItem => "next_item",
            Self::Svd => "svd",
            Self::Ease => "ease",
        }
    }

    /// Name in sentences.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Popular => "popularity",
            Self::ItemCosine => "cosine similarity to the user's latest items",
            Self::NextItem => "what others chose next after the user's latest items",
            Self::Svd => "a truncated SVD of the history",
            Self::Ease => "a ridge regression of each item on all others",
        }
    }

    /// The kind of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Parameters. All but popularity look at the user's latest items, the newest with weight 1 and each older one with
    /// `decay` times less, and divide by item counts to the power `damping`.
    pub(crate) fn params(self, timed: bool) -> &'static [Spec] {
        match (self, timed) {
            (Self::Popular, true) => &[("half_life", Domain::Log(0.01, 2.0), Usual::Float(0.2))],
            (Self::Popular, false) => &[],
            (Self::ItemCosine, _) => &[RECENT, DECAY, DAMPING],
            (Self::NextItem, _) => &[RECENT, DECAY, DAMPING, ("window", Domain::LogInt(1, 40), Usual::Int(5))],
            (Self::Svd, _) => &[RECENT, DECAY, DAMPING, ("rank", Domain::LogInt(8, 200), Usual::Int(40))],
            (Self::Ease, _) => &[
                RECENT,
                DECAY,
                ("l2", Domain::Log(5.0, 3000.0), Usual::Float(150.0)),
                ("items", Domain::LogInt(500, 3000), Usual::Int(1500)),
            ],
        }
    }
}

impl RankingGenome {
    /// The genome with unknown scorers and parameters left out and missing parameters at their usual values; `None` when no
    /// scorer is left.
    pub(crate) fn normalised(mut self, timed: bool) -> Option<Self> {
        self.scorers.0.retain(|(name, scorer)| {
            ScorerKind::from_name(name).is_some() && scorer.weight.is_finite() && scorer.weight > 0.0
        });
        for (name, scorer) in &mut self.scorers.0 {
            if let Some(kind) = ScorerKind::from_name(name) {
                scorer.params = complete(&scorer.params, kind.params(timed));
            }
        }
        (!self.scorers.0.is_empty()).then_some(self)
    }
}

/// Parameters in the order of their specification: those given where they fit, else the usual ones.
pub(crate) fn complete(params: &Ordered<Scalar>, specs: &[Spec]) -> Ordered<Scalar> {
    Ordered(
        specs
            .iter()
            .map(|(name, domain, usual)| {
                let given = params.get(name).filter(|value| domain.admits(value)).cloned();
                ((*name).to_owned(), given.unwrap_or_else(|| usual.scalar()))
            })
            .collect(),
    )
}
