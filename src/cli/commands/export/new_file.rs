//! A file that is written whole or not at all.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::cli::error::CliError;

/// A file under construction: whoever reads the path never sees half of it.
pub struct NewFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl NewFile {
    /// Begins the file of a path.
    pub fn create(path: &Path) -> Result<Self, CliError> {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let file = tempfile::Builder::new()
            .prefix(".clade-export-")
            .tempfile_in(folder)
            .map_err(CliError::file(folder))?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// What is written to.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// The same file for a writer that wants to own it.
    pub fn reopen(&self) -> Result<File, CliError> {
        self.file.reopen().map_err(CliError::file(&self.path))
    }

    /// Gives the file its name.
    pub fn keep(self) -> Result<(), CliError> {
        let file = self
            .file
            .persist(&self.path)
            .map_err(|error| CliError::file(&self.path)(error.error))?;
        // A temporary file is private; a result is not.
        file.set_permissions(Permissions::from_mode(0o644))
            .map_err(CliError::file(&self.path))
    }
}
