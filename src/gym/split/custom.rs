//! A package's own splitter, for tasks whose answers do not follow from `train.csv`.
//!
//! `utils/split.py` runs in the sandbox like a candidate: `DATA_DIR` is the package's `data/public`, the working folder is
//! empty and writable. It writes `split.json`, one object:
//!
//! | key | value |
//! |---|---|
//! | `train`, `test`, `sample_submission`, `test_answer` | texts of the validation's CSV files, with the real files' columns |
//! | `exclude` | public files that the validation leaves out, relative to `DATA_DIR` (optional) |
//! | `rename` | public files with another place in the validation, `{"train/7.png": "test/7.png"}` (optional) |
//! | `note` | how the rows were chosen (optional) |

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use serde::Deserialize;

use crate::gym::error::{GymError, io};
use crate::gym::split::files::link_file;
use crate::gym::split::{Split, SplitInput, side_files};
use crate::gym::table::Table;

/// Path of the splitter in a package.
pub const CUSTOM_SPLIT: &str = "utils/split.py";

/// What a package's splitter wrote.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomSplit {
    train: String,
    test: String,
    sample_submission: String,
    test_answer: String,
    #[serde(default)]
    exclude: BTreeSet<String>,
    #[serde(default)]
    rename: BTreeMap<String, String>,
    note: Option<String>,
}

impl CustomSplit {
    /// Name of the file that the splitter writes.
    pub const OUTPUT: &str = "split.json";

    /// Reads the splitter's output.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|e| format!("{CUSTOM_SPLIT} wrote a split.json that cannot be used: {e}"))
    }

    /// Writes the validation package under `out`; the inner error says what is wrong with the splitter's output.
    pub fn write(&self, input: &SplitInput<'_>, out: &Path) -> Result<Result<Split, String>, GymError> {
        let table = |text: &str| Table::from_bytes(text.as_bytes().to_vec());
        let (train, test) = (table(&self.train), table(&self.test));
        for (name, made, real) in [
            ("test", &test, input.test),
            ("sample_submission", &table(&self.sample_submission), input.sample),
            ("test_answer", &table(&self.test_answer), input.answer),
        ] {
            if made.columns() != real.columns() {
                return Ok(Err(format!(
                    "{CUSTOM_SPLIT}: the columns of '{name}' are not those of the real file"
                )));
            }
            if made.is_empty() {
                return Ok(Err(format!("{CUSTOM_SPLIT}: '{name}' has no rows")));
            }
        }
        let side = side_files(input);
        for name in self.exclude.iter().chain(self.rename.keys()) {
            if !side.contains(name) {
                return Ok(Err(format!(
                    "{CUSTOM_SPLIT}: '{name}' is not a public file beside the CSV files"
                )));
            }
        }
        if let Some(bad) = self
            .rename
            .values()
            .find(|to| !Path::new(to).components().all(|c| matches!(c, Component::Normal(_))))
        {
            return Ok(Err(format!(
                "{CUSTOM_SPLIT}: '{bad}' is not a path inside the public folder"
            )));
        }
        let public = out.join("public");
        for name in side.iter().filter(|n| !self.exclude.contains(*n)) {
            link_file(
                &input.public.join(name),
                &public.join(self.rename.get(name).unwrap_or(name)),
            )?;
        }
        for (path, text) in [
            ("public/train.csv", &self.train),
            ("public/test.csv", &self.test),
            ("public/sample_submission.csv", &self.sample_submission),
            ("private/test_answer.csv", &self.test_answer),
        ] {
            let path = out.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(io("create", parent))?;
            }
            std::fs::write(&path, text).map_err(io("write", &path))?;
        }
        let how = self
            .note
            .clone()
            .unwrap_or_else(|| "made by the package's utils/split.py".to_owned());
        Ok(Ok(Split {
            how,
            train_rows: train.len(),
            test_rows: test.len(),
            by_time: false,
            notes: Vec::new(),
        }))
    }
}
