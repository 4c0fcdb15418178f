//! A rough estimate of how long a program runs on one core, to keep programs within the time a search can spend on each.

use super::genome::{
    Analyzer, Categorical, Family, Genome, Level, Member, Numeric, RankingGenome, ScorerKind, TabularGenome,
};
use super::profile::{Series, TaskProfile};

/// Seconds a program starts with: the imports.
pub(crate) const START: f64 = 2.0;
/// Longest a program should usually run.
const USUAL: f64 = 12.0;
/// Share of the time limit a program may take by the estimate, which may be wrong by a factor.
const SHARE_OF_LIMIT: f64 = 0.15;

/// Seconds a program of this task may take by the estimate.
pub(crate) fn budget(profile: &TaskProfile) -> f64 {
    (profile.time_limit_seconds as f64 * SHARE_OF_LIMIT).clamp(START + 1.0, USUAL)
}

/// Estimated seconds of the program of a genome.
pub(crate) fn seconds(genome: &Genome, profile: &TaskProfile) -> f64 {
    match genome {
        Genome::Tabular(tabular) => tabular_seconds(tabular, profile),
        Genome::Ranking(ranking) => ranking_seconds(ranking, profile),
    }
}

fn tabular_seconds(genome: &TabularGenome, profile: &TaskProfile) -> f64 {
    let (folds, share) = match genome.folds {
        1 => (1.0, 0.8),
        folds => (f64::from(folds), 1.0 - 1.0 / f64::from(folds)),
    };
    let shifts = if genome.images.is_some_and(|images| images.shifts) {
        5.0
    } else {
        1.0
    };
    let rows = profile.rows as f64 * shifts;
    let reading = profile
        .images
        .as_ref()
        .map_or(0.0, |_| 3e-4 * (profile.rows + profile.test_rows) as f64)
        + profile
            .series
            .as_ref()
            .map_or(0.0, |_| 2e-4 * (profile.rows + profile.test_rows) as f64);
    let fits: f64 = genome
        .families()
        .map(|(family, member)| {
            let bags = f64::from(genome.bags);
            let one = |rows: f64| fit_seconds(family, member, genome, profile, rows);
            bags * (folds * one(rows * share) + one(rows))
        })
        .sum();
    START + reading + fits
}

/// Number of features of a member after encoding.
fn width(member: &Member, genome: &TabularGenome, profile: &TaskProfile) -> (f64, f64) {
    let mut numbers = profile.numeric.len() as f64 + 4.0 * profile.dates.len() as f64;
    if let Some(images) = &genome.images {
        let channels = if images.color { 3.0 } else { 1.0 };
        numbers += channels * f64::from(images.size).powi(2) + 8.0 * f64::from(images.gradient_cells).powi(2);
    }
    if let (Some(chosen), Some(series)) = (&genome.series, &profile.series) {
        let channels = match series {
            Series::Tables { channels, .. } => channels.len() as f64,
            Series::Arrays { .. } => 3.0,
        };
        numbers += channels * (7.0 + f64::from(chosen.steps) + if chosen.quantiles { 5.0 } else { 0.0 });
        numbers += if chosen.correlations {
            channels * channels / 2.0
        } else {
            0.0
        };
    }
    if let Some(forecast) = &genome.forecast {
        numbers += 8.0 + f64::from(forecast.lags + 2 * forecast.waves);
    }
    numbers *= match member.numeric {
        Some(Numeric::Spline) => 7.0,
        Some(Numeric::Quadratic) => numbers / 2.0 + 1.5,
        Some(Numeric::Drop) => 0.0,
        _ => 1.0,
    };
    let encoded = |encoding: Option<Categorical>, columns: usize, values: f64| match encoding {
        Some(Categorical::OneHot) => columns as f64 * values,
        Some(Categorical::Drop) | None => 0.0,
        Some(_) => columns as f64,
    };
    let low = profile.low.len() + if genome.forecast.is_some() { 2 } else { 0 };
    let dense = numbers
        + encoded(member.low_cardinality, low, 5.0)
        + encoded(member.high_cardinality, profile.high.len(), 30.0)
        + member
            .text
            .as_ref()
            .and_then(|text| text.svd)
            .map_or(0.0, |svd| f64::from(svd) * profile.text.len() as f64);
    let sparse = match &member.text {
        Some(text) if text.svd.is_none() => {
            profile.text_length * if text.analyzer == Analyzer::Word { 0.35 } else { 2.5 }
        }
        _ => 0.0,
    };
    (dense.max(1.0), sparse)
}

/// Seconds of one fit and one prediction on `rows` rows.
fn fit_seconds(family: Family, member: &Member, genome: &TabularGenome, profile: &TaskProfile, rows: f64) -> f64 {
    let (dense, sparse) = width(member, genome, profile);
    let features = dense + sparse;
    let param = |name: &str| member.params.get(name).map_or(1.0, super::genome::Scalar::number);
    let classes = if profile.classifies() && profile.outputs() > 2 {
        profile.outputs() as f64
    } else {
        1.0
    };
    let targets = if profile.has_one_target() {
        1.0
    } else {
        profile.outputs() as f64
    };
    let depth = (rows / param("min_samples_leaf").max(1.0)).max(2.0).log2();
    let model = match family {
        Family::Ridge => 1e-9 * rows * features * dense.min(500.0) + 1e-8 * rows * sparse * 20.0,
        Family::ElasticNet => targets * 4e-8 * rows * features * 5.0,
        Family::PoissonRegression => targets * 1.5e-8 * rows * features * 20.0,
        Family::Logistic => 1e-9 * rows * features * 150.0 * classes,
        Family::LinearSvm => 4e-9 * rows * features * 200.0 * classes * targets,
        Family::Svm => {
            targets * 1.2e-9 * rows * rows * features.max(10.0) * if profile.classifies() { 2.5 } else { 1.5 }
        }
        Family::Knn => 4e-10 * rows * rows * 0.3 * features,
        Family::NaiveBayes => 1e-8 * rows * features,
        Family::LinearDiscriminant => 2e-9 * rows * features * features,
        Family::RandomForest => {
            param("n_estimators") * (1.5e-8 * rows * param("max_features") * features * depth + 1.5e-3)
        }
        Family::ExtraTrees => param("n_estimators") * (6e-9 * rows * param("max_features") * features * depth + 1.5e-3),
        Family::HistBoosting => {
            let leaves = param("max_leaf_nodes");
            let each = 2.5e-9 * rows * features * leaves.log2() + 1.2e-6 * leaves * features + 6e-4;
            targets * classes * param("max_iter") * each
        }
        Family::GradientBoosting => {
            let each = 2e-8 * rows * param("subsample") * param("max_features") * features * param("max_depth") + 6e-4;
            targets * classes * param("n_estimators") * each
        }
        Family::Mlp => param("max_iter") * rows * (4e-9 * features * param("hidden_layer_sizes") + 2e-6),
    };
    let text = match &member.text {
        Some(text) => {
            let letters = profile.text_length * rows;
            let cutting = match text.analyzer {
                Analyzer::Word => 6e-8 * f64::from(text.words),
                Analyzer::CharWb => 1.5e-7 * f64::from(text.letters),
                Analyzer::Both => 6e-8 * f64::from(text.words) + 1.5e-7 * f64::from(text.letters),
            };
            letters * cutting
                + text.svd.map_or(0.0, |svd| {
                    2e-7 * rows * f64::from(svd) * profile.text_length.min(300.0) / 10.0
                })
        }
        None => 0.0,
    };
    let preparing = match member.numeric {
        Some(Numeric::Power) => 1.5e-6 * rows * dense,
        Some(Numeric::Quantile | Numeric::Spline) => 4e-7 * rows * dense,
        _ => 5e-8 * rows * dense,
    };
    let level = if genome.forecast.is_some_and(|forecast| forecast.level != Level::None) {
        0.01
    } else {
        0.0
    };
    model + text + preparing + level + 0.02
}

fn ranking_seconds(genome: &RankingGenome, profile: &TaskProfile) -> f64 {
    let rows = profile.rows as f64;
    let users = profile.test_rows as f64;
    let scorers: f64 = genome
        .scorers
        .0
        .iter()
        .map(|(name, scorer)| {
            let param = |name: &str| scorer.params.get(name).map_or(1.0, super::genome::Scalar::number);
            match ScorerKind::from_name(name) {
                Some(ScorerKind::ItemCosine) => 2e-8 * users * rows,
                Some(ScorerKind::NextItem) => 3e-7 * rows * param("window").powi(2) + 5e-9 * users * rows,
                Some(ScorerKind::Svd) => 4e-7 * rows * param("rank"),
                Some(ScorerKind::Ease) => 5e-10 * param("items").powi(3),
                Some(ScorerKind::Popular) | None => 0.05,
            }
        })
        .sum();
    START + 2.0 * scorers
}
