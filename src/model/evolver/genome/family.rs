//! The estimators of the grammar and their hyperparameters.

use serde::{Deserialize, Serialize};

use super::scalar::{Domain, Scalar};

/// An estimator family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Family {
    Ridge,
    ElasticNet,
    PoissonRegression,
    Logistic,
    LinearSvm,
    Svm,
    Knn,
    NaiveBayes,
    LinearDiscriminant,
    RandomForest,
    ExtraTrees,
    HistBoosting,
    GradientBoosting,
    Mlp,
}

use Domain::{Layers, Linear, Log, LogInt, Names, Numbers};

/// Name, domain and usual value of a hyperparameter.
type Spec = (&'static str, Domain, Usual);

/// Usual value of a hyperparameter: where a search starts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Usual {
    /// Whole number.
    Int(i64),
    /// Number.
    Float(f64),
    /// Name.
    Name(&'static str),
    /// Layer widths.
    Layers(&'static [i64]),
}

impl Usual {
    /// The value.
    pub(crate) fn scalar(self) -> Scalar {
        match self {
            Self::Int(value) => Scalar::Int(value),
            Self::Float(value) => Scalar::Float(value),
            Self::Name(name) => Scalar::Text(name.to_owned()),
            Self::Layers(widths) => Scalar::Ints(widths.to_vec()),
        }
    }
}

const FOREST: &[Spec] = &[
    ("n_estimators", LogInt(60, 400), Usual::Int(150)),
    ("min_samples_leaf", LogInt(1, 40), Usual::Int(3)),
    ("max_features", Numbers(&[0.2, 0.33, 0.5, 0.7, 1.0]), Usual::Float(0.5)),
];
const BOOSTING: &[Spec] = &[
    ("max_iter", LogInt(30, 600), Usual::Int(150)),
    ("learning_rate", Log(0.01, 0.3), Usual::Float(0.06)),
    ("max_leaf_nodes", LogInt(3, 63), Usual::Int(12)),
    ("min_samples_leaf", LogInt(4, 100), Usual::Int(20)),
    ("l2_regularization", Log(0.01, 100.0), Usual::Float(1.0)),
    ("max_features", Numbers(&[0.2, 0.35, 0.5, 0.75, 1.0]), Usual::Float(0.5)),
];
const BOOSTED_REGRESSION: &[Spec] = &[
    BOOSTING[0],
    BOOSTING[1],
    BOOSTING[2],
    BOOSTING[3],
    BOOSTING[4],
    BOOSTING[5],
    (
        "loss",
        Names(&["squared_error", "absolute_error", "poisson"]),
        Usual::Name("squared_error"),
    ),
];
const GRADIENT: &[Spec] = &[
    ("n_estimators", LogInt(40, 500), Usual::Int(150)),
    ("learning_rate", Log(0.01, 0.3), Usual::Float(0.06)),
    ("max_depth", LogInt(1, 7), Usual::Int(4)),
    ("min_samples_leaf", LogInt(1, 50), Usual::Int(8)),
    ("subsample", Numbers(&[0.5, 0.7, 0.85, 1.0]), Usual::Float(0.7)),
    ("max_features", Numbers(&[0.1, 0.2, 0.35, 0.5, 1.0]), Usual::Float(0.35)),
];
const GRADIENT_REGRESSION: &[Spec] = &[
    GRADIENT[0],
    GRADIENT[1],
    GRADIENT[2],
    GRADIENT[3],
    GRADIENT[4],
    GRADIENT[5],
    (
        "loss",
        Names(&["squared_error", "absolute_error", "huber"]),
        Usual::Name("squared_error"),
    ),
];
const NETWORK: &[Spec] = &[
    (
        "hidden_layer_sizes",
        Layers(&[&[32], &[64], &[128], &[32, 16], &[64, 32], &[128, 64]]),
        Usual::Layers(&[64]),
    ),
    ("alpha", Log(1e-5, 3.0), Usual::Float(0.01)),
    ("learning_rate_init", Log(0.0003, 0.02), Usual::Float(0.003)),
    ("max_iter", LogInt(15, 300), Usual::Int(80)),
];
const NEIGHBOURS: &[Spec] = &[
    ("n_neighbors", LogInt(1, 80), Usual::Int(12)),
    ("weights", Names(&["uniform", "distance"]), Usual::Name("distance")),
    ("p", Numbers(&[1.0, 2.0]), Usual::Float(2.0)),
];

impl Family {
    /// Every family.
    pub(crate) const ALL: [Self; 14] = [
        Self::Ridge,
        Self::ElasticNet,
        Self::PoissonRegression,
        Self::Logistic,
        Self::LinearSvm,
        Self::Svm,
        Self::Knn,
        Self::NaiveBayes,
        Self::LinearDiscriminant,
        Self::RandomForest,
        Self::ExtraTrees,
        Self::HistBoosting,
        Self::GradientBoosting,
        Self::Mlp,
    ];

    /// Name in programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ridge => "ridge",
            Self::ElasticNet => "elastic_net",
            Self::PoissonRegression => "poisson_regression",
            Self::Logistic => "logistic",
            Self::LinearSvm => "linear_svm",
            Self::Svm => "svm",
            Self::Knn => "knn",
            Self::NaiveBayes => "naive_bayes",
            Self::LinearDiscriminant => "linear_discriminant",
            Self::RandomForest => "random_forest",
            Self::ExtraTrees => "extra_trees",
            Self::HistBoosting => "hist_boosting",
            Self::GradientBoosting => "gradient_boosting",
            Self::Mlp => "mlp",
        }
    }

    /// Name in sentences.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Ridge => "ridge regression",
            Self::ElasticNet => "elastic net",
            Self::PoissonRegression => "Poisson regression",
            Self::Logistic => "logistic regression",
            Self::LinearSvm => "a linear support vector machine",
            Self::Svm => "a support vector machine with a radial kernel",
            Self::Knn => "nearest neighbours",
            Self::NaiveBayes => "naive Bayes",
            Self::LinearDiscriminant => "linear discriminant analysis",
            Self::RandomForest => "a random forest",
            Self::ExtraTrees => "extremely randomised trees",
            Self::HistBoosting => "histogram gradient boosting",
            Self::GradientBoosting => "gradient boosting",
            Self::Mlp => "a small neural network",
        }
    }

    /// The family a name in a program stands for: `ridge`, or `ridge_2` for a second one.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let base = match name.rsplit_once('_') {
            Some((base, number)) if number.chars().all(|c| c.is_ascii_digit()) => base,
            _ => name,
        };
        Self::ALL.into_iter().find(|family| family.name() == base)
    }

    /// Hyperparameters, under the names scikit-learn gives them; only the width of a radial kernel is given relative to the
    /// number of columns, where it does not depend on the task.
    pub(crate) fn params(self, classifies: bool) -> &'static [Spec] {
        match self {
            Self::Ridge => &[("alpha", Log(0.01, 10_000.0), Usual::Float(10.0))],
            Self::ElasticNet => &[
                ("alpha", Log(0.0001, 3.0), Usual::Float(0.003)),
                ("l1_ratio", Numbers(&[0.05, 0.2, 0.5, 0.8, 1.0]), Usual::Float(0.5)),
            ],
            Self::PoissonRegression => &[("alpha", Log(0.0001, 30.0), Usual::Float(0.1))],
            Self::Logistic => &[("C", Log(0.0003, 100.0), Usual::Float(0.3))],
            Self::LinearSvm => &[("C", Log(0.0003, 30.0), Usual::Float(0.1))],
            Self::Svm => &[
                ("C", Log(0.05, 100.0), Usual::Float(2.0)),
                ("relative_gamma", Log(0.05, 10.0), Usual::Float(1.0)),
            ],
            Self::Knn => NEIGHBOURS,
            Self::NaiveBayes => &[("alpha", Log(0.01, 10.0), Usual::Float(0.5))],
            Self::LinearDiscriminant => &[("shrinkage", Linear(0.0, 1.0), Usual::Float(0.1))],
            Self::RandomForest | Self::ExtraTrees => FOREST,
            Self::HistBoosting if classifies => BOOSTING,
            Self::HistBoosting => BOOSTED_REGRESSION,
            Self::GradientBoosting if classifies => GRADIENT,
            Self::GradientBoosting => GRADIENT_REGRESSION,
            Self::Mlp => NETWORK,
        }
    }

    /// Whether the family can predict classes.
    pub(crate) fn can_classify(self) -> bool {
        !matches!(self, Self::Ridge | Self::ElasticNet | Self::PoissonRegression)
    }

    /// Whether the family can predict numbers.
    pub(crate) fn can_regress(self) -> bool {
        !matches!(self, Self::Logistic | Self::NaiveBayes | Self::LinearDiscriminant)
    }

    /// Whether the family wants features of one scale.
    pub(crate) fn wants_scale(self) -> bool {
        !self.is_tree()
    }

    /// Whether the family is made of decision trees.
    pub(crate) fn is_tree(self) -> bool {
        matches!(
            self,
            Self::RandomForest | Self::ExtraTrees | Self::HistBoosting | Self::GradientBoosting
        )
    }

    /// Whether the family is linear in its features.
    pub(crate) fn is_linear(self) -> bool {
        matches!(
            self,
            Self::Ridge
                | Self::ElasticNet
                | Self::PoissonRegression
                | Self::Logistic
                | Self::LinearSvm
                | Self::LinearDiscriminant
        )
    }

    /// Whether the family takes only dense features.
    pub(crate) fn wants_dense(self) -> bool {
        matches!(self, Self::HistBoosting | Self::LinearDiscriminant)
    }

    /// Whether `fit` takes a weight for each row.
    pub(crate) fn weighs_rows(self) -> bool {
        !matches!(self, Self::Knn | Self::LinearDiscriminant | Self::Mlp)
    }

    /// Whether the fit depends on a seed.
    pub(crate) fn is_seeded(self) -> bool {
        self.is_tree() || matches!(self, Self::Mlp)
    }

    /// Whether one fit predicts several targets.
    pub(crate) fn predicts_many(self) -> bool {
        matches!(
            self,
            Self::Ridge | Self::Knn | Self::RandomForest | Self::ExtraTrees | Self::Mlp
        )
    }
}
