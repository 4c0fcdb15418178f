//! Files of the user that prompts are made of: what can be wrong with them.

use std::path::{Path, PathBuf};

use crate::named_file;

/// A folder of templates or skills that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The folder cannot be listed.
    #[error("the folder of {what} {} cannot be read: {source}; {setting} names it", path.display())]
    Folder {
        /// templates or skills.
        what: &'static str,
        /// The folder.
        path: PathBuf,
        /// The key of the configuration.
        setting: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// A file cannot be read.
    #[error("{} cannot be used: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A template does not compile or render.
    #[error("the prompt template {origin} is wrong: {reason}")]
    Template {
        /// The file, or the name of a built-in one.
        origin: String,
        /// What minijinja says, with the line.
        reason: String,
    },
}

/// Text of a file of at most so many bytes.
pub(crate) fn read_text(path: &Path, most: u64) -> Result<String, SourceError> {
    named_file::read_text(path, most).map_err(|reason| SourceError::File {
        path: path.to_owned(),
        reason,
    })
}

/// Entries of a folder with their names, sorted; those that begin with a dot are no part of it.
pub(crate) fn entries(
    dir: &Path,
    what: &'static str,
    setting: &'static str,
) -> Result<Vec<(String, PathBuf)>, SourceError> {
    let wrong = |source| SourceError::Folder {
        what,
        path: dir.to_owned(),
        setting,
        source,
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}
