//! Packages that candidates can import, asked of their interpreter. An interpreter takes a good part of a second to answer, so the
//! answer is kept beside the store for as long as the folders of the packages do not change.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::process::Command;
use tokio::sync::OnceCell;

/// Prints version and packages as JSON.
const QUESTION: &str = include_str!("python/packages.py");
/// Packages that programs of this kind import, the most usual first.
const USUAL: &str = include_str!("../../configs/packages.txt");
/// Packages that install others; programs have no use for them.
const TOOLS: [&str; 4] = ["pip", "setuptools", "wheel", "uv"];
/// Other packages that are named while there are no more of them.
const FEW_OTHERS: usize = 12;
/// A cold start of an interpreter on a slow disk.
const LONGEST: Duration = Duration::from_secs(30);

/// What an interpreter has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Packages {
    /// Version of Python; `None` when it could not be asked.
    pub python: Option<String>,
    /// Packages that a prompt names.
    pub shown: Vec<Package>,
    /// Packages that it does not.
    pub others: usize,
}

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Package {
    /// Name as it is installed.
    pub name: String,
    /// Version.
    pub version: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Answer {
    python: String,
    packages: BTreeMap<String, String>,
    /// The interpreter, and the folders that hold packages.
    folders: Vec<PathBuf>,
}

/// An answer with the state of its folders when it was given.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    answer: Answer,
    changed: Vec<Option<SystemTime>>,
}

impl Kept {
    fn of(answer: Answer) -> Self {
        let changed = answer.folders.iter().map(|folder| changed(folder)).collect();
        Self { answer, changed }
    }

    fn holds(&self) -> bool {
        let now = self.answer.folders.iter().map(|folder| changed(folder));
        now.eq(self.changed.iter().copied())
    }
}

/// When an entry was added to a folder, or taken from it, last.
fn changed(folder: &Path) -> Option<SystemTime> {
    fs::metadata(folder).and_then(|entry| entry.modified()).ok()
}

/// The interpreter of candidates.
#[derive(Debug)]
pub struct Interpreter {
    python: PathBuf,
    kept_in: Option<PathBuf>,
    packages: OnceCell<Packages>,
}

impl Interpreter {
    /// An interpreter that is asked when it is first wanted. Its answer is kept in a folder, where there is one to write to.
    pub fn new(python: PathBuf, kept_in: Option<PathBuf>) -> Self {
        Self {
            python,
            kept_in,
            packages: OnceCell::new(),
        }
    }

    /// What it has. One that does not answer is warned of, and prompts say that its packages are not known.
    pub async fn packages(&self) -> &Packages {
        let ask = async {
            self.ask().await.unwrap_or_else(|reason| {
                tracing::warn!(python = %self.python.display(), reason, "prompts cannot name its packages");
                Packages::default()
            })
        };
        self.packages.get_or_init(|| ask).await
    }

    async fn ask(&self) -> Result<Packages, String> {
        if let Some(answer) = self.kept() {
            return Ok(Packages::of(answer));
        }
        let answer = self.told().await?;
        if let Err(error) = self.keep(answer.clone()) {
            tracing::debug!(python = %self.python.display(), %error, "its packages are asked again by the next process");
        }
        Ok(Packages::of(answer))
    }

    /// Where its answer is kept: what is found under a name depends on the search path.
    fn file(&self) -> Option<PathBuf> {
        let mut hasher = Sha256::new();
        hasher.update(self.python.as_os_str().as_encoded_bytes());
        hasher.update(std::env::var_os("PATH").unwrap_or_default().as_encoded_bytes());
        let name = hex::encode(&hasher.finalize()[..8]);
        Some(self.kept_in.as_ref()?.join(format!("packages-{name}.json")))
    }

    fn kept(&self) -> Option<Answer> {
        let kept: Kept = serde_json::from_slice(&fs::read(self.file()?).ok()?).ok()?;
        kept.holds().then_some(kept.answer)
    }

    /// Written beside and moved: another process reads all of it or nothing.
    fn keep(&self, answer: Answer) -> std::io::Result<()> {
        let Some(file) = self.file() else { return Ok(()) };
        let beside = file.with_extension(format!("{}.part", std::process::id()));
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&beside, serde_json::to_vec(&Kept::of(answer))?)?;
        fs::rename(&beside, &file)
    }

    async fn told(&self) -> Result<Answer, String> {
        let child = Command::new(&self.python)
            .args(["-I", "-B", "-c", QUESTION])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(LONGEST, child)
            .await
            .map_err(|_| format!("no answer within {} s", LONGEST.as_secs()))?
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(error.lines().last().unwrap_or("it says nothing").to_owned());
        }
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
    }
}

impl Packages {
    fn of(answer: Answer) -> Self {
        let mut left = answer.packages;
        left.retain(|name, _| !TOOLS.contains(&name.as_str()));
        let mut shown: Vec<Package> = USUAL
            .lines()
            .filter_map(|name| {
                let version = left.remove(name)?;
                Some(Package {
                    name: name.to_owned(),
                    version,
                })
            })
            .collect();
        if left.len() <= FEW_OTHERS {
            shown.extend(
                left.split_off("")
                    .into_iter()
                    .map(|(name, version)| Package { name, version }),
            );
        }
        Self {
            python: Some(answer.python),
            shown,
            others: left.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn an_answer_is_kept_until_a_package_is_installed() {
        let folder = tempfile::tempdir().unwrap();
        let site = folder.path().join("site-packages");
        fs::create_dir(&site).unwrap();
        let answer = Answer {
            python: "3.12.1".to_owned(),
            packages: BTreeMap::new(),
            folders: vec![site.clone()],
        };
        let interpreter = |name: &str| Interpreter::new(name.into(), Some(folder.path().join("cache")));
        interpreter("python3").keep(answer).unwrap();
        assert!(interpreter("python3").kept().is_some());
        assert!(interpreter("python4").kept().is_none());
        let later = SystemTime::now() + Duration::from_secs(5);
        fs::File::open(&site).unwrap().set_modified(later).unwrap();
        assert!(interpreter("python3").kept().is_none());
        assert!(Interpreter::new("python3".into(), None).kept().is_none());
    }

    #[test]
    fn the_usual_packages_come_first_and_many_others_are_counted() {
        let answer = |others: usize| Answer {
            python: "3.12.1".to_owned(),
            folders: Vec::new(),
            packages: (0..others)
                .map(|n| format!("zz{n:02}"))
                .chain(["pandas".to_owned(), "numpy".to_owned()])
                .map(|name| (name, "1.0".to_owned()))
                .collect(),
        };
        let names = |packages: &Packages| -> Vec<String> {
            packages.shown.iter().map(|package| package.name.clone()).collect()
        };
        let few = Packages::of(answer(1));
        assert_eq!(
            (names(&few), few.others),
            (vec!["numpy".into(), "pandas".into(), "zz00".into()], 0)
        );
        let many = Packages::of(answer(40));
        assert_eq!((names(&many), many.others), (vec!["numpy".into(), "pandas".into()], 40));
    }
}
