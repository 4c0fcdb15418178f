//! A package on its way into the store: copied under a name that nothing refers to, checked there, and moved to its place at the end.
//! An import that dies half way leaves only such a folder, which the next import removes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::gym::checks::{
    Check, CheckStatus, DESCRIPTION, METRIC, MISSING_FILES, RawUsage, Tables, check_columns, check_tables, find_leak,
};
use crate::gym::columns::Columns;
use crate::gym::error::{GymError, io};
use crate::gym::instances::check_instances;
use crate::gym::leaderboard::{Leaderboard, Team};
use crate::gym::manifest::Manifest;
use crate::gym::package::{FileRole, HashedFile, LEADERBOARDS, copy_and_hash, package_hash};
use crate::gym::rows::Instance;
use crate::gym::slug::validate_task_name;
use crate::gym::source::{Contents, Source};
use crate::gym::table::Table;

const STAGING: &str = ".staging-";

/// A folder that is removed unless it is moved to its place.
#[derive(Debug)]
pub struct StagingDir {
    path: PathBuf,
}

impl StagingDir {
    fn create(tasks: &Path) -> Result<Self, GymError> {
        fs::create_dir_all(tasks).map_err(io("create", tasks))?;
        sweep(tasks)?;
        let name = format!("{STAGING}{}-{}", std::process::id(), uuid::Uuid::now_v7().simple());
        let path = tasks.join(name);
        fs::create_dir(&path).map_err(io("create", &path))?;
        Ok(Self { path })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the folder to its place. A copy of the same package that is there already stays if it is equal, and is replaced if not.
    pub fn publish(self, place: &Path) -> Result<(), GymError> {
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(io("create", parent))?;
        }
        if place.exists() {
            if same_tree(&self.path, place)? {
                return Ok(());
            }
            let old = self.path.with_extension("old");
            fs::rename(place, &old).map_err(io("move away", place))?;
            let moved = self.move_to(place);
            fs::remove_dir_all(&old).map_err(io("remove", &old))?;
            return moved;
        }
        self.move_to(place)
    }

    fn move_to(self, place: &Path) -> Result<(), GymError> {
        // The files must be on disk before a row can refer to them.
        let folder = fs::File::open(&self.path).map_err(io("open", &self.path))?;
        rustix::fs::syncfs(&folder).map_err(|e| io("sync", &self.path)(e.into()))?;
        fs::rename(&self.path, place).map_err(io("move the package to", place))?;
        if let Some(parent) = place.parent() {
            fs::File::open(parent)
                .and_then(|f| f.sync_all())
                .map_err(io("sync", parent))?;
        }
        Ok(())
    }
}

impl Drop for StagingDir {
    fn drop(&mut self) {
        if self.path.exists()
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!(
                "cannot remove {}: {error}; the next import tries again",
                self.path.display()
            );
        }
    }
}

/// Removes what imports of dead processes left.
fn sweep(tasks: &Path) -> Result<(), GymError> {
    for entry in fs::read_dir(tasks).map_err(io("read", tasks))? {
        let entry = entry.map_err(io("read", tasks))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name
            .strip_prefix(STAGING)
            .and_then(|rest| rest.split('-').next())
            .and_then(|pid| pid.parse::<u32>().ok());
        if let Some(pid) = owner
            && pid != std::process::id()
            && !Path::new("/proc").join(pid.to_string()).exists()
        {
            fs::remove_dir_all(entry.path()).map_err(io("remove", &entry.path()))?;
        }
    }
    Ok(())
}

fn same_tree(a: &Path, b: &Path) -> Result<bool, GymError> {
    let list = |folder: &Path| -> Result<Vec<(std::ffi::OsString, bool)>, GymError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(io("read", folder))? {
            let entry = entry.map_err(io("read", folder))?;
            names.push((entry.file_name(), entry.path().is_dir()));
        }
        names.sort();
        Ok(names)
    };
    let names = list(a)?;
    if names != list(b)? {
        return Ok(false);
    }
    for (name, is_dir) in names {
        let (a, b) = (a.join(&name), b.join(&name));
        let same = if is_dir {
            same_tree(&a, &b)?
        } else {
            fs::read(&a).map_err(io("read", &a))? == fs::read(&b).map_err(io("read", &b))?
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A copied and checked package.
#[derive(Debug)]
pub struct Staged {
    /// The copy.
    pub dir: StagingDir,
    /// Where it came from.
    pub source: PathBuf,
    /// Id of the task.
    pub task_id: String,
    /// Content of `task.toml`.
    pub manifest: Manifest,
    /// Files with their hashes.
    pub files: Vec<HashedFile>,
    /// Hash of the package.
    pub hash: String,
    /// The four tables.
    pub tables: Tables,
    /// Roles of their columns.
    pub columns: Columns,
    /// What candidates read.
    pub description: String,
    /// Text of the metric.
    pub metric_py: String,
    /// Findings so far.
    pub checks: Vec<Check>,
    /// What gives the answers away.
    pub known_leak: Option<String>,
    /// The leaderboard, when there is a sound one.
    pub leaderboard: Option<Leaderboard>,
    /// Instances with published results; none for a task of tables.
    pub instances: Vec<Instance>,
}

impl Staged {
    /// Copies what an import found into the folder of tasks and checks its tables.
    pub fn new(source: Source, tasks_dir: &Path) -> Result<Self, GymError> {
        let Source {
            package,
            manifest,
            contents,
            made,
        } = source;
        let folder = package
            .root
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        let name = manifest.id.clone().unwrap_or(folder);
        let task_id = validate_task_name(&name)
            .map_err(|e| {
                GymError::package(
                    &package.root,
                    format!("{e}; rename the folder or set `id` in task.toml"),
                )
            })?
            .to_owned();
        let dir = StagingDir::create(tasks_dir)?;
        let files = package
            .files
            .iter()
            .map(|f| copy_and_hash(f, dir.path()))
            .collect::<Result<Vec<_>, _>>()?;
        drop(made);
        let root = dir.path();
        let tables = match contents {
            Contents::Tables | Contents::ForeignTables => Tables::read(root)?,
            Contents::Instances { .. } => Tables::default(),
        };
        let columns = match (&tables.sample, &tables.test, &tables.answer) {
            (Some(sample), Some(test), Some(answer)) => Columns::find(sample, test, answer),
            _ => Columns::default(),
        };
        let text = |path: &str| match fs::read(root.join(path)) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(io("read", &root.join(path))(error)),
        };
        let (description, metric_py) = (text(DESCRIPTION)?, text(METRIC)?);
        let (mut checks, instances) = match contents {
            Contents::Tables => (checks_of_tables(root, &tables, false), Vec::new()),
            Contents::ForeignTables => (checks_of_tables(root, &tables, true), Vec::new()),
            Contents::Instances { instances, left_out } => (vec![check_instances(&instances, &left_out)], instances),
        };
        checks.extend(check_columns(&manifest.validation, tables.train.as_ref()));
        let leaderboard = match LEADERBOARDS.iter().find(|path| root.join(path).is_file()) {
            Some(name) => match Leaderboard::read(name, &Table::read(&root.join(name))?) {
                Ok(leaderboard) => Some(leaderboard),
                Err(fault) => {
                    checks.push(fault);
                    None
                }
            },
            None => None,
        };
        checks.extend(RawUsage::find(&package.root, &tables)?.map(|u| u.check()));
        if !package.ignored.is_empty() {
            let detail = format!("no part of a package, not imported: {}", package.ignored.join(", "));
            checks.push(Check::warning("ignored_entries", detail));
        }
        let hash = package_hash(&files);
        let public = files
            .iter()
            .filter(|f| f.role == FileRole::Public)
            .map(|f| (f.path.clone(), f.sha256.clone()))
            .collect();
        let known_leak = manifest
            .known_leak
            .clone()
            .or_else(|| find_leak(root, &public, &tables))
            .or_else(|| same_bytes(&files));
        checks.push(match &known_leak {
            Some(leak) => Check::warning("known_leak", leak.clone()),
            None if instances.is_empty() => Check::passed("known_leak", "no public file holds test answers"),
            None => Check::passed("known_leak", "no public file is the same as a hidden one"),
        });
        let source = package.root;
        Ok(Self {
            dir,
            source,
            task_id,
            manifest,
            files,
            hash,
            tables,
            columns,
            description,
            metric_py,
            checks,
            known_leak,
            leaderboard,
            instances,
        })
    }

    /// Checks that failed.
    pub fn failed(&self) -> Vec<Check> {
        self.checks
            .iter()
            .filter(|c| c.status == CheckStatus::Failed)
            .cloned()
            .collect()
    }

    /// Paths of the public files, relative to the public folder.
    pub fn public_files(&self) -> Vec<String> {
        self.files
            .iter()
            .filter_map(|f| f.path.strip_prefix("data/public/").map(str::to_owned))
            .collect()
    }

    /// Teams of the leaderboard, best first.
    pub fn teams(&mut self, higher_is_better: bool) -> Vec<Team> {
        let Some(leaderboard) = self.leaderboard.take() else {
            return Vec::new();
        };
        self.checks.push(leaderboard.check());
        leaderboard.ranked(higher_is_better)
    }
}

/// Checks of a task's tables. In a foreign layout, rules that only packages of ours must keep are warnings.
fn checks_of_tables(root: &Path, tables: &Tables, is_foreign: bool) -> Vec<Check> {
    let mut checks = check_tables(root, tables);
    if checks.is_empty() {
        let rows = |table: &Option<Table>| table.as_ref().map_or(0, Table::len);
        let detail = format!(
            "train.csv has {} rows, test.csv {}",
            rows(&tables.train),
            rows(&tables.test)
        );
        checks.push(Check::passed("tables", detail));
    }
    if is_foreign {
        let only_ours = |check: &&mut Check| check.status == CheckStatus::Failed && check.id != MISSING_FILES;
        checks
            .iter_mut()
            .filter(only_ours)
            .for_each(|check| check.status = CheckStatus::Warning);
    }
    checks
}

/// A public file with the bytes of a private one.
fn same_bytes(files: &[HashedFile]) -> Option<String> {
    let private = |f: &&HashedFile| f.role == FileRole::Private;
    files
        .iter()
        .filter(|f| f.role == FileRole::Public && f.bytes > 0)
        .find_map(|public| {
            let twin = files.iter().filter(private).find(|f| f.sha256 == public.sha256)?;
            Some(format!("{} is the same file as {}", public.path, twin.path))
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn an_unfinished_import_leaves_nothing() {
        let tasks = tempfile::tempdir().unwrap();
        let dir = StagingDir::create(tasks.path()).unwrap();
        fs::write(dir.path().join("x"), "1").unwrap();
        drop(dir);
        assert_eq!(fs::read_dir(tasks.path()).unwrap().count(), 0);
        // A process id that cannot exist.
        fs::create_dir(tasks.path().join(".staging-4294967294-abc")).unwrap();
        let dir = StagingDir::create(tasks.path()).unwrap();
        assert_eq!(fs::read_dir(tasks.path()).unwrap().count(), 1);
        dir.publish(&tasks.path().join("t/1")).unwrap();
        assert!(tasks.path().join("t/1").is_dir());
    }

    #[test]
    fn publishing_over_a_copy() {
        let tasks = tempfile::tempdir().unwrap();
        let place = tasks.path().join("t/1");
        let staged = |text: &str| {
            let dir = StagingDir::create(tasks.path()).unwrap();
            fs::write(dir.path().join("x"), text).unwrap();
            dir
        };
        staged("a").publish(&place).unwrap();
        staged("a").publish(&place).unwrap();
        assert_eq!(fs::read_to_string(place.join("x")).unwrap(), "a");
        staged("b").publish(&place).unwrap();
        assert_eq!(fs::read_to_string(place.join("x")).unwrap(), "b");
        assert_eq!(fs::read_dir(tasks.path()).unwrap().count(), 1);
    }
}
