//! The metrics the evolver knows: how to recognise one and how a program computes it.

use std::sync::LazyLock;

use regex::Regex;

use super::profile::Outcome;

/// A metric that programs compute on their own held-out rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metric {
    Rmse,
    Mae,
    Rmsle,
    R2,
    Smape,
    Mape,
    Wape,
    Qwk,
    Accuracy,
    BalancedAccuracy,
    MacroF1,
    F1,
    Mcc,
    Auc,
    AveragePrecision,
    LogLoss,
    Brier,
    MeanColumnwiseRmse,
    MeanColumnwiseAuc,
    MapAtK,
    ConcordanceIndex,
}

/// Words that name a metric, the more special first: the first pattern that fits decides.
static PATTERNS: LazyLock<Vec<(Regex, Metric)>> = LazyLock::new(|| {
    [
        (r"concordance|c.?index", Metric::ConcordanceIndex),
        (r"map.?(at|@).?\w+|mean average precision", Metric::MapAtK),
        (
            r"(mean )?column.?wise.*(rmse|root mean)|mcrmse|mean over.*root mean squared",
            Metric::MeanColumnwiseRmse,
        ),
        (
            r"(mean )?column.?wise.*(auc|roc)|mean over.*roc",
            Metric::MeanColumnwiseAuc,
        ),
        (r"rmsle|root mean squared? log", Metric::Rmsle),
        (
            r"rmse|root.?mean.?squared?|(^|\W)mse(\W|$)|mean squared error",
            Metric::Rmse,
        ),
        (r"smape|symmetric mean absolute percentage", Metric::Smape),
        (r"wape|weighted (mean )?absolute percentage", Metric::Wape),
        (r"mape|mean absolute percentage", Metric::Mape),
        (r"(^|\W)mae(\W|$)|mean.absolute.error|absolute error", Metric::Mae),
        (r"(^|\W)r2(\W|$)|r.squared|determination", Metric::R2),
        (r"qwk|quadratic.*kappa|kappa", Metric::Qwk),
        (r"balanced.accuracy", Metric::BalancedAccuracy),
        (r"macro.?f1|f1.?macro", Metric::MacroF1),
        (r"mcc|matthews", Metric::Mcc),
        (
            r"average.precision|pr.?auc|precision.recall curve",
            Metric::AveragePrecision,
        ),
        (r"auc|\broc\b", Metric::Auc),
        (r"log.?loss|logarithmic loss|cross.?entropy", Metric::LogLoss),
        (r"brier", Metric::Brier),
        (r"f1|f.?score|f.?measure", Metric::F1),
        (r"accuracy|correct", Metric::Accuracy),
    ]
    .into_iter()
    .filter_map(|(pattern, metric)| Some((Regex::new(&format!("(?i){pattern}")).ok()?, metric)))
    .collect()
});

impl Metric {
    /// The metric a text speaks of.
    pub(crate) fn recognise(text: &str) -> Option<Self> {
        PATTERNS
            .iter()
            .find(|(pattern, _)| pattern.is_match(text))
            .map(|(_, metric)| *metric)
    }

    /// Whether a submission holds one label a row.
    pub(crate) fn wants_labels(self) -> bool {
        matches!(
            self,
            Self::Accuracy | Self::BalancedAccuracy | Self::MacroF1 | Self::F1 | Self::Mcc
        )
    }

    /// Whether a submission holds probabilities, or scores that order like them.
    pub(crate) fn wants_probabilities(self) -> bool {
        matches!(self, Self::Auc | Self::AveragePrecision | Self::LogLoss | Self::Brier)
    }

    /// Whether each class counts, however rare.
    pub(crate) fn counts_classes(self) -> bool {
        matches!(self, Self::BalancedAccuracy | Self::MacroF1 | Self::F1 | Self::Mcc)
    }

    /// Whether the absolute error decides, so that medians beat means.
    pub(crate) fn is_absolute(self) -> bool {
        matches!(self, Self::Mae | Self::Smape | Self::Mape | Self::Wape)
    }

    /// Whether errors count relative to the size of the target.
    pub(crate) fn is_relative(self) -> bool {
        matches!(self, Self::Rmsle | Self::Smape | Self::Mape)
    }

    /// Names to import for the metric's function.
    pub(crate) fn import(self) -> Option<(&'static str, &'static str)> {
        let name = match self {
            Self::Mae => "mean_absolute_error",
            Self::R2 => "r2_score",
            Self::Qwk => "cohen_kappa_score",
            Self::Accuracy => "accuracy_score",
            Self::BalancedAccuracy => "balanced_accuracy_score",
            Self::MacroF1 | Self::F1 => "f1_score",
            Self::Mcc => "matthews_corrcoef",
            Self::Auc | Self::MeanColumnwiseAuc => "roc_auc_score",
            Self::AveragePrecision => "average_precision_score",
            Self::LogLoss => "log_loss",
            Self::Brier => "brier_score_loss",
            _ => return None,
        };
        Some(("sklearn.metrics", name))
    }

    /// The lines of `metric(truth, prediction)` below its `def`.
    pub(crate) fn body(self, outcome: &Outcome) -> String {
        let line = match self {
            Self::Rmse => "return float(np.sqrt(np.mean((truth - prediction) ** 2)))",
            Self::Mae => "return mean_absolute_error(truth, prediction)",
            Self::Rmsle => "return float(np.sqrt(np.mean((np.log1p(truth) - np.log1p(prediction)) ** 2)))",
            Self::R2 => "return r2_score(truth, prediction)",
            Self::Smape => {
                "size = np.maximum(np.abs(truth) + np.abs(prediction), 1e-12)\n    return float(np.mean(200 * np.abs(truth - prediction) / size))"
            }
            Self::Mape => "return float(np.mean(np.abs((truth - prediction) / np.maximum(np.abs(truth), 1e-12))))",
            Self::Wape => "return float(np.abs(truth - prediction).sum() / np.abs(truth).sum())",
            Self::Qwk => "return cohen_kappa_score(truth, prediction, weights=\"quadratic\")",
            Self::Accuracy => "return accuracy_score(truth, prediction)",
            Self::BalancedAccuracy => "return balanced_accuracy_score(truth, prediction)",
            Self::MacroF1 => "return f1_score(truth, prediction, average=\"macro\")",
            Self::F1 => match outcome {
                Outcome::Label { positive: Some(_), .. } => "return f1_score(truth, prediction, pos_label=POSITIVE)",
                _ => "return f1_score(truth, prediction, average=\"weighted\")",
            },
            Self::Mcc => "return matthews_corrcoef(truth, prediction)",
            Self::Auc => "return roc_auc_score(truth, prediction)",
            Self::AveragePrecision => "return average_precision_score(truth, prediction)",
            Self::LogLoss => match outcome {
                Outcome::Classes { .. } => "return log_loss(truth, prediction, labels=CLASSES)",
                _ => "return log_loss(truth, prediction)",
            },
            Self::Brier => "return brier_score_loss(truth, prediction)",
            Self::MeanColumnwiseRmse => "return float(np.sqrt(np.mean((truth - prediction) ** 2, axis=0)).mean())",
            Self::MeanColumnwiseAuc => {
                "return float(np.mean([roc_auc_score(truth[:, column], prediction[:, column]) for column in range(len(TARGETS))]))"
            }
            Self::MapAtK => {
                "total = 0.0\n    for wanted, listed in zip(truth, prediction):\n        hits = np.isin(listed[:TOP], list(wanted))\n        precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)\n        total += (precision * hits).sum() / min(len(wanted), TOP)\n    return total / len(truth)"
            }
            Self::ConcordanceIndex => {
                "right = pairs = 0.0\n    for time, risk in zip(durations[truth][events[truth] == 1], prediction[events[truth] == 1]):\n        later = durations[truth] > time\n        pairs += later.sum()\n        right += (prediction[later] < risk).sum() + 0.5 * (prediction[later] == risk).sum()\n    return right / pairs"
            }
        };
        format!("    {line}")
    }

    /// Name in words for the program's docstring.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rmse => "RMSE",
            Self::Mae => "mean absolute error",
            Self::Rmsle => "RMSLE",
            Self::R2 => "R squared",
            Self::Smape => "SMAPE",
            Self::Mape => "MAPE",
            Self::Wape => "WAPE",
            Self::Qwk => "quadratic weighted kappa",
            Self::Accuracy => "accuracy",
            Self::BalancedAccuracy => "balanced accuracy",
            Self::MacroF1 => "macro F1",
            Self::F1 => "F1",
            Self::Mcc => "Matthews correlation",
            Self::Auc => "ROC AUC",
            Self::AveragePrecision => "average precision",
            Self::LogLoss => "log loss",
            Self::Brier => "Brier score",
            Self::MeanColumnwiseRmse => "mean column-wise RMSE",
            Self::MeanColumnwiseAuc => "mean column-wise ROC AUC",
            Self::MapAtK => "mean average precision",
            Self::ConcordanceIndex => "concordance index",
        }
    }
}
