//! Files of the user that prompts are made of: what can be wrong with them.

use std::path::{Path, PathBuf};

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
    let file = |reason: String| SourceError::File {
        path: path.to_owned(),
        reason,
    };
    let metadata = std::fs::metadata(path).map_err(|error| file(error.to_string()))?;
    if !metadata.is_file() {
        return Err(file("it is no regular file".to_owned()));
    }
    if metadata.len() > most {
        return Err(file(format!(
            "it has {} bytes, at most {most} are taken",
            metadata.len()
        )));
    }
    let bytes = std::fs::read(path).map_err(|error| file(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| file("it is not UTF-8".to_owned()))
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
