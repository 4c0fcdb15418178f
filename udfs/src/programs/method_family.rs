//! The method family of a program, read from its imports and names.

use std::collections::BTreeSet;

use rustpython_ruff_python_ast::token::TokenKind;

use super::imports::top_level_modules;
use super::source::Source;

/// How one family shows in a program.
struct Family {
    name: &'static str,
    /// Top-level modules.
    modules: &'static [&'static str],
    /// Whole names, in lower case.
    names: &'static [&'static str],
    /// Beginnings of names, in lower case.
    prefixes: &'static [&'static str],
    /// Parts of names, in lower case.
    parts: &'static [&'static str],
}

/// Families in the order in which a label lists them.
const FAMILIES: &[Family] = &[
    Family {
        name: "catboost",
        modules: &["catboost"],
        names: &[],
        prefixes: &[],
        parts: &["catboost"],
    },
    Family {
        name: "lightgbm",
        modules: &["lightgbm"],
        names: &["lgb"],
        prefixes: &["lgbm"],
        parts: &["lightgbm"],
    },
    Family {
        name: "xgboost",
        modules: &["xgboost"],
        names: &["xgb"],
        prefixes: &["xgbclassifier", "xgbregressor", "xgbranker", "xgbrf"],
        parts: &["xgboost"],
    },
    Family {
        name: "transformers",
        modules: &[
            "transformers",
            "datasets",
            "sentence_transformers",
            "tokenizers",
            "peft",
        ],
        names: &[],
        prefixes: &[],
        parts: &[],
    },
    Family {
        name: "neural_net",
        modules: &[
            "torch",
            "tensorflow",
            "keras",
            "jax",
            "flax",
            "lightning",
            "pytorch_lightning",
            "fastai",
            "mxnet",
            "paddle",
            "pytorch_tabnet",
            "torch_geometric",
        ],
        names: &[],
        prefixes: &["mlpclassifier", "mlpregressor"],
        parts: &["neuralnet", "neural_net"],
    },
    Family {
        name: "cv",
        modules: &["cv2", "torchvision", "timm", "albumentations", "skimage", "kornia"],
        names: &[],
        prefixes: &[],
        parts: &[],
    },
    Family {
        name: "nlp",
        modules: &["nltk", "spacy", "gensim"],
        names: &[],
        prefixes: &[],
        parts: &[],
    },
    Family {
        name: "time_series",
        modules: &["statsmodels", "prophet", "pmdarima", "sktime", "darts"],
        names: &[],
        prefixes: &[],
        parts: &[],
    },
    Family {
        name: "automl",
        modules: &["autogluon", "flaml", "h2o", "tpot", "autosklearn", "pycaret"],
        names: &[],
        prefixes: &[],
        parts: &[],
    },
    Family {
        name: "ensemble",
        modules: &[],
        names: &[],
        prefixes: &["votingclassifier", "votingregressor"],
        parts: &["ensemble", "blend", "stacking"],
    },
];

/// Label of a program that only uses scikit-learn.
const SKLEARN: &str = "sklearn";
/// Label of a program without a known method.
const UNKNOWN: &str = "unknown";

/// Families of the program joined by `+`, such as `lightgbm+neural_net`; `sklearn` when it imports scikit-learn and
/// nothing else is known; otherwise `unknown`.
///
/// Only imports and names count, so a family named in a comment or a string does not.
pub fn method_family(code: &str) -> String {
    let source = Source::read(code);
    let modules = top_level_modules(&source);
    let names: BTreeSet<String> = source
        .tokens()
        .iter()
        .filter(|token| token.kind == TokenKind::Name)
        .map(|token| source.text_of(*token).to_lowercase())
        .collect();
    let mut label = String::new();
    for family in FAMILIES.iter().filter(|family| family.shows_in(&modules, &names)) {
        if !label.is_empty() {
            label.push('+');
        }
        label.push_str(family.name);
    }
    if label.is_empty() {
        label.push_str(if modules.contains("sklearn") { SKLEARN } else { UNKNOWN });
    }
    label
}

impl Family {
    fn shows_in(&self, modules: &BTreeSet<&str>, names: &BTreeSet<String>) -> bool {
        self.modules.iter().any(|module| modules.contains(module))
            || names.iter().any(|name| {
                self.names.contains(&name.as_str())
                    || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
                    || self.parts.iter().any(|part| name.contains(part))
            })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::method_family;

    #[test]
    fn labels() {
        for (code, family) in [
            ("model = LGBMRegressor()", "lightgbm"),
            (
                "from xgboost import XGBClassifier\nfrom lightgbm import LGBMClassifier",
                "lightgbm+xgboost",
            ),
            ("# maybe try xgboost\nx = 'torch'\n", "unknown"),
            ("import torchvision", "cv"),
            ("from sklearn.ensemble import RandomForestClassifier", "ensemble"),
            ("from sklearn.svm import SVC", "sklearn"),
            ("import torch\nx = = 1", "neural_net"),
        ] {
            assert_eq!(method_family(code), family, "{code}");
        }
    }
}
