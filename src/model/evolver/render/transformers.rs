//! The features of one member: a column transformer, or plain steps when all columns are numbers.

use super::script::Script;
use crate::model::evolver::genome::{Analyzer, Categorical, Family, Member, Numeric, Reduce, Text};
use crate::model::evolver::literal::quote;
use crate::model::evolver::profile::{Outcome, TaskProfile};

/// The steps before the model, each as `("name", expression)`, and lines that must stand before them.
pub(crate) fn steps(
    script: &mut Script,
    member: &Member,
    family: Family,
    name: &str,
    profile: &TaskProfile,
) -> (Vec<String>, Vec<(String, String)>) {
    let mut lines = Vec::new();
    let mut steps = Vec::new();
    let numeric = member
        .numeric
        .map(|numeric| numeric_steps(script, numeric, profile))
        .unwrap_or_default();
    if profile.dense_only() {
        for (step, expression) in numeric {
            steps.push((step.to_owned(), expression));
        }
    } else {
        script.from("sklearn.compose", "ColumnTransformer");
        let mut parts = Vec::new();
        if member.numeric.is_some_and(|numeric| numeric != Numeric::Drop) {
            parts.push(format!(
                "(\"numeric\", {}, {})",
                chain(script, numeric),
                numeric_columns(profile)
            ));
        }
        let sources = [
            (member.low_cardinality, "low_cardinality", low_columns(profile), false),
            (member.high_cardinality, "high_cardinality", "HIGH_CARDINALITY", true),
        ];
        for (encoding, part, columns, many) in sources {
            if let Some(encoder) = encoding.and_then(|encoding| encoder(script, encoding, family, many, profile)) {
                parts.push(format!("(\"{part}\", {encoder}, {columns})"));
            }
        }
        if let Some(text) = &member.text {
            parts.extend(text_parts(script, text, name, profile));
        }
        lines.push("    columns = ColumnTransformer(\n        [".to_owned());
        lines.extend(parts.iter().map(|part| format!("            {part},")));
        let dense = family.wants_dense() || matches!(member.reduce, Some(Reduce::Pca(_)));
        lines.push(
            if dense {
                "        ],\n        sparse_threshold=0,\n    )"
            } else {
                "        ]\n    )"
            }
            .to_owned(),
        );
        steps.push(("columns".to_owned(), "columns".to_owned()));
    }
    match member.reduce {
        Some(Reduce::Pca(_)) => {
            script.from("sklearn.decomposition", "PCA");
            let share = format!("MEMBERS[{}][\"reduce\"][\"pca\"]", quote(name));
            steps.push((
                "reduce".to_owned(),
                format!("PCA(n_components={share}, random_state=seed)"),
            ));
        }
        Some(Reduce::Select(_)) => {
            script.from("sklearn.feature_selection", "SelectPercentile");
            let score = script.from(
                "sklearn.feature_selection",
                if profile.classifies() {
                    "f_classif"
                } else {
                    "f_regression"
                },
            );
            let share = format!("100 * MEMBERS[{}][\"reduce\"][\"select\"]", quote(name));
            steps.push((
                "reduce".to_owned(),
                format!("SelectPercentile({score}, percentile={share})"),
            ));
        }
        None => {}
    }
    (lines, steps)
}

fn numeric_columns(profile: &TaskProfile) -> &'static str {
    let added =
        !profile.dates.is_empty() || profile.forecast.is_some() || profile.images.is_some() || profile.series.is_some();
    if added { "NUMBERS" } else { "NUMERIC" }
}

fn low_columns(profile: &TaskProfile) -> &'static str {
    if profile.forecast.is_some() {
        "CALENDAR"
    } else {
        "LOW_CARDINALITY"
    }
}

fn chain(script: &mut Script, mut steps: Vec<(&'static str, String)>) -> String {
    match steps.len() {
        0 => "\"passthrough\"".to_owned(),
        1 => steps.remove(0).1,
        _ => {
            script.from("sklearn.pipeline", "make_pipeline");
            let steps: Vec<_> = steps.into_iter().map(|(_, expression)| expression).collect();
            format!("make_pipeline({})", steps.join(", "))
        }
    }
}

fn numeric_steps(script: &mut Script, numeric: Numeric, profile: &TaskProfile) -> Vec<(&'static str, String)> {
    let mut steps = Vec::new();
    let gaps = profile.missing || profile.forecast.is_some();
    if gaps && numeric != Numeric::Raw {
        script.from("sklearn.impute", "SimpleImputer");
        let indicator = if profile.forecast.is_some() {
            ", keep_empty_features=True"
        } else {
            ", add_indicator=True"
        };
        steps.push(("impute", format!("SimpleImputer(strategy=\"median\"{indicator})")));
    }
    let mut add = |step, module, class, arguments: &str| {
        script.from(module, class);
        steps.push((step, format!("{class}({arguments})")));
    };
    const PREPROCESSING: &str = "sklearn.preprocessing";
    match numeric {
        Numeric::Raw | Numeric::Median | Numeric::Drop => {}
        Numeric::Standard => add("scale", PREPROCESSING, "StandardScaler", ""),
        Numeric::Power => add("scale", PREPROCESSING, "PowerTransformer", ""),
        Numeric::Quantile => add(
            "scale",
            PREPROCESSING,
            "QuantileTransformer",
            "n_quantiles=100, output_distribution=\"normal\", random_state=seed",
        ),
        Numeric::Spline => {
            add(
                "ranks",
                PREPROCESSING,
                "QuantileTransformer",
                "n_quantiles=100, random_state=seed",
            );
            add(
                "splines",
                PREPROCESSING,
                "SplineTransformer",
                "n_knots=5, include_bias=False",
            );
        }
        Numeric::Quadratic => {
            add("scale", PREPROCESSING, "StandardScaler", "");
            add(
                "products",
                PREPROCESSING,
                "PolynomialFeatures",
                "degree=2, include_bias=False",
            );
        }
    }
    steps
}

fn encoder(
    script: &mut Script,
    encoding: Categorical,
    family: Family,
    many: bool,
    profile: &TaskProfile,
) -> Option<String> {
    const PREPROCESSING: &str = "sklearn.preprocessing";
    let scaled = |script: &mut Script, encoder: String| {
        if family.wants_scale() {
            script.from("sklearn.pipeline", "make_pipeline");
            script.from(PREPROCESSING, "StandardScaler");
            format!("make_pipeline({encoder}, StandardScaler())")
        } else {
            encoder
        }
    };
    match encoding {
        Categorical::OneHot => {
            script.from(PREPROCESSING, "OneHotEncoder");
            let frequency = if many { 10 } else { 5 };
            let dense = if family.wants_dense() {
                ", sparse_output=False"
            } else {
                ""
            };
            Some(format!(
                "OneHotEncoder(min_frequency={frequency}, handle_unknown=\"infrequent_if_exist\"{dense})"
            ))
        }
        Categorical::Ordinal => {
            script.from(PREPROCESSING, "OrdinalEncoder");
            Some("OrdinalEncoder(handle_unknown=\"use_encoded_value\", unknown_value=-1)".to_owned())
        }
        Categorical::Target => {
            script.from(PREPROCESSING, "TargetEncoder");
            script.from("sklearn.model_selection", "KFold");
            let kind = match &profile.outcome {
                Outcome::Label { classes, .. } if classes.len() > 2 => "multiclass",
                Outcome::Classes { columns, .. } if columns.len() > 2 => "multiclass",
                _ if profile.classifies() => "binary",
                _ => "continuous",
            };
            let encoder =
                format!("TargetEncoder(target_type=\"{kind}\", cv=KFold(5, shuffle=True, random_state=seed))");
            Some(scaled(script, encoder))
        }
        Categorical::Frequency => Some(scaled(script, "FrequencyEncoder()".to_owned())),
        Categorical::Drop => None,
    }
}

/// The class that `Categorical::Frequency` needs.
pub(crate) fn frequency_encoder(script: &mut Script) {
    script.from("sklearn.base", "BaseEstimator");
    script.from("sklearn.base", "TransformerMixin");
    script.function(
        r#"class FrequencyEncoder(TransformerMixin, BaseEstimator):
    """Replaces each category by its share of the fitted rows."""

    def fit(self, table, y=None):
        self.shares_ = {column: table[column].value_counts(normalize=True) for column in table}
        return self

    def transform(self, table):
        return np.column_stack([table[column].map(shares).fillna(0.0) for column, shares in self.shares_.items()])"#,
    );
}

fn text_parts(script: &mut Script, text: &Text, name: &str, profile: &TaskProfile) -> Vec<String> {
    script.from("sklearn.feature_extraction.text", "TfidfVectorizer");
    let setting = |key: &str| format!("MEMBERS[{}][\"text\"][\"{key}\"]", quote(name));
    let limit = text
        .max_features
        .map(|_| format!(", max_features={}", setting("max_features")))
        .unwrap_or_default();
    let common = format!("min_df={}, sublinear_tf=True{limit}", setting("min_df"));
    let words = format!("TfidfVectorizer(ngram_range=(1, {}), {common})", setting("words"));
    let letters = format!(
        "TfidfVectorizer(analyzer=\"char_wb\", ngram_range=(2, {}), {common})",
        setting("letters")
    );
    let kinds = match text.analyzer {
        Analyzer::Word => vec![("words", words)],
        Analyzer::CharWb => vec![("letters", letters)],
        Analyzer::Both => vec![("words", words), ("letters", letters)],
    };
    let mut parts = Vec::new();
    for (at, _) in profile.text.iter().enumerate() {
        for (kind, vectorizer) in &kinds {
            let label = if profile.text.len() > 1 {
                format!("{kind}_{at}")
            } else {
                (*kind).to_owned()
            };
            let expression = if text.svd.is_some() {
                script.from("sklearn.pipeline", "make_pipeline");
                script.from("sklearn.decomposition", "TruncatedSVD");
                format!(
                    "make_pipeline({vectorizer}, TruncatedSVD({}, random_state=seed))",
                    setting("svd")
                )
            } else {
                vectorizer.clone()
            };
            parts.push(format!("(\"{label}\", {expression}, TEXT[{at}])"));
        }
    }
    parts
}
