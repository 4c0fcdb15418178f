//! Drafts: genomes drawn from what usually works for a task of this kind.

use super::chance::Chance;
use super::cost;
use super::genome::{
    Analyzer, Blend, Categorical, Family, ForecastFeatures, Genome, ImageFeatures, Level, Member, Numeric, Ordered,
    RankingGenome, Reduce, Scalar, Scorer, ScorerKind, SeriesFeatures, TabularGenome, Target, Text, counts, plain,
    plain_int,
};
use super::profile::{Outcome, TaskProfile};
use super::repair;

/// Rows up to which a kernel machine is quick enough.
const KERNEL_ROWS: usize = 6_000;

/// A genome that fits the task and its time.
pub(crate) fn genome(profile: &TaskProfile, chance: &mut Chance) -> Genome {
    genome_apart(&[], profile, chance)
}

/// A genome that fits the task and its time, with the less of a family the more often it was tried.
pub(crate) fn genome_apart(tried: &[Family], profile: &TaskProfile, chance: &mut Chance) -> Genome {
    let drawn = match &profile.outcome {
        Outcome::Ranking(ranking) => Genome::Ranking(ranking_genome(ranking.time.is_some(), chance)),
        _ => Genome::Tabular(tabular(tried, profile, chance)),
    };
    let drawn = drawn.normalised(profile).unwrap_or_else(|| plainest(profile));
    repair::within(drawn, profile, cost::budget(profile))
}

/// The plainest genome for the task: what a debugger falls back to.
pub(crate) fn plainest(profile: &TaskProfile) -> Genome {
    if let Outcome::Ranking(ranking) = &profile.outcome {
        let scorers = Ordered(vec![scorer(ScorerKind::Popular, ranking.time.is_some(), 1.0)]);
        return Genome::Ranking(RankingGenome { scorers });
    }
    let family = match (profile.classifies(), profile.text.is_empty()) {
        (true, _) => Family::Logistic,
        (false, true) => Family::ExtraTrees,
        (false, false) => Family::Ridge,
    };
    let genome = blank(vec![(family.name().to_owned(), member(family, profile))]);
    let fallback = Genome::Tabular(genome.clone());
    genome.normalised(profile).map_or(fallback, Genome::Tabular)
}

/// A genome with these members and nothing else.
pub(crate) fn blank(members: Vec<(String, Member)>) -> TabularGenome {
    TabularGenome {
        seed: 1,
        folds: 5,
        bags: 1,
        drop_duplicates: false,
        half_life: None,
        target: Target::Identity,
        balanced: false,
        shrink: false,
        other_class: false,
        images: None,
        series: None,
        forecast: None,
        blend: Blend::Fixed,
        members: Ordered(members),
    }
}

/// A member with usual settings.
pub(crate) fn member(family: Family, profile: &TaskProfile) -> Member {
    let specs = family.params(profile.classifies());
    Member {
        weight: 1.0,
        numeric: None,
        low_cardinality: None,
        high_cardinality: None,
        text: None,
        reduce: None,
        params: Ordered(
            specs
                .iter()
                .map(|(name, _, usual)| ((*name).to_owned(), usual.scalar()))
                .collect(),
        ),
    }
}

/// How much each family promises for the task.
pub(crate) fn families(profile: &TaskProfile) -> Vec<(Family, f64)> {
    use Family::{
        ElasticNet, ExtraTrees, GradientBoosting, HistBoosting, Knn, LinearDiscriminant, LinearSvm, Logistic, Mlp,
        NaiveBayes, PoissonRegression, RandomForest, Ridge, Svm,
    };
    let measured = profile.images.is_some() || profile.series.is_some();
    let mut weights = if !profile.text.is_empty() {
        vec![
            (Logistic, 3.0),
            (NaiveBayes, 3.0),
            (LinearSvm, 2.0),
            (Ridge, 3.0),
            (HistBoosting, 0.4),
            (Mlp, 0.5),
            (Svm, 0.5),
            (ElasticNet, 0.3),
        ]
    } else if measured {
        vec![
            (Svm, 4.0),
            (Logistic, 1.5),
            (LinearDiscriminant, 1.5),
            (Knn, 1.5),
            (ExtraTrees, 1.5),
            (Mlp, 1.5),
            (Ridge, 1.5),
            (RandomForest, 0.7),
            (HistBoosting, 0.5),
        ]
    } else if profile.forecast.is_some() {
        vec![
            (HistBoosting, 3.0),
            (GradientBoosting, 2.0),
            (Ridge, 2.0),
            (ExtraTrees, 1.5),
            (RandomForest, 0.8),
            (Svm, 1.0),
            (Mlp, 0.7),
            (LinearSvm, 0.7),
        ]
    } else {
        vec![
            (HistBoosting, 3.0),
            (GradientBoosting, 2.0),
            (ExtraTrees, 1.5),
            (RandomForest, 1.0),
            (Ridge, 1.5),
            (ElasticNet, 0.7),
            (Logistic, 2.5),
            (Svm, 1.5),
            (LinearDiscriminant, 0.7),
            (Mlp, 0.8),
            (Knn, 0.4),
            (LinearSvm, if profile.metric.is_absolute() { 0.8 } else { 0.2 }),
            (PoissonRegression, if counts(profile) { 0.5 } else { 0.0 }),
        ]
    };
    let noisy_time = profile.time_order.is_some() && profile.forecast.is_none();
    for (family, weight) in &mut weights {
        let fits = if profile.classifies() {
            family.can_classify()
        } else {
            family.can_regress()
        };
        let slow = *family == Svm && profile.rows > KERNEL_ROWS || *family == Knn && profile.rows > 10 * KERNEL_ROWS;
        let needs_high = *family == PoissonRegression && profile.outputs() > 1 && !profile.has_one_target();
        if !fits || slow {
            *weight = 0.0;
        }
        if noisy_time && family.is_linear() {
            *weight *= 2.0;
        }
        if needs_high {
            *weight *= 0.7;
        }
    }
    weights
}

fn tabular(tried: &[Family], profile: &TaskProfile, chance: &mut Chance) -> TabularGenome {
    const BLENDS: [f64; 3] = [0.6, 0.3, 0.1];
    let size = match chance.unit() {
        unit if unit < BLENDS[0] => 1,
        unit if unit < BLENDS[0] + BLENDS[1] => 2,
        _ => 3,
    };
    let mut weights = families(profile);
    for (family, weight) in &mut weights {
        let times = tried.iter().filter(|other| *other == family).count();
        *weight *= 0.6_f64.powi(times as i32);
    }
    let mut members = Vec::new();
    for _ in 0..size {
        let Some(family) = chance.weighted(&weights) else { break };
        for (other, weight) in &mut weights {
            if *other == family {
                *weight = 0.0;
            } else if other.is_tree() == family.is_tree() {
                *weight *= 0.4;
            }
        }
        members.push((family.name().to_owned(), drawn_member(family, profile, chance)));
    }
    let mut genome = blank(members);
    genome.seed = chance.seed();
    genome.drop_duplicates = profile.repeated_rows && chance.happens(0.8);
    genome.half_life = chance
        .happens(0.6)
        .then(|| half_life(chance))
        .filter(|_| profile.time_order.is_some());
    genome.target = target(profile, chance);
    genome.shrink = chance.happens(0.6);
    genome.balanced = profile.metric.counts_classes() && chance.happens(0.35);
    genome.images = profile
        .images
        .as_ref()
        .map(|images| image_features(images.size, chance));
    genome.series = profile.series.as_ref().map(|_| series_features(chance));
    genome.forecast = profile.forecast.as_ref().map(|_| forecast_features(chance));
    genome.blend = if size > 1 && chance.happens(0.5) {
        Blend::Fitted
    } else {
        Blend::Fixed
    };
    genome
}

/// A half-life as a share of the history.
pub(crate) fn half_life(chance: &mut Chance) -> f64 {
    super::genome::plain((0.05_f64.ln() + chance.unit() * (1.0_f64 / 0.05).ln()).exp())
}

/// A transform of the target.
pub(crate) fn target(profile: &TaskProfile, chance: &mut Chance) -> Target {
    let skewed = matches!(profile.outcome, Outcome::Values { skewed: true, .. });
    let log = match (profile.metric.is_relative(), skewed) {
        (true, _) => 0.95,
        (false, true) => 0.4,
        (false, false) => 0.1,
    };
    if chance.happens(log) {
        Target::Log
    } else if chance.happens(if skewed { 0.4 } else { 0.1 }) {
        Target::Sqrt
    } else {
        Target::Identity
    }
}

/// A member with settings drawn around the usual ones.
pub(crate) fn drawn_member(family: Family, profile: &TaskProfile, chance: &mut Chance) -> Member {
    const REACH: f64 = 0.2;
    let mut drawn = member(family, profile);
    for (name, domain, _) in family.params(profile.classifies()) {
        let Some(value) = drawn.params.get_mut(name) else {
            continue;
        };
        let named = matches!(value, Scalar::Text(_) | Scalar::Ints(_));
        if *name == "loss" {
            *value = Scalar::Text(loss(family, profile, chance).to_owned());
        } else if !named || chance.happens(0.4) {
            *value = chance.near(&steadied(name, value, noise(profile)), *domain, REACH);
        }
    }
    drawn.numeric = Some(numeric(family, profile, chance));
    drawn.low_cardinality = Some(categories(family, false, chance));
    drawn.high_cardinality = Some(categories(family, true, chance));
    drawn.text = (!profile.text.is_empty()).then(|| text(family, chance));
    drawn.reduce = reduce(family, profile, chance);
    drawn
}

/// How much more restraint than usual the task asks for: few rows, or rows of another time than the test rows.
fn noise(profile: &TaskProfile) -> f64 {
    const FEW_ROWS: usize = 1_500;
    let measured = profile.images.is_some() || profile.series.is_some() || !profile.text.is_empty();
    if profile.time_order.is_some() && profile.forecast.is_none() {
        10.0
    } else if profile.rows < FEW_ROWS && !measured {
        3.0
    } else {
        1.0
    }
}

/// A hyperparameter moved to the side of restraint.
fn steadied(param: &str, value: &Scalar, noise: f64) -> Scalar {
    let factor = match param {
        "alpha" | "l2_regularization" => noise,
        "C" => 1.0 / noise,
        "min_samples_leaf" => noise.sqrt(),
        "max_iter" | "max_leaf_nodes" | "learning_rate" => 1.0 / noise.sqrt(),
        "n_neighbors" => noise,
        _ => return value.clone(),
    };
    match value {
        Scalar::Int(number) => Scalar::Int(plain_int(*number as f64 * factor).max(1)),
        Scalar::Float(number) => Scalar::Float(plain(number * factor)),
        other => other.clone(),
    }
}

fn loss(family: Family, profile: &TaskProfile, chance: &mut Chance) -> &'static str {
    if profile.metric.is_absolute() {
        if chance.happens(0.75) {
            "absolute_error"
        } else {
            "squared_error"
        }
    } else if family == Family::HistBoosting && counts(profile) && chance.happens(0.25) {
        "poisson"
    } else if family == Family::GradientBoosting && chance.happens(0.2) {
        "huber"
    } else {
        "squared_error"
    }
}

/// A preparation of the numeric columns.
pub(crate) fn numeric(family: Family, profile: &TaskProfile, chance: &mut Chance) -> Numeric {
    let few = profile.numeric.len() <= 12;
    let droppable = !profile.dense_only() && profile.forecast.is_none();
    if droppable && chance.happens(if noise(profile) > 5.0 { 0.35 } else { 0.04 }) {
        return Numeric::Drop;
    }
    let weights: &[(Numeric, f64)] = if family == Family::HistBoosting {
        &[(Numeric::Raw, 1.0)]
    } else if family.is_tree() {
        &[(Numeric::Median, 1.0)]
    } else if family.is_linear() {
        &[
            (Numeric::Standard, 1.5),
            (Numeric::Power, 1.0),
            (Numeric::Quantile, 0.7),
            (Numeric::Spline, 2.0),
            (Numeric::Quadratic, if few { 1.5 } else { 0.0 }),
        ]
    } else {
        &[
            (Numeric::Standard, 2.0),
            (Numeric::Power, 1.0),
            (Numeric::Quantile, 1.0),
        ]
    };
    chance.weighted(weights).unwrap_or(Numeric::Standard)
}

/// An encoding of categories.
pub(crate) fn categories(family: Family, many: bool, chance: &mut Chance) -> Categorical {
    let weights: &[(Categorical, f64)] = match (family.is_tree(), many) {
        (true, false) => &[
            (Categorical::Ordinal, 2.0),
            (Categorical::Target, 1.0),
            (Categorical::OneHot, 1.0),
        ],
        (true, true) => &[
            (Categorical::Target, 2.0),
            (Categorical::Ordinal, 1.0),
            (Categorical::Frequency, 1.0),
            (Categorical::OneHot, 0.5),
        ],
        (false, false) => &[(Categorical::OneHot, 3.0), (Categorical::Target, 1.0)],
        (false, true) => &[
            (Categorical::OneHot, 2.0),
            (Categorical::Target, 1.5),
            (Categorical::Frequency, 0.15),
            (Categorical::Drop, 0.15),
        ],
    };
    chance.weighted(weights).unwrap_or(Categorical::OneHot)
}

/// Text features.
pub(crate) fn text(family: Family, chance: &mut Chance) -> Text {
    let analyzers = [(Analyzer::Word, 2.0), (Analyzer::CharWb, 1.0), (Analyzer::Both, 1.5)];
    let dense = family.is_tree() || matches!(family, Family::Mlp | Family::Svm);
    Text {
        analyzer: chance.weighted(&analyzers).unwrap_or(Analyzer::Word),
        words: 1 + chance.below(2) as u32,
        letters: 3 + chance.below(3) as u32,
        min_df: 1 + chance.below(4) as u32,
        max_features: None,
        svd: dense.then(|| [50, 100, 150][chance.below(3)]),
    }
}

/// A reduction of all features.
pub(crate) fn reduce(family: Family, profile: &TaskProfile, chance: &mut Chance) -> Option<Reduce> {
    let wide = profile.numeric.len() > 20 || profile.images.is_some() || profile.series.is_some();
    if family.is_tree() || !chance.happens(if wide { 0.3 } else { 0.05 }) {
        return None;
    }
    if chance.happens(0.6) {
        chance.pick(&[0.9, 0.95, 0.98, 0.99]).copied().map(Reduce::Pca)
    } else {
        chance.pick(&[0.3, 0.5, 0.75]).copied().map(Reduce::Select)
    }
}

/// Picture features.
pub(crate) fn image_features(size: Option<(u32, u32)>, chance: &mut Chance) -> ImageFeatures {
    let native = size.map_or(32, |(width, height)| width.max(height));
    let size = if native <= 32 {
        native
    } else {
        [16, 24, 32][chance.below(3)]
    };
    let gradient_cells = if chance.happens(0.4) { (size / 4).clamp(2, 8) } else { 0 };
    ImageFeatures {
        size,
        color: native > 32 && chance.happens(0.4),
        gradient_cells,
        shifts: gradient_cells == 0 && chance.happens(0.4),
    }
}

/// Series features.
pub(crate) fn series_features(chance: &mut Chance) -> SeriesFeatures {
    SeriesFeatures {
        steps: [0, 5, 8, 12][chance.below(4)],
        quantiles: chance.happens(0.5),
        correlations: chance.happens(0.3),
    }
}

/// Forecast features.
pub(crate) fn forecast_features(chance: &mut Chance) -> ForecastFeatures {
    let levels = [(Level::Year, 2.0), (Level::Trend, 1.0), (Level::None, 0.6)];
    ForecastFeatures {
        level: chance.weighted(&levels).unwrap_or(Level::Year),
        lags: chance.below(4) as u32,
        waves: chance.below(5) as u32,
        years: [0, 0, 5, 8, 12][chance.below(5)],
    }
}

fn ranking_genome(timed: bool, chance: &mut Chance) -> RankingGenome {
    let mut kinds = vec![
        (ScorerKind::ItemCosine, 2.0),
        (ScorerKind::NextItem, if timed { 2.0 } else { 0.0 }),
        (ScorerKind::Svd, 1.5),
        (ScorerKind::Ease, 1.5),
        (ScorerKind::Popular, 0.5),
    ];
    let mut scorers = Vec::new();
    for _ in 0..=chance.below(2) {
        let Some(kind) = chance.weighted(&kinds) else { break };
        for (other, weight) in &mut kinds {
            if *other == kind {
                *weight = 0.0;
            }
        }
        scorers.push(drawn_scorer(kind, timed, chance));
    }
    RankingGenome {
        scorers: Ordered(scorers),
    }
}

/// A scorer with parameters drawn around the usual ones.
pub(crate) fn drawn_scorer(kind: ScorerKind, timed: bool, chance: &mut Chance) -> (String, Scorer) {
    let (name, mut drawn) = scorer(kind, timed, super::genome::plain(0.2 + 0.8 * chance.unit()));
    for (param, domain, _) in kind.params(timed) {
        if let Some(value) = drawn.params.get_mut(param) {
            *value = chance.near(&value.clone(), *domain, 0.3);
        }
    }
    (name, drawn)
}

fn scorer(kind: ScorerKind, timed: bool, weight: f64) -> (String, Scorer) {
    let params = kind
        .params(timed)
        .iter()
        .map(|(name, _, usual)| ((*name).to_owned(), usual.scalar()))
        .collect();
    (
        kind.name().to_owned(),
        Scorer {
            weight,
            params: Ordered(params),
        },
    )
}
