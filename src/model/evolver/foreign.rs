//! Programs that are not ours: read the estimators and preparations off the text and start near them.

use std::sync::LazyLock;

use regex::Regex;

use super::draw;
use super::genome::{Categorical, Family, Genome, Member, Numeric, Scalar, Target};
use super::literal::Literal;
use super::profile::TaskProfile;

/// Names that stand for a family, the more special first.
const CLASSES: &[(&str, Family)] = &[
    ("HistGradientBoosting(?:Regressor|Classifier)", Family::HistBoosting),
    ("(?:LGBM|XGB|CatBoost)(?:Regressor|Classifier)?", Family::HistBoosting),
    ("GradientBoosting(?:Regressor|Classifier)", Family::GradientBoosting),
    ("ExtraTrees(?:Regressor|Classifier)", Family::ExtraTrees),
    ("RandomForest(?:Regressor|Classifier)", Family::RandomForest),
    ("LogisticRegression(?:CV)?", Family::Logistic),
    ("Ridge(?:CV)?", Family::Ridge),
    ("LinearRegression", Family::Ridge),
    ("(?:ElasticNet|Lasso)(?:CV)?", Family::ElasticNet),
    ("PoissonRegressor", Family::PoissonRegression),
    ("LinearSV[CR]", Family::LinearSvm),
    ("SV[CR]", Family::Svm),
    ("KNeighbors(?:Regressor|Classifier)", Family::Knn),
    ("(?:Multinomial|Complement|Bernoulli)NB", Family::NaiveBayes),
    ("LinearDiscriminantAnalysis", Family::LinearDiscriminant),
    ("MLP(?:Regressor|Classifier)", Family::Mlp),
    ("nn\\.Module|keras\\.Sequential|torch\\.nn", Family::Mlp),
];

static ESTIMATORS: LazyLock<Vec<(Regex, Family)>> = LazyLock::new(|| {
    CLASSES
        .iter()
        .filter_map(|(pattern, family)| Some((Regex::new(&format!(r"\b(?:{pattern})\s*(\(|\b)")).ok()?, *family)))
        .collect()
});

static ARGUMENT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b([A-Za-z_]\w*)\s*=\s*").ok());

/// The nearest genome to a program, or `None` when it shows no estimator of the grammar.
pub(crate) fn read(code: &str, profile: &TaskProfile) -> Option<Genome> {
    let used: String = code
        .lines()
        .filter(|line| {
            let line = line.trim_start();
            !line.starts_with("import ") && !line.starts_with("from ") && !line.starts_with('#')
        })
        .collect::<Vec<_>>()
        .join("\n");
    let mut members = members(&used, profile);
    if members.is_empty() {
        // An estimator imported under another name shows only there.
        members = self::members(code, profile);
    }
    if members.is_empty() {
        return None;
    }
    let mut genome = draw::blank(members);
    if used.contains("log1p") {
        genome.target = Target::Log;
    }
    genome.drop_duplicates = used.contains("drop_duplicates");
    Genome::Tabular(genome).normalised(profile)
}

/// A member for each of the first few estimators that a text names.
fn members(text: &str, profile: &TaskProfile) -> Vec<(String, Member)> {
    const MOST: usize = 3;
    let mut members: Vec<(String, Member)> = Vec::new();
    for (pattern, family) in ESTIMATORS.iter() {
        let Some(found) = pattern.find(text) else { continue };
        if members.len() == MOST || members.iter().any(|(name, _)| name == family.name()) {
            continue;
        }
        let mut member = draw::member(*family, profile);
        arguments(&text[found.end()..], *family, profile, &mut member);
        prepare(text, &mut member);
        members.push((family.name().to_owned(), member));
    }
    members
}

/// Takes over literal keyword arguments of a call, under scikit-learn's names.
fn arguments(after: &str, family: Family, profile: &TaskProfile, member: &mut Member) {
    let end = closing(after);
    let Some(argument) = ARGUMENT.as_ref() else { return };
    for found in argument.captures_iter(&after[..end]) {
        let Some(whole) = found.get(0) else { continue };
        let name = match (&found[1], family) {
            ("n_estimators" | "iterations", Family::HistBoosting) => "max_iter",
            ("num_leaves", Family::HistBoosting) => "max_leaf_nodes",
            ("reg_lambda", Family::HistBoosting) => "l2_regularization",
            (name, _) => name,
        };
        let Some((_, domain, _)) = family
            .params(profile.classifies())
            .iter()
            .find(|(known, ..)| *known == name)
        else {
            continue;
        };
        let Some(literal) = Literal::parse(&after[whole.end()..]) else {
            continue;
        };
        let Ok(value) = serde_json::from_str::<Scalar>(&literal.json()) else {
            continue;
        };
        let value = match value {
            Scalar::Int(number) if !domain.admits(&value) => Scalar::Float(number as f64),
            value => value,
        };
        if let (true, Some(param)) = (domain.admits(&value), member.params.get_mut(name)) {
            *param = value;
        }
    }
}

/// Length of the text up to the parenthesis that closes a call.
fn closing(after: &str) -> usize {
    let mut depth = 1_usize;
    for (at, c) in after.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    after.len()
}

fn prepare(code: &str, member: &mut Member) {
    member.numeric = [
        ("PolynomialFeatures", Numeric::Quadratic),
        ("SplineTransformer", Numeric::Spline),
        ("QuantileTransformer", Numeric::Quantile),
        ("PowerTransformer", Numeric::Power),
    ]
    .into_iter()
    .find(|(name, _)| code.contains(name))
    .map(|(_, numeric)| numeric);
    let encoding = [
        ("TargetEncoder", Categorical::Target),
        ("OneHotEncoder", Categorical::OneHot),
        ("get_dummies", Categorical::OneHot),
        ("OrdinalEncoder", Categorical::Ordinal),
    ]
    .into_iter()
    .find(|(name, _)| code.contains(name))
    .map(|(_, encoding)| encoding);
    member.low_cardinality = encoding;
    member.high_cardinality = encoding;
}
