//! Packages that candidates can import, asked of their interpreter once a process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::sync::OnceCell;

/// Prints version and packages as JSON.
const QUESTION: &str = include_str!("python/packages.py");
/// Packages that programs of this kind import, the most usual first.
const USUAL: &str = include_str!("../../configs/prompts/packages.txt");
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

#[derive(Debug, Deserialize)]
struct Answer {
    python: String,
    packages: BTreeMap<String, String>,
}

/// The interpreter of candidates.
#[derive(Debug)]
pub struct Interpreter {
    python: PathBuf,
    packages: OnceCell<Packages>,
}

impl Interpreter {
    /// An interpreter that is asked when it is first wanted.
    pub fn new(python: PathBuf) -> Self {
        Self {
            python,
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
        let answer = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        Ok(Packages::of(answer))
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
    use super::*;

    #[test]
    fn the_usual_packages_come_first_and_many_others_are_counted() {
        let answer = |others: usize| Answer {
            python: "3.12.1".to_owned(),
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
