//! Skills: notes of the user that enter the prompts of a task, or of every task.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::gym::validate_task_name;
use crate::templates::{SourceError, entries, read_text};

/// Notes for every task.
const GENERAL: &str = "general.md";
/// What people explain the folder with.
const README: &str = "readme.md";
/// Largest file.
const MOST_BYTES: u64 = 64 << 10;
/// Key of the configuration.
const SETTING: &str = "prompts.skills";

/// A file of notes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Skill {
    /// File name and the first digits of the hash of its text.
    version: String,
    text: String,
}

/// Notes by task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skills {
    general: Option<Skill>,
    tasks: BTreeMap<String, Skill>,
}

/// Notes that enter a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SkillTexts {
    /// For every task.
    pub general: Option<String>,
    /// For this one.
    pub task: Option<String>,
}

impl Skills {
    /// Reads a folder: `general.md` is for every task, `<task>.md` for one.
    ///
    /// # Errors
    /// When the folder or a file cannot be read, or a file is neither of the two.
    pub fn read(dir: &Path) -> Result<Self, SourceError> {
        let mut skills = Self::default();
        for (name, path) in entries(dir, "skills", SETTING)? {
            let refuse = |reason: &str| SourceError::File {
                path: path.clone(),
                reason: format!("{reason}; a skill is a file <task>.md, or {GENERAL} for every task"),
            };
            if name.eq_ignore_ascii_case(README) {
                continue;
            }
            let Some(task) = name.strip_suffix(".md") else {
                return Err(refuse("it is no Markdown file"));
            };
            if name != GENERAL && validate_task_name(task).is_err() {
                return Err(refuse(&format!("'{task}' cannot be the name of a task")));
            }
            let text = read_text(&path, MOST_BYTES)?.trim().to_owned();
            if text.is_empty() {
                return Err(refuse("it is empty"));
            }
            let hash = hex::encode(&Sha256::digest(&text)[..6]);
            let skill = Skill {
                version: format!("{name}@{hash}"),
                text,
            };
            if name == GENERAL {
                skills.general = Some(skill);
            } else {
                skills.tasks.insert(task.to_owned(), skill);
            }
        }
        Ok(skills)
    }

    /// Tasks that have notes of their own.
    pub fn tasks(&self) -> impl Iterator<Item = &str> {
        self.tasks.keys().map(String::as_str)
    }

    /// Notes for a task.
    pub fn of(&self, task_id: &str) -> SkillTexts {
        let text = |skill: Option<&Skill>| skill.map(|skill| skill.text.clone());
        SkillTexts {
            general: text(self.general.as_ref()),
            task: text(self.tasks.get(task_id)),
        }
    }

    /// Versions of the notes that a prompt for a task holds.
    pub(super) fn versions(&self, task_id: &str, texts: &SkillTexts) -> Vec<String> {
        let general = self.general.as_ref().filter(|_| texts.general.is_some());
        let task = self.tasks.get(task_id).filter(|_| texts.task.is_some());
        general
            .into_iter()
            .chain(task)
            .map(|skill| skill.version.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        dir
    }

    #[test]
    fn a_task_has_its_notes_and_the_general_ones() {
        let dir = folder(&[
            ("general.md", b"Be honest.\n"),
            ("abalone.md", b"Rings are skewed."),
            ("README.md", b"how to"),
            (".DS_Store", b"\0"),
        ]);
        let skills = Skills::read(dir.path()).unwrap();
        let texts = skills.of("abalone");
        assert_eq!(texts.general.as_deref(), Some("Be honest."));
        assert_eq!(texts.task.as_deref(), Some("Rings are skewed."));
        let versions = skills.versions("abalone", &texts);
        assert!(versions[0].starts_with("general.md@") && versions[1].starts_with("abalone.md@"));
        assert_eq!(skills.of("other").task, None);
        assert_eq!(skills.tasks().collect::<Vec<_>>(), ["abalone"]);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (name, bytes, part) in [
            ("notes.txt", b"x".as_slice(), "no Markdown file"),
            ("not a task.md", b"x", "cannot be the name of a task"),
            ("empty.md", b" \n", "it is empty"),
            ("latin.md", b"\xE9", "not UTF-8"),
            ("large.md", &[b'x'; 70_000], "at most 65536"),
        ] {
            let dir = folder(&[(name, bytes)]);
            let error = Skills::read(dir.path()).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(part), "{error}");
        }
        let error = Skills::read(Path::new("/no/skills")).unwrap_err().to_string();
        assert!(
            error.contains("/no/skills") && error.contains("prompts.skills"),
            "{error}"
        );
    }
}
