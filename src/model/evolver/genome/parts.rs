//! The parts of a tabular genome: how columns become features, and what is done to rows, targets and predictions.

use serde::{Deserialize, Serialize};

/// How numeric columns are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Numeric {
    /// As they are, missing values too.
    Raw,
    /// Missing values become the median.
    Median,
    /// Median, then mean 0 and variance 1.
    Standard,
    /// Median, then a power transform towards the normal distribution.
    Power,
    /// Median, then ranks mapped to the normal distribution.
    Quantile,
    /// Median, standard scale, then a cubic spline of each column.
    Spline,
    /// Median, standard scale, then squares and products of all columns.
    Quadratic,
    /// Left out.
    Drop,
}

impl Numeric {
    /// Whether the features come out on one scale.
    pub(crate) fn is_scaled(self) -> bool {
        !matches!(self, Self::Raw | Self::Median | Self::Drop)
    }

    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Raw => "numbers as they are",
            Self::Median => "numbers with medians for gaps",
            Self::Standard => "standardised numbers",
            Self::Power => "numbers power-transformed towards a normal shape",
            Self::Quantile => "numbers mapped to normal ranks",
            Self::Spline => "a spline of each number",
            Self::Quadratic => "numbers with their squares and products",
            Self::Drop => "no numbers",
        }
    }
}

/// How categories become numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Categorical {
    /// One column for each category that is not rare.
    OneHot,
    /// One code a category.
    Ordinal,
    /// Mean target of the category, cross-fitted.
    Target,
    /// Share of the rows with the category.
    Frequency,
    /// Left out.
    Drop,
}

impl Categorical {
    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::OneHot => "one-hot categories",
            Self::Ordinal => "category codes",
            Self::Target => "cross-fitted target means of categories",
            Self::Frequency => "category frequencies",
            Self::Drop => "no categories",
        }
    }
}

/// What a text is cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Analyzer {
    /// Words.
    Word,
    /// Letters within words.
    CharWb,
    /// Both, side by side.
    Both,
}

/// How text becomes features: TF-IDF, and perhaps a truncated SVD of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Text {
    /// What the text is cut into.
    pub(crate) analyzer: Analyzer,
    /// Longest run of words.
    pub(crate) words: u32,
    /// Longest run of letters.
    pub(crate) letters: u32,
    /// Fewest texts a term must be in.
    pub(crate) min_df: u32,
    /// Most terms of each kind, all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_features: Option<u32>,
    /// Components of a truncated SVD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) svd: Option<u32>,
}

/// What is done to all features before the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reduce {
    /// Principal components that keep this share of the variance.
    Pca(f64),
    /// The share of features with the strongest single relation to the target.
    Select(f64),
}

/// How the target is transformed for the fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// As it is.
    #[default]
    Identity,
    /// `log1p`.
    Log,
    /// Square root.
    Sqrt,
}

impl Target {
    /// Whether the target stays as it is.
    pub(crate) fn is_identity(&self) -> bool {
        *self == Self::Identity
    }
}

/// How members are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Blend {
    /// By the weights of the members.
    #[default]
    Fixed,
    /// By weights fitted on the held-out predictions.
    Fitted,
}

impl Blend {
    /// Whether the weights are those of the members.
    pub(crate) fn is_fixed(&self) -> bool {
        *self == Self::Fixed
    }
}

/// How a picture becomes features.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImageFeatures {
    /// Width and height after resizing.
    pub(crate) size: u32,
    /// Whether colours are kept.
    pub(crate) color: bool,
    /// Cells a side of a grid of gradient histograms, 0 for none.
    pub(crate) gradient_cells: u32,
    /// Whether fits also see the pictures moved by one pixel.
    pub(crate) shifts: bool,
}

/// How a series becomes features.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeriesFeatures {
    /// Steps to which each channel is stretched, 0 for none.
    pub(crate) steps: u32,
    /// Whether quantiles are added to mean, deviation, ends and changes.
    pub(crate) quantiles: bool,
    /// Whether the correlations of the channels are added.
    pub(crate) correlations: bool,
}

/// How a forecast takes the level of the series out of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// Not at all.
    None,
    /// The fit sees the ratio to the mean of one year, as late as the horizon allows.
    Year,
    /// The fit sees the ratio to a straight line through the logarithms.
    Trend,
}

/// Features and level of a forecast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForecastFeatures {
    /// What the ratio is taken to.
    pub(crate) level: Level,
    /// How many of the lags are features.
    pub(crate) lags: u32,
    /// Pairs of sines and cosines of the year.
    pub(crate) waves: u32,
    /// Years of history the fit sees, all when 0.
    pub(crate) years: u32,
}
