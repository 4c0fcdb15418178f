//! Values of hyperparameters.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Value of a hyperparameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Scalar {
    /// Whole number.
    Int(i64),
    /// Number.
    Float(f64),
    /// Name.
    Text(String),
    /// Layer widths.
    Ints(Vec<i64>),
}

impl Scalar {
    /// The value as a number, 1 for names.
    pub(crate) fn number(&self) -> f64 {
        match self {
            Self::Int(value) => *value as f64,
            Self::Float(value) => *value,
            Self::Ints(values) => values.iter().sum::<i64>() as f64,
            Self::Text(_) => 1.0,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
            Self::Ints(values) => write!(f, "{values:?}"),
        }
    }
}

/// Values a hyperparameter may take, with the range a search should stay in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Domain {
    /// Positive numbers, searched by factors.
    Log(f64, f64),
    /// Positive whole numbers, searched by factors.
    LogInt(i64, i64),
    /// Numbers, searched by steps.
    Linear(f64, f64),
    /// Names.
    Names(&'static [&'static str]),
    /// Numbers to choose from, in order.
    Numbers(&'static [f64]),
    /// Layer widths to choose from.
    Layers(&'static [&'static [i64]]),
}

impl Domain {
    /// Whether a value read from a program belongs to the domain's type. Values beyond the search range are kept.
    pub(crate) fn admits(self, value: &Scalar) -> bool {
        match (self, value) {
            (Self::Log(..), Scalar::Float(value)) => *value > 0.0 && value.is_finite(),
            (Self::LogInt(..), Scalar::Int(value)) => *value > 0,
            (Self::Linear(..), Scalar::Float(value)) => value.is_finite(),
            (Self::Names(names), Scalar::Text(name)) => names.contains(&name.as_str()),
            (Self::Numbers(numbers), Scalar::Float(value)) => numbers.contains(value),
            (Self::Layers(_), Scalar::Ints(layers)) => !layers.is_empty() && layers.iter().all(|width| *width > 0),
            _ => false,
        }
    }
}

/// Two significant digits, so that programs show plain numbers.
pub(crate) fn plain(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 1 - value.abs().log10().floor() as i32;
    let scale = 10_f64.powi(digits.abs());
    let rounded = if digits >= 0 {
        (value * scale).round() / scale
    } else {
        (value / scale).round() * scale
    };
    format!("{rounded:.12}").parse().unwrap_or(rounded)
}

/// Two significant digits of a whole number.
pub(crate) fn plain_int(value: f64) -> i64 {
    plain(value.round().max(1.0)) as i64
}
