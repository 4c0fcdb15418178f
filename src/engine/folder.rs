//! Where a store may be made: a folder that holds nothing of anybody else.

use std::fs::DirEntry;
use std::io::ErrorKind;
use std::path::Path;

use super::error::{EngineError, Result};

/// Beginning of the names of a store's database and its logs.
const DATABASE: &str = "clade.sqlite";
/// Folders of a store.
const FOLDERS: [&str; 5] = ["tables", "blobs", "tasks", "models", "work"];
/// What a file system puts into its topmost folder.
const LOST: &str = "lost+found";

/// Refuses a folder that holds what is no part of a store. What a creation left that was interrupted may stay.
pub(super) fn check_folder(path: &Path) -> Result<()> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(EngineError::Request(format!(
                "{} is a file, and a store is a folder: choose another with --store or CLADE_STORE",
                path.display()
            )));
        }
        Err(source) => {
            return Err(EngineError::Io {
                path: path.to_owned(),
                source,
            });
        }
    };
    let is_begun = path.join(DATABASE).exists();
    let foreign = entries
        .filter_map(std::result::Result::ok)
        .filter(|entry| !is_own(entry, is_begun))
        .map(|entry| entry.file_name())
        .min();
    match foreign {
        None => Ok(()),
        Some(name) => Err(EngineError::Request(format!(
            "{} is no store and not empty, it holds {}: choose a new or an empty folder with --store or CLADE_STORE",
            path.display(),
            name.to_string_lossy()
        ))),
    }
}

fn is_own(entry: &DirEntry, is_begun: bool) -> bool {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    let is_empty = || std::fs::read_dir(entry.path()).is_ok_and(|mut inner| inner.next().is_none());
    name == LOST
        || name.starts_with(DATABASE)
        || (is_begun && name.starts_with("store."))
        || (FOLDERS.contains(&name.as_ref()) && (is_begun || is_empty()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_store_is_made_where_nothing_else_lies() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        check_folder(&at("new")).unwrap();
        check_folder(place.path()).unwrap();
        // What an interrupted creation leaves.
        std::fs::create_dir(at("tables")).unwrap();
        check_folder(place.path()).unwrap();
        for name in ["clade.sqlite", "clade.sqlite-wal", "store.new-1"] {
            std::fs::write(at(name), "").unwrap();
        }
        check_folder(place.path()).unwrap();

        std::fs::write(at("thesis.tex"), "").unwrap();
        let error = check_folder(place.path()).unwrap_err().to_string();
        assert!(
            error.contains("is no store and not empty, it holds thesis.tex"),
            "{error}"
        );
        let error = check_folder(&at("thesis.tex")).unwrap_err().to_string();
        assert!(error.contains("is a file, and a store is a folder"), "{error}");
    }

    #[test]
    fn a_folder_of_packages_is_no_store() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("tasks/abalone")).unwrap();
        let error = check_folder(place.path()).unwrap_err().to_string();
        assert!(error.contains("it holds tasks"), "{error}");
    }
}
