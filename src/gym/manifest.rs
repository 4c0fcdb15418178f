//! `task.toml`: what the author of a package says about it. Everything in it is optional.

use std::path::Path;

use serde::Deserialize;

use crate::gym::error::{GymError, io};
use crate::gym::slug::validate_task_name;

/// Content of `task.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Task id; the folder's name when not given.
    pub id: Option<String>,
    /// Title.
    pub title: Option<String>,
    /// tabular, text, image, audio, time_series, mixed or scientific.
    pub modality: Option<Modality>,
    /// binary, multiclass, regression, multi_target, ranking, forecasting or other.
    pub task_type: Option<TaskType>,
    /// Name of the metric.
    pub metric: Option<String>,
    /// Least value that the metric can take.
    pub theoretical_min: Option<f64>,
    /// Greatest value that the metric can take.
    pub theoretical_max: Option<f64>,
    /// What leaks the answers, when it is known.
    pub known_leak: Option<String>,
    /// Look at programs before they run, unless a run says otherwise.
    pub preflight: Option<bool>,
    /// How the validation split is made.
    #[serde(default)]
    pub validation: ValidationSettings,
}

/// How the validation split is made.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationSettings {
    /// What is held out as a whole: found from the data when not given.
    pub unit: Option<Unit>,
    /// Share of the training rows that is held out.
    pub ratio: Option<f64>,
    /// Seed of the draw.
    pub seed: Option<u64>,
    /// Column whose values are never divided between the two parts.
    pub group_column: Option<String>,
    /// Column of times; the latest rows are held out.
    pub time_column: Option<String>,
}

/// What is held out as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Single rows.
    Row,
    /// All rows of a group.
    Group,
    /// All rows from some time on.
    Time,
    /// The last interactions of each id.
    Interactions,
}

macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($(#[$vdoc:meta])* $variant:ident => $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $type { $($(#[$vdoc])* $variant),+ }

        impl $type {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Name as stored.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

names! {
    /// Kind of data that a task is made of.
    Modality {
        /// Rows of numbers and categories.
        Tabular => "tabular",
        /// Written language.
        Text => "text",
        /// Pictures.
        Image => "image",
        /// Sound.
        Audio => "audio",
        /// Values in the order of time.
        TimeSeries => "time_series",
        /// More than one of them.
        Mixed => "mixed",
        /// A problem from research, with files and rules of its own.
        Scientific => "scientific",
    }
}

names! {
    /// What a task asks for.
    TaskType {
        /// One of two classes, or the probability of one.
        Binary => "binary",
        /// One of several classes, or their probabilities.
        Multiclass => "multiclass",
        /// A number.
        Regression => "regression",
        /// Several targets at once.
        MultiTarget => "multi_target",
        /// An ordered list of items.
        Ranking => "ranking",
        /// Values of a later time.
        Forecasting => "forecasting",
        /// Anything else.
        Other => "other",
    }
}

impl Manifest {
    /// Reads the file; a package without one has the defaults.
    pub fn read(path: &Path) -> Result<Self, GymError> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(path).map_err(io("read", path))?;
        Self::parse(&text).map_err(|message| GymError::Manifest {
            path: path.to_owned(),
            message,
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let manifest: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        if let Some(id) = &manifest.id {
            validate_task_name(id).map_err(|e| e.to_string())?;
        }
        if let (Some(min), Some(max)) = (manifest.theoretical_min, manifest.theoretical_max)
            && min >= max
        {
            return Err(format!("theoretical_min {min} is not below theoretical_max {max}"));
        }
        let validation = &manifest.validation;
        if let Some(ratio) = validation.ratio
            && !(ratio > 0.0 && ratio < 1.0)
        {
            return Err(format!("validation.ratio is {ratio}; it must lie between 0 and 1"));
        }
        match validation.unit {
            Some(Unit::Group) if validation.group_column.is_none() => {
                Err("validation.unit is 'group' but validation.group_column is not given".to_owned())
            }
            Some(Unit::Time) if validation.time_column.is_none() => {
                Err("validation.unit is 'time' but validation.time_column is not given".to_owned())
            }
            _ => Ok(manifest),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_full_file_and_an_empty_one() {
        let full = Manifest::parse(
            "id = 'abc'\ntitle = 'T'\nmodality = 'time_series'\ntask_type = 'multi_target'\nmetric = 'rmse'\ntheoretical_min = 0.0\n\
             [validation]\nunit = 'group'\nratio = 0.25\nseed = 7\ngroup_column = 'speaker'\n",
        )
        .unwrap();
        assert_eq!(full.modality.unwrap().as_str(), "time_series");
        assert_eq!(full.validation.unit, Some(Unit::Group));
        assert_eq!(Manifest::parse("").unwrap(), Manifest::default());
    }

    #[test]
    fn mistakes_are_errors() {
        for (text, part) in [
            ("nmae = 'x'", "nmae"),
            ("[validation]\nratoi = 0.2", "ratoi"),
            ("[validation]\nratio = 1.5", "between 0 and 1"),
            ("[validation]\nunit = 'group'", "group_column"),
            ("id = '../x'", "not a task name"),
            ("id = '/abs'", "not a task name"),
            ("theoretical_min = 1\ntheoretical_max = 0", "not below"),
            ("modality = 'smell'", "smell"),
        ] {
            let error = Manifest::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
