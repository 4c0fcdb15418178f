//! Definitions of suites: a name for a list of tasks, in TOML. Some are shipped.

use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;

use super::error::{Result, SuiteError};
use crate::named_file;

/// Most characters of a short name.
const SHORT_NAME_LENGTH: usize = 40;

/// Largest definition.
const MOST_BYTES: u64 = 1 << 20;

/// The shipped definitions.
const SHIPPED: [(&str, &str); 1] = [(
    "mle-bench-lite",
    include_str!("../../configs/suites/mle-bench-lite.toml"),
)];

/// A list of tasks with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Name, or path of the file.
    pub name: String,
    /// What it is.
    pub title: Option<String>,
    /// Tasks.
    pub tasks: Vec<String>,
    /// Searches of each task, unless the user says otherwise.
    pub repeats: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: Option<String>,
    tasks: Vec<String>,
    repeats: Option<u64>,
}

impl Definition {
    /// Names of the shipped definitions.
    pub fn shipped() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// The shipped definition of a name, else the one in a file.
    ///
    /// # Errors
    /// When there is neither, or it is wrong.
    pub fn find(name: &str) -> Result<Self> {
        if let Some((name, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            return Self::parse(name, text);
        }
        let unreadable = |reason: String| SuiteError::Unreadable {
            origin: name.to_owned(),
            reason,
        };
        let metadata = match std::fs::metadata(name) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(SuiteError::Unknown {
                    name: name.to_owned(),
                    known: Self::shipped().collect(),
                });
            }
            Err(error) => return Err(unreadable(error.to_string())),
        };
        if metadata.is_dir() {
            return Err(unreadable(
                "it is a folder, and a suite is a file such as my.toml that names its tasks".to_owned(),
            ));
        }
        let text = named_file::read_text(Path::new(name), MOST_BYTES).map_err(unreadable)?;
        Self::parse(name, &text)
    }

    /// A short name for runs of it: that of the definition, or of its file. It leaves room for a time behind it, and begins as no
    /// option of the command line does.
    pub fn short_name(&self) -> String {
        let name = Path::new(&self.name).file_stem().unwrap_or_default().to_string_lossy();
        let name: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                    c
                } else {
                    '-'
                }
            })
            .skip_while(|c| !c.is_ascii_alphanumeric())
            .take(SHORT_NAME_LENGTH)
            .collect();
        if name.is_empty() { "suite".to_owned() } else { name }
    }

    fn parse(origin: &str, text: &str) -> Result<Self> {
        let wrong = |message: String| SuiteError::Definition {
            origin: origin.to_owned(),
            message,
        };
        let File { title, tasks, repeats } =
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        if tasks.is_empty() {
            return Err(wrong("it names no task".to_owned()));
        }
        if repeats == Some(0) {
            return Err(wrong("repeats must be at least 1".to_owned()));
        }
        Ok(Self {
            name: origin.to_owned(),
            title,
            tasks,
            repeats,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::gym::validate_task_name;

    #[test]
    fn the_shipped_ones_are_valid() {
        for name in Definition::shipped() {
            let definition = Definition::find(name).unwrap();
            assert!(definition.tasks.iter().all(|task| validate_task_name(task).is_ok()));
            assert_eq!(definition.short_name(), name);
        }
        let lite = Definition::find("mle-bench-lite").unwrap();
        assert_eq!((lite.tasks.len(), lite.repeats), (22, Some(3)));
    }

    #[test]
    fn mistakes_name_the_file_and_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my suite.toml");
        let name = path.to_string_lossy().into_owned();
        for (text, parts) in [
            ("tasks = ['a']\nrepeat = 2\n", ["line 2", "repeat"]),
            ("tasks = []\n", ["my suite.toml", "names no task"]),
            ("tasks = ['a']\nrepeats = 0\n", ["repeats", "at least 1"]),
            ("tasks = 'a'\n", ["line 1", "sequence"]),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Definition::find(&name).unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "{part} is not in {error}");
            }
        }
        std::fs::write(&path, "tasks = ['a', 'b']\n").unwrap();
        assert_eq!(Definition::find(&name).unwrap().short_name(), "my-suite");
        for (stem, short) in [
            ("--ä b", "b"),
            ("ü", "suite"),
            (&*"long".repeat(20), &*"long".repeat(10)),
        ] {
            let path = folder.path().join(format!("{stem}.toml"));
            std::fs::write(&path, "tasks = ['a']\n").unwrap();
            assert_eq!(Definition::find(&path.to_string_lossy()).unwrap().short_name(), short);
        }
        let unknown = Definition::find("nope").unwrap_err().to_string();
        assert!(unknown.contains("mle-bench-lite"), "{unknown}");
    }
}
