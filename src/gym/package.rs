//! Reading a package's folder: which files belong to it, which role each has, and their hashes.

use std::fs;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::gym::error::{GymError, io};

/// Part that a file plays in a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileRole {
    /// Shown to candidates.
    Public,
    /// Hidden answers.
    Private,
    /// The metric and other programs of the package.
    Utils,
    /// Data as it came; hashed, but not copied into the store.
    Raw,
    /// Leaderboard, manifest, licence.
    Meta,
}

impl FileRole {
    /// Name as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Utils => "utils",
            Self::Raw => "raw",
            Self::Meta => "meta",
        }
    }
}

/// A file of a package.
#[derive(Debug, Clone)]
pub struct PackageFile {
    /// Path inside the package, with `/`.
    pub path: String,
    /// Its role.
    pub role: FileRole,
    /// Where its bytes are.
    pub source: PathBuf,
}

/// A file with its measured content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashedFile {
    /// Path inside the package, with `/`.
    pub path: String,
    /// Its role.
    pub role: FileRole,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes, in hexadecimal digits.
    pub sha256: String,
}

/// Files at the top of a package that belong to it.
pub const LEADERBOARDS: [&str; 3] = [
    "leaderboard.csv",
    "public_leaderboard.csv",
    "info/public_leaderboard.csv",
];
/// Path of the manifest.
pub const MANIFEST: &str = "task.toml";

/// Folders of a package and the role of what they hold.
const TREES: [(&str, FileRole); 4] = [
    ("data/public", FileRole::Public),
    ("data/private", FileRole::Private),
    ("utils", FileRole::Utils),
    ("raw", FileRole::Raw),
];

/// Names that tools leave behind; they are no part of a package.
const LEFTOVERS: [&str; 5] = [
    ".DS_Store",
    "Thumbs.db",
    "__pycache__",
    "__MACOSX",
    ".ipynb_checkpoints",
];
const MAX_DEPTH: usize = 64;

/// The files of a package.
#[derive(Debug)]
pub struct Package {
    /// Real path of the folder.
    pub root: PathBuf,
    /// Files, sorted by path.
    pub files: Vec<PackageFile>,
    /// Entries that belong to no part of a package and were left out.
    pub ignored: Vec<String>,
}

impl Package {
    /// Lists the files of the package in a folder. What candidates see is exactly what lies under `data/public`.
    pub fn scan(path: &Path) -> Result<Self, GymError> {
        let root = path.canonicalize().map_err(io("open", path))?;
        if !root.is_dir() {
            return Err(GymError::package(
                path,
                "a task package is a folder; unpack the archive first",
            ));
        }
        if !root.join("data").is_dir() {
            return Err(GymError::package(
                path,
                "there is no folder 'data'; a package holds data/public, data/private and utils",
            ));
        }
        let mut package = Self {
            root: root.clone(),
            files: Vec::new(),
            ignored: Vec::new(),
        };
        for (tree, role) in TREES {
            let folder = root.join(tree);
            if folder.symlink_metadata().is_ok_and(|m| m.file_type().is_symlink()) {
                return Err(GymError::package(
                    &folder,
                    "the folder is a link; put the files themselves into the package",
                ));
            }
            if folder.is_dir() {
                package.walk(&folder, &folder, role, 0)?;
            }
        }
        for name in LEADERBOARDS.iter().chain([&MANIFEST]) {
            let file = root.join(name);
            if file.symlink_metadata().is_ok() {
                package.add(&file, &root, FileRole::Meta)?;
            }
        }
        package.note_ignored(
            "",
            &[
                "data",
                "utils",
                "raw",
                "info",
                MANIFEST,
                LEADERBOARDS[0],
                LEADERBOARDS[1],
            ],
        )?;
        package.note_ignored("data", &["public", "private"])?;
        package.note_ignored("info", &["public_leaderboard.csv"])?;
        package.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(package)
    }

    /// A package of a folder, whose files are still to be named.
    pub fn empty(root: PathBuf) -> Self {
        Self {
            root,
            files: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Adds the files below a folder under a place of the package.
    pub fn add_tree(&mut self, folder: &Path, place: &str, role: FileRole) -> Result<(), GymError> {
        let mut part = Self::empty(folder.to_owned());
        part.walk(folder, folder, role, 0)?;
        self.files.extend(part.files.into_iter().map(|file| PackageFile {
            path: format!("{place}/{}", file.path),
            ..file
        }));
        Ok(())
    }

    /// Puts a file in a place of the package; what was there before gives way.
    pub fn put(&mut self, source: &Path, place: &str, role: FileRole) {
        self.files.retain(|file| file.path != place);
        self.files.push(PackageFile {
            path: place.to_owned(),
            role,
            source: source.to_owned(),
        });
    }

    fn note_ignored(&mut self, folder: &str, known: &[&str]) -> Result<(), GymError> {
        let path = self.root.join(folder);
        if !path.is_dir() {
            return Ok(());
        }
        for entry in fs::read_dir(&path).map_err(io("read", &path))? {
            let name = entry
                .map_err(io("read", &path))?
                .file_name()
                .to_string_lossy()
                .into_owned();
            if !known.contains(&name.as_str()) && !LEFTOVERS.contains(&name.as_str()) {
                self.ignored.push(if folder.is_empty() {
                    name
                } else {
                    format!("{folder}/{name}")
                });
            }
        }
        self.ignored.sort();
        Ok(())
    }

    fn walk(&mut self, folder: &Path, tree: &Path, role: FileRole, depth: usize) -> Result<(), GymError> {
        if depth > MAX_DEPTH {
            return Err(GymError::package(
                folder,
                format!("folders are nested deeper than {MAX_DEPTH}"),
            ));
        }
        for entry in fs::read_dir(folder).map_err(io("read", folder))? {
            let entry = entry.map_err(io("read", folder))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(io("read", folder))?);
            if LEFTOVERS.iter().any(|l| entry.file_name() == *l) {
                continue;
            }
            if kind.is_dir() {
                self.walk(&path, tree, role, depth + 1)?;
            } else {
                self.add(&path, tree, role)?;
            }
        }
        Ok(())
    }

    /// Adds a regular file, or a link to one in the same tree.
    fn add(&mut self, path: &Path, tree: &Path, role: FileRole) -> Result<(), GymError> {
        let metadata = path.symlink_metadata().map_err(io("read", path))?;
        let source = if metadata.file_type().is_symlink() {
            let target = path.canonicalize().map_err(io("follow the link", path))?;
            if !target.starts_with(tree) || role == FileRole::Meta {
                return Err(GymError::package(
                    path,
                    format!(
                        "the link leads to {}, out of its part of the package; put the file itself there",
                        target.display()
                    ),
                ));
            }
            target
        } else {
            path.to_owned()
        };
        if !source.metadata().map_err(io("read", &source))?.is_file() {
            return Err(GymError::package(path, "only regular files can belong to a package"));
        }
        self.files.push(PackageFile {
            path: package_path(path, &self.root)?,
            role,
            source,
        });
        Ok(())
    }
}

/// Path inside the package with `/`; names that other systems or tables cannot hold are refused.
fn package_path(path: &Path, root: &Path) -> Result<String, GymError> {
    let relative = path
        .strip_prefix(root)
        .map_err(|_| GymError::package(path, "the file lies outside the package"))?;
    let mut parts = Vec::new();
    for component in relative.components() {
        let name = match component {
            Component::Normal(name) => name.to_str(),
            _ => None,
        };
        match name {
            Some(name) if !name.chars().any(|c| c.is_control() || c == '\\') => parts.push(name),
            _ => {
                return Err(GymError::package(
                    path,
                    "the file's name holds control characters, a backslash or bytes that are not UTF-8",
                ));
            }
        }
    }
    Ok(parts.join("/"))
}

/// Copies a file of the package and measures what was copied; raw files are only measured.
pub fn copy_and_hash(file: &PackageFile, dest_root: &Path) -> Result<HashedFile, GymError> {
    let mut input = fs::File::open(&file.source).map_err(io("open", &file.source))?;
    let dest = dest_root.join(&file.path);
    let mut output = if file.role == FileRole::Raw {
        None
    } else {
        if let Some(parent) = dest.parent() {
            fs::create_dir_all(parent).map_err(io("create", parent))?;
        }
        Some(fs::File::create(&dest).map_err(io("create", &dest))?)
    };
    let mut hasher = Sha256::new();
    let mut buffer = vec![0_u8; 128 * 1024];
    let mut bytes = 0_u64;
    loop {
        let n = input.read(&mut buffer).map_err(io("read", &file.source))?;
        if n == 0 {
            break;
        }
        hasher.update(&buffer[..n]);
        bytes += n as u64;
        if let Some(output) = &mut output {
            output.write_all(&buffer[..n]).map_err(io("write", &dest))?;
        }
    }
    Ok(HashedFile {
        path: file.path.clone(),
        role: file.role,
        bytes,
        sha256: hex::encode(hasher.finalize()),
    })
}

/// Hash of a package: of the sorted paths and hashes of its files.
pub fn package_hash(files: &[HashedFile]) -> String {
    let mut sorted: Vec<&HashedFile> = files.iter().collect();
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    let mut hasher = Sha256::new();
    for file in sorted {
        hasher.update(file.path.as_bytes());
        hasher.update([0]);
        hasher.update(file.sha256.as_bytes());
        hasher.update(b"\n");
    }
    hex::encode(hasher.finalize())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::os::unix::fs::symlink;

    fn package() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("data/public/train.csv", "id,y\n1,0\n"),
            ("data/private/test_answer.csv", "id,y\n2,1\n"),
            ("utils/metric.py", "x = 1\n"),
            ("raw/a.bin", "raw"),
            ("leaderboard.csv", "team,score\n"),
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn roles_and_leftovers() {
        let dir = package();
        fs::write(dir.path().join("notes.md"), "x").unwrap();
        fs::create_dir(dir.path().join("utils/__pycache__")).unwrap();
        fs::write(dir.path().join("utils/__pycache__/m.pyc"), "x").unwrap();
        let package = Package::scan(dir.path()).unwrap();
        let roles: Vec<(&str, &str)> = package
            .files
            .iter()
            .map(|f| (f.path.as_str(), f.role.as_str()))
            .collect();
        assert_eq!(
            roles,
            [
                ("data/private/test_answer.csv", "private"),
                ("data/public/train.csv", "public"),
                ("leaderboard.csv", "meta"),
                ("raw/a.bin", "raw"),
                ("utils/metric.py", "utils"),
            ]
        );
        assert_eq!(package.ignored, ["notes.md"]);
    }

    #[test]
    fn links_out_of_their_tree_are_refused() {
        for target in ["/etc/passwd", "../private/test_answer.csv", "../../../secret"] {
            let dir = package();
            fs::write(dir.path().parent().unwrap().join("secret"), "s").ok();
            symlink(target, dir.path().join("data/public/x.csv")).unwrap();
            let error = Package::scan(dir.path()).unwrap_err().to_string();
            assert!(error.contains("link"), "{target}: {error}");
        }
        let dir = package();
        symlink("train.csv", dir.path().join("data/public/same.csv")).unwrap();
        let package = Package::scan(dir.path()).unwrap();
        assert!(package.files.iter().any(|f| f.path == "data/public/same.csv"));
    }

    #[test]
    fn the_hash_is_of_paths_and_contents() {
        let dir = package();
        let out = tempfile::tempdir().unwrap();
        let files = |d: &Path| -> Vec<HashedFile> {
            Package::scan(d)
                .unwrap()
                .files
                .iter()
                .map(|f| copy_and_hash(f, out.path()).unwrap())
                .collect()
        };
        let first = package_hash(&files(dir.path()));
        assert_eq!(first, package_hash(&files(dir.path())));
        assert!(!out.path().join("raw").exists());
        assert!(out.path().join("data/public/train.csv").exists());
        fs::write(dir.path().join("raw/a.bin"), "raw2").unwrap();
        assert_ne!(first, package_hash(&files(dir.path())));
    }
}
