//! Genome of programs that predict from a row of features: one pipeline or a blend of several.

use serde::{Deserialize, Serialize};

use super::family::Family;
use super::ordered::Ordered;
use super::parts::{
    Analyzer, Blend, Categorical, ForecastFeatures, ImageFeatures, Level, Numeric, Reduce, SeriesFeatures, Target, Text,
};
use super::ranking::complete;
use super::scalar::Scalar;
use crate::model::evolver::metric::Metric;
use crate::model::evolver::profile::{Forecast, Outcome, TaskProfile};

/// Most members of a blend.
pub(crate) const MOST_MEMBERS: usize = 5;

/// One pipeline of a blend: features and an estimator, which the member's name tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Member {
    /// Share of the blend.
    pub(crate) weight: f64,
    /// Numeric columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) numeric: Option<Numeric>,
    /// Columns of few categories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) low_cardinality: Option<Categorical>,
    /// Columns of many categories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) high_cardinality: Option<Categorical>,
    /// Text columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<Text>,
    /// What is done to all features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reduce: Option<Reduce>,
    /// Hyperparameters of the estimator.
    pub(crate) params: Ordered<Scalar>,
}

/// A blend of pipelines on common features, rows and target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TabularGenome {
    /// Seed of everything random in the program.
    pub(crate) seed: u32,
    /// Folds of the program's own validation; 1 is a hold-out.
    pub(crate) folds: u32,
    /// Fits with different seeds that are averaged.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) bags: u32,
    /// Whether repeated training rows are dropped.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) drop_duplicates: bool,
    /// Share of the history after which a row counts half, for tasks in time order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) half_life: Option<f64>,
    /// How the target is transformed.
    #[serde(default, skip_serializing_if = "Target::is_identity")]
    pub(crate) target: Target,
    /// Whether classes are weighted by the inverse of their share.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) balanced: bool,
    /// Whether probabilities are drawn towards the class shares, as far as that helps held-out rows.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) shrink: bool,
    /// Whether the program predicts the other class than the description seems to ask for.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) other_class: bool,
    /// Pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) images: Option<ImageFeatures>,
    /// Series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) series: Option<SeriesFeatures>,
    /// Forecast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forecast: Option<ForecastFeatures>,
    /// How members are combined.
    #[serde(default, skip_serializing_if = "Blend::is_fixed")]
    pub(crate) blend: Blend,
    /// Members by name.
    pub(crate) members: Ordered<Member>,
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(value: &u32) -> bool {
    *value == 1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl TabularGenome {
    /// The members with their families.
    pub(crate) fn families(&self) -> impl Iterator<Item = (Family, &Member)> {
        self.members
            .0
            .iter()
            .filter_map(|(name, member)| Some((Family::from_name(name)?, member)))
    }

    /// The genome made to fit the task: parts without columns are left out, missing parts get their usual values, and what
    /// an estimator cannot take is replaced by the nearest it can. `None` when no member is left.
    pub(crate) fn normalised(mut self, profile: &TaskProfile) -> Option<Self> {
        self.folds = self.folds.clamp(1, 10);
        self.bags = self.bags.clamp(1, 10);
        self.half_life = self
            .half_life
            .filter(|share| profile.time_order.is_some() && *share > 0.0 && share.is_finite());
        self.balanced &= matches!(profile.outcome, Outcome::Label { .. } | Outcome::Probability { .. })
            && profile.metric != Metric::LogLoss;
        self.shrink &= profile.classifies() && profile.metric == Metric::LogLoss;
        self.other_class &= matches!(profile.outcome, Outcome::Probability { .. });
        self.fit_sources(profile);
        self.fit_target(profile);
        let has_target = self.target;
        let mut members: Vec<(String, Member)> = Vec::new();
        for (name, member) in std::mem::take(&mut self.members.0) {
            let Some(family) = Family::from_name(&name) else {
                continue;
            };
            let fits = if profile.classifies() {
                family.can_classify()
            } else {
                family.can_regress()
            };
            let words_only = family == Family::NaiveBayes && profile.text.is_empty();
            if !fits
                || words_only
                || members.len() == MOST_MEMBERS
                || !(member.weight.is_finite() && member.weight > 0.0)
            {
                continue;
            }
            let mut member = fit_member(member, family, profile);
            if family == Family::PoissonRegression && (!has_target.is_identity() || !counts(profile)) {
                continue;
            }
            let poisson = member.params.get("loss") == Some(&Scalar::Text("poisson".to_owned()));
            if poisson
                && (!has_target.is_identity() || !counts(profile) || self.forecast.is_some())
                && let Some(loss) = member.params.get_mut("loss")
            {
                *loss = Scalar::Text("squared_error".to_owned());
            }
            let taken = members
                .iter()
                .filter(|(name, _)| Family::from_name(name) == Some(family))
                .count();
            let name = match taken {
                0 => family.name().to_owned(),
                others => format!("{}_{}", family.name(), others + 1),
            };
            members.push((name, member));
        }
        balance(&mut members);
        if members.len() < 2 {
            self.blend = Blend::Fixed;
        }
        if !members
            .iter()
            .any(|(name, _)| Family::from_name(name).is_some_and(Family::is_seeded))
        {
            self.bags = 1;
        }
        self.members.0 = members;
        (!self.members.0.is_empty()).then_some(self)
    }

    fn fit_sources(&mut self, profile: &TaskProfile) {
        self.images = profile.images.as_ref().map(|images| {
            let usual = ImageFeatures {
                size: images.size.map_or(32, |(width, height)| width.max(height).clamp(8, 32)),
                color: false,
                gradient_cells: 0,
                shifts: false,
            };
            let mut chosen = self.images.unwrap_or(usual);
            chosen.size = chosen.size.clamp(4, 96);
            if chosen.gradient_cells > 0 {
                chosen.gradient_cells = chosen.gradient_cells.clamp(1, chosen.size / 2);
                chosen.size -= chosen.size % chosen.gradient_cells;
            }
            let only_pixels = chosen.gradient_cells == 0 && profile.numeric.is_empty() && profile.dates.is_empty();
            chosen.shifts &= only_pixels && profile.dense_only();
            chosen
        });
        self.series = profile.series.as_ref().map(|_| {
            let mut chosen = self.series.unwrap_or(SeriesFeatures {
                steps: 0,
                quantiles: false,
                correlations: false,
            });
            chosen.steps = chosen.steps.min(100);
            chosen
        });
        self.forecast = profile.forecast.as_ref().map(|forecast| {
            let mut chosen = self.forecast.unwrap_or(ForecastFeatures {
                level: Level::Year,
                lags: 1,
                waves: 2,
                years: 0,
            });
            self.folds = self.folds.min(Forecast::FOLDS);
            chosen.lags = chosen.lags.min(forecast.lags.len() as u32);
            if chosen.level == Level::Year && !forecast.several_years {
                chosen.level = Level::Trend;
            }
            chosen.waves = chosen.waves.min(6);
            chosen.years = chosen.years.min(50);
            let positive = matches!(profile.outcome, Outcome::Values { low, .. } if low > 0.0);
            if !positive {
                chosen.level = Level::None;
            }
            chosen
        });
    }

    fn fit_target(&mut self, profile: &TaskProfile) {
        let level_taken = self.forecast.is_some_and(|forecast| forecast.level != Level::None);
        let allowed = match &profile.outcome {
            Outcome::Values { low, .. } => *low >= 0.0 && !level_taken && profile.metric != Metric::MeanColumnwiseAuc,
            _ => false,
        };
        if !allowed {
            self.target = Target::Identity;
        }
        self.drop_duplicates &= profile.images.is_none() && profile.series.is_none() && profile.forecast.is_none();
    }
}

/// Brings the weights to a sum of about one, in whole hundredths; weights that are already so stay.
fn balance(members: &mut [(String, Member)]) {
    const ROUNDS: usize = 10;
    for _ in 0..ROUNDS {
        let total: f64 = members.iter().map(|(_, member)| member.weight).sum();
        let hundredths = |weight: f64| ((weight * 100.0).round() / 100.0 - weight).abs() < 1e-9 && weight >= 0.02;
        if (total - 1.0).abs() < 0.03 && members.iter().all(|(_, member)| hundredths(member.weight)) {
            return;
        }
        for (_, member) in members.iter_mut() {
            member.weight = ((member.weight / total).clamp(0.02, 1.0) * 100.0).round() / 100.0;
        }
    }
}

/// Whether the target can be a count or amount: never below zero.
pub(crate) fn counts(profile: &TaskProfile) -> bool {
    matches!(profile.outcome, Outcome::Values { low, .. } if low >= 0.0)
}

fn fit_member(mut member: Member, family: Family, profile: &TaskProfile) -> Member {
    let has_numbers = !profile.numeric.is_empty()
        || !profile.dates.is_empty()
        || profile.images.is_some()
        || profile.series.is_some()
        || profile.forecast.is_some();
    let bayes = family == Family::NaiveBayes;
    member.numeric = (has_numbers && !bayes).then(|| fit_numeric(member.numeric, family, profile));
    let has_low = !profile.low.is_empty() || profile.forecast.is_some();
    member.low_cardinality =
        (has_low && !bayes).then(|| fit_categories(member.low_cardinality, family, profile, false));
    member.high_cardinality =
        (!profile.high.is_empty() && !bayes).then(|| fit_categories(member.high_cardinality, family, profile, true));
    member.text = (!profile.text.is_empty()).then(|| fit_text(member.text.take(), family));
    let only_dropped = matches!(member.numeric, None | Some(Numeric::Drop))
        && member.text.is_none()
        && [member.low_cardinality, member.high_cardinality]
            .iter()
            .flatten()
            .all(|encoding| *encoding == Categorical::Drop);
    if only_dropped {
        member.low_cardinality = member.low_cardinality.map(|_| Categorical::Ordinal);
        member.high_cardinality = member.high_cardinality.map(|_| Categorical::Frequency);
    }
    let sparse_text = member.text.as_ref().is_some_and(|text| text.svd.is_none());
    member.reduce = member.reduce.filter(|reduce| match reduce {
        Reduce::Pca(share) => {
            (0.3..1.0).contains(share) && !sparse_text && member.numeric.is_some_and(Numeric::is_scaled)
        }
        Reduce::Select(share) => {
            (0.01..1.0).contains(share)
                && profile.has_one_target()
                && !sparse_text
                && member.numeric != Some(Numeric::Raw)
        }
    });
    member.params = complete(&member.params, family.params(profile.classifies()));
    member
}

fn fit_numeric(chosen: Option<Numeric>, family: Family, profile: &TaskProfile) -> Numeric {
    let wide = profile.numeric.len() > 12 || profile.images.is_some() || profile.series.is_some();
    let usual = if family.wants_scale() {
        Numeric::Standard
    } else {
        Numeric::Median
    };
    match chosen.unwrap_or(usual) {
        Numeric::Drop if profile.dense_only() || profile.forecast.is_some() => usual,
        Numeric::Quadratic if wide => Numeric::Standard,
        Numeric::Spline if profile.images.is_some() || profile.series.is_some() => Numeric::Standard,
        Numeric::Raw if family != Family::HistBoosting => usual,
        Numeric::Median if family.wants_scale() => usual,
        numeric => numeric,
    }
}

fn fit_categories(chosen: Option<Categorical>, family: Family, profile: &TaskProfile, many: bool) -> Categorical {
    let usual = match (many, family.is_tree()) {
        (false, true) => Categorical::Ordinal,
        (false, false) => Categorical::OneHot,
        (true, _) => Categorical::Target,
    };
    match chosen.unwrap_or(usual) {
        Categorical::Ordinal if !family.is_tree() => Categorical::OneHot,
        Categorical::Target if !profile.has_one_target() => {
            if family.is_tree() {
                Categorical::Ordinal
            } else {
                Categorical::OneHot
            }
        }
        encoding => encoding,
    }
}

fn fit_text(chosen: Option<Text>, family: Family) -> Text {
    let mut text = chosen.unwrap_or(Text {
        analyzer: Analyzer::Word,
        words: 2,
        letters: 4,
        min_df: 2,
        max_features: None,
        svd: None,
    });
    text.words = text.words.clamp(1, 3);
    text.letters = text.letters.clamp(2, 6);
    text.min_df = text.min_df.clamp(1, 100);
    if family.is_tree() || family.wants_dense() || matches!(family, Family::Mlp | Family::Svm) {
        text.svd = Some(text.svd.unwrap_or(100).clamp(5, 300));
    }
    if family == Family::NaiveBayes {
        text.svd = None;
    }
    text
}
