//! Checks of a package's tables. Each finding is a row of `gym.quality_checks`; a failed one stops the import.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use crate::gym::columns::{Columns, identifier};
use crate::gym::error::GymError;
use crate::gym::json_lines::read_json_lines;
use crate::gym::manifest::ValidationSettings;
use crate::gym::package::MANIFEST;
use crate::gym::table::Table;

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckStatus {
    /// The package is as it must be.
    Passed,
    /// Worth knowing, no reason to refuse the package.
    Warning,
    /// The package is wrong.
    Failed,
}

impl CheckStatus {
    /// Name as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// One check and what it found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Name of the check.
    pub id: String,
    /// Result.
    pub status: CheckStatus,
    /// What was found.
    pub detail: String,
}

impl Check {
    /// A check that found nothing wrong.
    pub fn passed(id: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            status: CheckStatus::Passed,
            detail: detail.into(),
        }
    }

    /// A check that found something worth knowing.
    pub fn warning(id: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            status: CheckStatus::Warning,
            detail: detail.into(),
        }
    }

    /// A check that found a fault.
    pub fn failed(id: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            status: CheckStatus::Failed,
            detail: detail.into(),
        }
    }
}

/// The check that a package has the files no import can do without.
pub const MISSING_FILES: &str = "missing_required_files";
/// Path of the candidate's description in a package.
pub const DESCRIPTION: &str = "data/public/description.txt";
/// Path of the training table.
pub const TRAIN: &str = "data/public/train.csv";
/// Path of the test table.
pub const TEST: &str = "data/public/test.csv";
/// Path of the sample submission.
pub const SAMPLE: &str = "data/public/sample_submission.csv";
/// Path of the hidden answers.
pub const ANSWER: &str = "data/private/test_answer.csv";
/// Path of the hidden answers where they are JSON lines.
pub const ANSWER_LINES: &str = "data/private/test_answer.jsonl";
/// Path of the metric.
pub const METRIC: &str = "utils/metric.py";

/// The hidden answers of the package in a folder; where it has none, the place where they should be.
pub fn answer_path(root: &Path) -> PathBuf {
    let lines = root.join(ANSWER_LINES);
    let table = root.join(ANSWER);
    if lines.is_file() && !table.is_file() {
        lines
    } else {
        table
    }
}

/// The four tables of a package, as far as they exist.
#[derive(Debug, Default)]
pub struct Tables {
    /// `train.csv`.
    pub train: Option<Table>,
    /// `test.csv`.
    pub test: Option<Table>,
    /// `sample_submission.csv`.
    pub sample: Option<Table>,
    /// `test_answer.csv`.
    pub answer: Option<Table>,
}

impl Tables {
    /// Reads the tables of the package in a folder.
    pub fn read(root: &Path) -> Result<Self, GymError> {
        let table = |path: &str| {
            let path = root.join(path);
            if path.is_file() {
                Table::read(&path).map(Some)
            } else {
                Ok(None)
            }
        };
        Ok(Self {
            train: table(TRAIN)?,
            test: table(TEST)?,
            sample: table(SAMPLE)?,
            answer: match table(ANSWER)? {
                None if root.join(ANSWER_LINES).is_file() => Some(read_json_lines(&root.join(ANSWER_LINES))?),
                answer => answer,
            },
        })
    }

    fn named(&self) -> [(&'static str, Option<&Table>); 4] {
        [
            ("train.csv", self.train.as_ref()),
            ("test.csv", self.test.as_ref()),
            ("sample_submission.csv", self.sample.as_ref()),
            ("test_answer.csv", self.answer.as_ref()),
        ]
    }
}

/// Faults of a package's files and tables, in the order of the files. An empty list means that all checks passed.
pub fn check_tables(root: &Path, tables: &Tables) -> Vec<Check> {
    let mut faults = Vec::new();
    let missing: Vec<&str> = [DESCRIPTION, SAMPLE, ANSWER, METRIC]
        .into_iter()
        .filter(|p| match *p {
            ANSWER => tables.answer.is_none(),
            path => !root.join(path).is_file(),
        })
        .collect();
    if !missing.is_empty() {
        faults.push(Check::failed(
            MISSING_FILES,
            format!("the package lacks {}", missing.join(", ")),
        ));
    }
    for (name, table) in tables.named() {
        check_table(name, table, &mut faults);
    }
    if let (Some(test), Some(sample), Some(answer)) = (&tables.test, &tables.sample, &tables.answer) {
        check_rows_and_identifiers(test, sample, answer, &mut faults);
    }
    faults
}

fn check_table(name: &str, table: Option<&Table>, faults: &mut Vec<Check>) {
    let id = |kind: &str| format!("{kind}_{}", name.replace('.', "_"));
    let Some(table) = table else {
        // The sample and the answers are required files and reported there.
        if matches!(name, "train.csv" | "test.csv") {
            faults.push(Check::failed(id("missing"), format!("there is no {name}")));
        }
        return;
    };
    if !table.has_header() {
        faults.push(Check::failed(
            id("missing_header"),
            format!("{name} has no header line"),
        ));
        return;
    }
    if table.is_empty() {
        faults.push(Check::failed(id("empty"), format!("{name} has a header but no rows")));
    }
    let mut seen = HashSet::new();
    let double: Vec<&str> = table
        .columns()
        .iter()
        .filter(|c| !seen.insert(*c))
        .map(String::as_str)
        .collect();
    if !double.is_empty() {
        faults.push(Check::failed(
            id("duplicate_columns"),
            format!("{name} repeats the columns {}", double.join(", ")),
        ));
    }
    let width = table.columns().len();
    let mut uneven = (0..table.len()).filter(|row| table.width(*row) != width);
    if let Some(first) = uneven.next() {
        let more = uneven.count();
        faults.push(Check::failed(
            id("row_width"),
            format!(
                "{} of {} rows of {name} do not have {width} fields; the first is data row {}",
                more + 1,
                table.len(),
                first + 1
            ),
        ));
    }
}

fn check_rows_and_identifiers(test: &Table, sample: &Table, answer: &Table, faults: &mut Vec<Check>) {
    for (name, table) in [("sample_submission.csv", sample), ("test_answer.csv", answer)] {
        if table.len() != test.len() {
            faults.push(Check::failed(
                format!("row_count_mismatch_{}", name.replace('.', "_")),
                format!("{name} has {} rows, test.csv has {}", table.len(), test.len()),
            ));
        }
    }
    let id = identifier(sample, test);
    if let Some(id) = &id {
        let ids = |table: &Table| {
            table
                .position(id)
                .map(|c| table.column(c).into_iter().map(|v| v.into_owned()).collect::<Vec<_>>())
        };
        let (in_sample, in_test) = (ids(sample), ids(test));
        let repeated = |ids: &Option<Vec<String>>| {
            let ids = ids.as_deref().unwrap_or_default();
            ids.len() - ids.iter().collect::<HashSet<_>>().len()
        };
        let doubles = repeated(&in_sample);
        if doubles > 0 {
            faults.push(Check::failed(
                "duplicate_submission_identifiers",
                format!("{doubles} rows of sample_submission.csv repeat a value of '{id}'"),
            ));
        }
        if in_test.is_some() && in_test != in_sample {
            faults.push(Check::failed(
                "test_submission_identifier_mismatch",
                format!("the values of '{id}' in sample_submission.csv are not those of test.csv in the same order"),
            ));
        }
        let doubles = repeated(&in_test);
        if doubles > 0 {
            faults.push(Check::failed(
                "duplicate_test_identifiers",
                format!("{doubles} rows of test.csv repeat a value of '{id}'"),
            ));
        }
    }
    let shown: Vec<&str> = sample
        .columns()
        .iter()
        .filter(|c| id.as_ref() != Some(c) && test.position(c).is_some())
        .map(String::as_str)
        .collect();
    if !shown.is_empty() {
        faults.push(Check::failed(
            "target_columns_in_test",
            format!("test.csv holds the predicted columns {}", shown.join(", ")),
        ));
    }
}

/// Columns that the manifest names and the training table does not have.
pub fn check_columns(settings: &ValidationSettings, train: Option<&Table>) -> Vec<Check> {
    let Some(train) = train else {
        return Vec::new();
    };
    [
        ("group_column", &settings.group_column),
        ("time_column", &settings.time_column),
    ]
    .into_iter()
    .filter_map(|(key, column)| Some((key, column.as_deref()?)))
    .filter(|(_, column)| train.position(column).is_none())
    .map(|(key, column)| {
        Check::failed(
            format!("unknown_{key}"),
            format!(
                "{MANIFEST} names validation.{key} '{column}', but train.csv has the columns {}",
                train.columns().join(", ")
            ),
        )
    })
    .collect()
}

/// What the answers give away in public files, if anything.
pub fn find_leak(root: &Path, public: &BTreeMap<String, String>, tables: &Tables) -> Option<String> {
    let (sample, answer) = (tables.sample.as_ref()?, tables.answer.as_ref()?);
    let columns = Columns::find(sample, tables.test.as_ref()?, answer);
    let values = |table: &Table| -> Option<Vec<Vec<String>>> {
        columns
            .targets
            .iter()
            .map(|c| {
                table
                    .position(c)
                    .map(|p| table.column(p).into_iter().map(|v| v.into_owned()).collect())
            })
            .collect()
    };
    let truth = values(answer)?;
    let varied = truth.iter().any(|c| c.iter().collect::<HashSet<_>>().len() > 1);
    if varied && values(sample).as_ref() == Some(&truth) {
        return Some("sample_submission.csv holds the test answers".to_owned());
    }
    let id = columns.id.as_ref()?;
    let answer_ids: HashSet<String> = answer
        .column(answer.position(id)?)
        .into_iter()
        .map(|v| v.into_owned())
        .collect();
    for path in public.keys() {
        if [TRAIN, TEST, SAMPLE].contains(&path.as_str()) || !is_table_path(path) {
            continue;
        }
        let Ok(table) = Table::read(&root.join(path)) else {
            continue;
        };
        let Some(key) = table.position(id) else { continue };
        let shown: Vec<usize> = columns.targets.iter().filter_map(|t| table.position(t)).collect();
        let leaks = (0..table.len()).any(|row| {
            table.value(row, key).is_some_and(|v| answer_ids.contains(v.as_ref()))
                && shown
                    .iter()
                    .any(|c| table.value(row, *c).is_some_and(|v| !v.is_empty()))
        });
        if leaks {
            return Some(format!("{path} holds target columns for test rows"));
        }
    }
    None
}

/// Whether a file is a delimited table by its name.
pub fn is_table_path(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let lower = lower.strip_suffix(".gz").unwrap_or(&lower);
    lower.ends_with(".csv") || lower.ends_with(".tsv")
}

/// How much of the raw labelled data the package uses.
#[derive(Debug, Clone, PartialEq)]
pub struct RawUsage {
    /// Predicted columns.
    pub target_columns: Vec<String>,
    /// Rows of the raw training table.
    pub raw_train_rows: usize,
    /// Predicted columns that the raw training table has.
    pub raw_train_target_columns: Vec<String>,
    /// Rows of the package's training and test tables together.
    pub processed_rows: usize,
    /// Used share of the raw rows, to six places; `None` without raw rows.
    pub utilization: Option<f64>,
    /// Rows of the raw test table, when there is one.
    pub raw_test_rows: Option<usize>,
    /// The raw test table has no labels, so leaving it out loses nothing.
    pub raw_test_unlabelled: bool,
}

impl RawUsage {
    /// Compares `raw/` with the package's tables; `None` when one of them is missing.
    pub fn find(root: &Path, tables: &Tables) -> Result<Option<Self>, GymError> {
        let raw = |name: &str| {
            let path = root.join("raw").join(name);
            if path.is_file() {
                Table::read(&path).map(Some)
            } else {
                Ok(None)
            }
        };
        let (Some(train), Some(test)) = (&tables.train, &tables.test) else {
            return Ok(None);
        };
        let Some(raw_train) = raw("train.csv")? else {
            return Ok(None);
        };
        let raw_test = raw("test.csv")?;
        let target_columns = match &tables.sample {
            Some(sample) => {
                let id = identifier(sample, test);
                sample
                    .columns()
                    .iter()
                    .filter(|c| id.as_ref() != Some(c))
                    .cloned()
                    .collect()
            }
            None => Vec::new(),
        };
        let held = |table: &Table| -> Vec<String> {
            target_columns
                .iter()
                .filter(|c| table.position(c).is_some())
                .cloned()
                .collect()
        };
        let processed_rows = train.len() + test.len();
        let ratio = processed_rows as f64 / raw_train.len() as f64;
        Ok(Some(Self {
            raw_train_rows: raw_train.len(),
            raw_train_target_columns: held(&raw_train),
            processed_rows,
            utilization: (!raw_train.is_empty()).then(|| (ratio * 1e6).round() / 1e6),
            raw_test_rows: raw_test.as_ref().map(Table::len),
            raw_test_unlabelled: !target_columns.is_empty() && raw_test.as_ref().is_some_and(|t| held(t).is_empty()),
            target_columns,
        }))
    }

    /// The finding as a check row.
    pub fn check(&self) -> Check {
        let share = self.utilization.map_or_else(String::new, |u| format!(", {u} of them"));
        Check::passed(
            "raw_usage",
            format!(
                "raw/train.csv has {} rows; train.csv and test.csv have {} together{share}",
                self.raw_train_rows, self.processed_rows
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use serde_json::Value;

    fn write_case(base: &Value, case: &Value) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let mut files = base.as_object().unwrap().clone();
        for (path, text) in case["input"]["files"].as_object().unwrap() {
            files.insert(path.clone(), text.clone());
        }
        for (path, text) in &files {
            if let Some(text) = text.as_str() {
                let path = dir.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
        }
        dir
    }

    /// Codes that running the metric adds; they are checked where a metric is run.
    fn is_metric_code(code: &str) -> bool {
        code.starts_with("metric_")
    }

    #[test]
    fn reference_vectors() {
        let Some(file) = crate::gym::tests::golden_vectors("gym_validation.json") else {
            return;
        };
        let base = &file["cases"][0]["input"]["base"];
        for case in file["cases"].as_array().unwrap() {
            let name = case["name"].as_str().unwrap();
            let dir = write_case(base, case);
            let tables = Tables::read(dir.path()).unwrap();
            let codes: Vec<String> = check_tables(dir.path(), &tables).into_iter().map(|c| c.id).collect();
            let want: Vec<String> = case["expected"]["codes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|c| c.as_str().unwrap().to_owned())
                .filter(|c| !is_metric_code(c))
                .collect();
            assert_eq!(codes, want, "{name}");
            for (file, table) in tables.named() {
                let expected = &case["expected"]["csv"][file];
                let Some(table) = table else {
                    assert!(expected.is_null(), "{name} {file}");
                    continue;
                };
                assert_eq!(
                    table.len() as u64,
                    expected["row_count"].as_u64().unwrap(),
                    "{name} {file}"
                );
                assert_eq!(serde_json::json!(table.columns()), expected["columns"], "{name} {file}");
                let width = table.columns().len();
                let uneven = (0..table.len()).filter(|r| table.width(*r) != width).count();
                assert_eq!(
                    uneven as u64,
                    expected["row_width_errors"].as_u64().unwrap(),
                    "{name} {file}"
                );
            }
            let expected = &case["expected"]["raw_usage"];
            let usage = RawUsage::find(dir.path(), &tables).unwrap();
            assert_eq!(usage.is_some(), expected["status"] == "available", "{name}");
            let Some(usage) = usage else { continue };
            assert_eq!(
                serde_json::json!(usage.target_columns),
                expected["target_columns"],
                "{name}"
            );
            assert_eq!(
                serde_json::json!(usage.raw_train_target_columns),
                expected["raw_train_target_columns"],
                "{name}"
            );
            assert_eq!(
                usage.raw_train_rows as u64,
                expected["raw_train_rows"].as_u64().unwrap(),
                "{name}"
            );
            assert_eq!(
                usage.processed_rows as u64,
                expected["processed_train_plus_test_rows"].as_u64().unwrap(),
                "{name}"
            );
            assert_eq!(
                usage.utilization,
                expected["labeled_row_utilization_ratio"].as_f64(),
                "{name}"
            );
            let role = if usage.raw_test_unlabelled {
                "unlabeled_original_test_intentionally_excluded"
            } else {
                "not_determined"
            };
            assert_eq!(role, expected["raw_test_role"].as_str().unwrap(), "{name}");
        }
    }

    #[test]
    fn faults_have_names() {
        for (files, want) in [
            (vec![("train", "id,f,f\n1,2,3\n")], vec!["duplicate_columns_train_csv"]),
            (vec![("train", "id,f,y\n1,2\n")], vec!["row_width_train_csv"]),
            (vec![("train", "")], vec!["missing_header_train_csv"]),
            (
                vec![("sample_submission", "id,y\n4,0\n3,1\n")],
                vec!["test_submission_identifier_mismatch"],
            ),
            (vec![("test", "id,f,y\n3,a,1\n4,b,0\n")], vec!["target_columns_in_test"]),
            (
                vec![("test", "id,f\n3,a\n")],
                vec![
                    "row_count_mismatch_sample_submission_csv",
                    "row_count_mismatch_test_answer_csv",
                    "test_submission_identifier_mismatch",
                ],
            ),
            (
                vec![
                    ("test", "match,f\n3,a\n4,b\n"),
                    ("sample_submission", "match,y\n4,0\n4,1\n"),
                ],
                vec![
                    "duplicate_submission_identifiers",
                    "test_submission_identifier_mismatch",
                ],
            ),
        ] {
            let mut tables = Tables {
                train: Some(Table::from_bytes(b"id,f,y\n1,a,0\n2,b,1\n".to_vec())),
                test: Some(Table::from_bytes(b"id,f\n3,a\n4,b\n".to_vec())),
                sample: Some(Table::from_bytes(b"id,y\n3,0\n4,1\n".to_vec())),
                answer: Some(Table::from_bytes(b"id,y\n3,1\n4,0\n".to_vec())),
            };
            for (name, text) in files {
                let table = Some(Table::from_bytes(text.as_bytes().to_vec()));
                match name {
                    "train" => tables.train = table,
                    "test" => tables.test = table,
                    _ => tables.sample = table,
                }
            }
            let empty = tempfile::tempdir().unwrap();
            let found: Vec<String> = check_tables(empty.path(), &tables)
                .into_iter()
                .skip(1)
                .map(|c| c.id)
                .collect();
            assert_eq!(found, want);
        }
    }

    #[test]
    fn blank_lines_are_no_rows() {
        let dir = tempfile::tempdir().unwrap();
        let public = dir.path().join("data/public");
        std::fs::create_dir_all(&public).unwrap();
        std::fs::write(public.join("train.csv"), "id,f,target\n1,a,0\n\n2,b,1\n\n").unwrap();
        let tables = Tables::read(dir.path()).unwrap();
        assert_eq!(tables.train.as_ref().unwrap().len(), 2);
        let ids: Vec<String> = check_tables(dir.path(), &tables).into_iter().map(|c| c.id).collect();
        assert_eq!(ids, ["missing_required_files", "missing_test_csv"]);
    }
}
