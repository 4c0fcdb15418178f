//! `config.yaml` of a competition: of all that it says, the plain values that an import needs.

use std::path::Path;

use crate::gym::error::{GymError, io};

/// What a competition's configuration says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Id.
    pub id: Option<String>,
    /// Title.
    pub name: Option<String>,
    /// Answers, below the folder of all data.
    pub answers: Option<String>,
    /// Sample submission, below the folder of all data.
    pub sample_submission: Option<String>,
    /// Name of the metric.
    pub metric: Option<String>,
    /// Grading function, as `module:function`.
    pub grade_fn: Option<String>,
}

impl Config {
    /// Reads the file; a competition without one says nothing.
    pub fn read(path: &Path) -> Result<Self, GymError> {
        if !path.is_file() {
            return Ok(Self::default());
        }
        Ok(Self::parse(&std::fs::read_to_string(path).map_err(io("read", path))?))
    }

    /// Plain `key: value` lines, at the top and one section deep.
    fn parse(text: &str) -> Self {
        let mut config = Self::default();
        let mut section = String::new();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let value = plain(value);
            let is_top = !key.starts_with([' ', '\t', '-', '#']);
            let key = key.trim();
            if is_top && value.is_none() {
                key.clone_into(&mut section);
            } else if is_top {
                section.clear();
            }
            let place = match (is_top, section.as_str(), key) {
                (true, _, "id") => &mut config.id,
                (true, _, "name") => &mut config.name,
                (false, "dataset", "answers") => &mut config.answers,
                (false, "dataset", "sample_submission") => &mut config.sample_submission,
                (false, "grader", "name") => &mut config.metric,
                (false, "grader", "grade_fn") => &mut config.grade_fn,
                _ => continue,
            };
            *place = value;
        }
        config
    }
}

/// A value without its quotes and its comment.
fn plain(value: &str) -> Option<String> {
    let value = value.trim();
    let unquoted = ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.split_once(quote).map(|(inner, _)| inner));
    let value = unquoted.unwrap_or_else(|| value.split_once(" #").map_or(value, |(value, _)| value).trim());
    (!value.is_empty() && value != "null").then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_are_read() {
        let text = "id: spots\nname: \"Spots: a test\"\nprizes:\n  - position: 1\n    value: 7 # dollars\n\
                    dataset:\n  answers: spots/prepared/private/answers.csv\n  sample_submission: spots/prepared/public/s.csv # here\n\
                    grader:\n  name: accuracy\n  grade_fn: mlebench.competitions.spots.grade:grade\npreparer: x:y\n";
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            Config::parse(text),
            Config {
                id: some("spots"),
                name: some("Spots: a test"),
                answers: some("spots/prepared/private/answers.csv"),
                sample_submission: some("spots/prepared/public/s.csv"),
                metric: some("accuracy"),
                grade_fn: some("mlebench.competitions.spots.grade:grade"),
            }
        );
        assert_eq!(Config::parse("prizes: null\nid:\n"), Config::default());
    }
}
