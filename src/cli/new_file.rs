//! A file that is written whole or not at all.

use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::error::CliError;

/// A file under construction: whoever reads the path never sees half of it.
pub struct NewFile {
    path: PathBuf,
    target: Target,
}

/// Where the bytes go.
enum Target {
    /// A file that takes the place of the one of the path in the end.
    Temporary(NamedTempFile),
    /// What the path leads to is no file, such as a device or a pipe: its place is not for us to take.
    Device(File),
}

impl NewFile {
    /// Begins the file of a path. A link is followed.
    pub fn create(path: &Path) -> Result<Self, CliError> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_other = std::fs::metadata(&path).is_ok_and(|found| !found.is_file());
        let target = if is_other {
            let device = File::options().write(true).open(&path);
            Target::Device(device.map_err(CliError::file(&path))?)
        } else {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty())
                .unwrap_or(Path::new("."));
            // Asked first, for the error of a temporary file names that file.
            std::fs::metadata(folder).map_err(CliError::file(&path))?;
            let file = tempfile::Builder::new().prefix(".clade-").tempfile_in(folder);
            Target::Temporary(file.map_err(CliError::file(&path))?)
        };
        Ok(Self { path, target })
    }

    /// Writes the file of a path.
    pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), CliError> {
        let mut file = Self::create(path)?;
        file.file().write_all(bytes.as_ref()).map_err(CliError::file(path))?;
        file.keep()
    }

    /// What is written to.
    pub fn file(&mut self) -> &mut File {
        match &mut self.target {
            Target::Temporary(file) => file.as_file_mut(),
            Target::Device(device) => device,
        }
    }

    /// The same file for a writer that wants to own it.
    pub fn reopen(&self) -> Result<File, CliError> {
        let file = match &self.target {
            Target::Temporary(file) => file.reopen(),
            Target::Device(device) => device.try_clone(),
        };
        file.map_err(CliError::file(&self.path))
    }

    /// Gives the file its name.
    pub fn keep(self) -> Result<(), CliError> {
        let Target::Temporary(file) = self.target else {
            return Ok(());
        };
        let file = file
            .persist(&self.path)
            .map_err(|error| CliError::file(&self.path)(error.error))?;
        // A temporary file is private; a result is not.
        file.set_permissions(Permissions::from_mode(0o644))
            .map_err(CliError::file(&self.path))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read;
    use std::os::unix::fs::FileTypeExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_link_is_followed_and_a_pipe_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        NewFile::write(&link, "new").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert!(link.symlink_metadata().unwrap().is_symlink());

        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                let mut text = String::new();
                File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
                text
            }
        });
        NewFile::write(&pipe, "through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(pipe.metadata().unwrap().file_type().is_fifo());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn what_was_there_stays_when_nothing_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        std::fs::write(&path, "old").unwrap();
        let mut file = NewFile::create(&path).unwrap();
        file.file().write_all(b"half").unwrap();
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(NewFile::create(folder.path()).is_err());
    }
}
