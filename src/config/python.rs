//! `[python]`: the interpreter of candidates and metrics.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where a virtual environment keeps its interpreter.
const VENV_PYTHON: &str = ".venv/bin/python";

/// The interpreter of candidates and metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PythonConfig {
    /// Path or name of the interpreter; none to look for a virtual environment.
    pub interpreter: Option<PathBuf>,
}

impl PythonConfig {
    /// The interpreter to use: the configured one, else `.venv/bin/python` beside the store or in `cwd` or one of its
    /// parents, else `python3` of the search path.
    pub fn resolve(&self, store: &Path, cwd: &Path) -> PathBuf {
        if let Some(interpreter) = &self.interpreter {
            // A bare name is looked up on the search path; a path is meant from here, wherever a job starts.
            let is_name = interpreter.components().count() == 1;
            return if is_name {
                interpreter.clone()
            } else {
                cwd.join(interpreter)
            };
        }
        let store = cwd.join(store);
        store
            .parent()
            .into_iter()
            .chain(cwd.ancestors())
            .map(|folder| folder.join(VENV_PYTHON))
            .find(|candidate| candidate.exists())
            .unwrap_or_else(|| PathBuf::from("python3"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn looks_beside_the_store_then_upwards() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        let python = PythonConfig { interpreter: None };
        let elsewhere = tempfile::tempdir().unwrap();
        let venv = root.path().join(VENV_PYTHON);
        std::fs::create_dir_all(venv.parent().unwrap()).unwrap();
        std::fs::write(&venv, "").unwrap();
        assert_eq!(python.resolve(Path::new("store"), &deep), venv);
        assert_eq!(python.resolve(&root.path().join("store"), elsewhere.path()), venv);
        let configured = PythonConfig {
            interpreter: Some("python3.12".into()),
        };
        assert_eq!(
            configured.resolve(Path::new("store"), &deep),
            PathBuf::from("python3.12")
        );
    }
}
