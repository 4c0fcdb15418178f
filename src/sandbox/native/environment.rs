//! Which files of the host an interpreter needs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::protocol::{Environment, Shown};
use super::root::OWN;
use crate::sandbox::SandboxError;

/// What the interpreter says of itself.
#[derive(Debug, Deserialize)]
struct Interpreter {
    prefixes: Vec<PathBuf>,
    path: Vec<PathBuf>,
    executable: PathBuf,
    files: Vec<PathBuf>,
}

/// Printed as JSON: prefixes, import path, executable, and the shared objects that are loaded from elsewhere.
const QUESTION: &str = r#"
import json, os, sys
maps = set()
try:
    import ssl, sqlite3, ctypes, bz2, lzma, zlib
except Exception:
    pass
try:
    with open("/proc/self/maps") as f:
        maps = {line.split(None, 5)[5].strip() for line in f if len(line.split(None, 5)) == 6}
except OSError:
    pass
chain, link = [], sys.executable
for _ in range(20):
    chain.append(os.path.abspath(link))
    if not os.path.islink(link):
        break
    link = os.path.join(os.path.dirname(link), os.readlink(link))
print(json.dumps({
    "prefixes": [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix],
    "path": [p for p in sys.path if p and os.path.exists(p)],
    "executable": sys.executable,
    "files": chain + [os.path.realpath(sys.executable)] + sorted(m for m in maps if m.startswith("/")),
}))
"#;

/// Directories of the system that programs of the usual kind need, where they exist.
const SYSTEM: [&str; 6] = ["/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin"];
/// Files of the system, likewise.
const SYSTEM_FILES: [&str; 3] = ["/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"];

impl Environment {
    /// Asks `python` and adds what the user wants to show as well.
    pub(super) fn of(python: &Path, extra: &[PathBuf], hidden: &[PathBuf]) -> Result<Self, SandboxError> {
        let interpreter = ask(python)?;
        let mut environment = Self {
            python: interpreter.executable.clone(),
            ..Self::default()
        };
        let mut wanted: BTreeSet<PathBuf> = BTreeSet::new();
        for place in SYSTEM {
            match std::fs::read_link(place) {
                Ok(target) => environment.links.push((PathBuf::from(place), target)),
                Err(_) if Path::new(place).is_dir() => {
                    wanted.insert(PathBuf::from(place));
                }
                Err(_) => {}
            }
        }
        wanted.extend(SYSTEM_FILES.iter().map(PathBuf::from).filter(|path| path.exists()));
        let own = interpreter
            .prefixes
            .into_iter()
            .chain(interpreter.path)
            .chain(interpreter.files);
        wanted.extend(
            own.chain(extra.iter().cloned())
                .filter(|path| path.is_absolute() && path.exists()),
        );
        check_own(&wanted)?;
        let linked = environment.links.clone();
        let below_link = |path: &Path| linked.iter().any(|(link, _)| path.starts_with(link));
        // Shorter paths sort first, so a directory stands before everything below it.
        for path in wanted {
            if below_link(&path) || environment.visible.iter().any(|shown| path.starts_with(&shown.target)) {
                continue;
            }
            if path == Path::new("/") {
                return Err(SandboxError::Interpreter {
                    path: python.to_owned(),
                    reason: "its prefix is the root directory, and that cannot be shown to a candidate".to_owned(),
                });
            }
            environment.visible.push(Shown {
                source: path.clone(),
                target: path,
            });
        }
        environment.check_hidden(hidden)?;
        Ok(environment)
    }

    /// Shows a root tree, as `clade sandbox image build --rootfs` makes one, in the place of the host's files. `python` is a path in it.
    pub(super) fn of_tree(
        root: &Path,
        python: &Path,
        extra: &[PathBuf],
        hidden: &[PathBuf],
    ) -> Result<Self, SandboxError> {
        let inside = |place: &Path| root.join(place.strip_prefix("/").unwrap_or(place));
        // The interpreter may be a link that leads somewhere only inside the tree.
        if !python.is_absolute() || inside(python).symlink_metadata().is_err() {
            return Err(SandboxError::Interpreter {
                path: python.to_owned(),
                reason: format!(
                    "it is not in the root tree {}; clade sandbox image build --rootfs makes one with it",
                    root.display()
                ),
            });
        }
        let mut environment = Self {
            python: python.to_owned(),
            ..Self::default()
        };
        for place in SYSTEM.into_iter().chain(["/opt"]).chain(SYSTEM_FILES).map(Path::new) {
            let source = inside(place);
            match std::fs::read_link(&source) {
                Ok(target) => environment.links.push((place.to_owned(), target)),
                Err(_) if source.exists() => environment.visible.push(Shown {
                    source,
                    target: place.to_owned(),
                }),
                Err(_) => {}
            }
        }
        environment.visible.extend(extra.iter().map(|path| Shown {
            source: path.clone(),
            target: path.clone(),
        }));
        environment.check_hidden(hidden)?;
        Ok(environment)
    }

    /// Refuses an environment that shows what must stay hidden.
    fn check_hidden(&self, hidden: &[PathBuf]) -> Result<(), SandboxError> {
        for secret in hidden {
            let secret = secret.canonicalize().unwrap_or_else(|_| secret.clone());
            let shown = self.visible.iter().map(|shown| &shown.source).find(|path| {
                let path = path.canonicalize().unwrap_or_else(|_| (*path).clone());
                secret.starts_with(&path)
            });
            if let Some(shown) = shown {
                return Err(SandboxError::Config(format!(
                    "{} lies below {}, which every candidate can read; move it to another place",
                    secret.display(),
                    shown.display()
                )));
            }
        }
        Ok(())
    }
}

/// Refuses files that the candidate's own places would cover.
fn check_own(wanted: &BTreeSet<PathBuf>) -> Result<(), SandboxError> {
    match wanted.iter().find(|path| path.starts_with(OWN)) {
        None => Ok(()),
        Some(covered) => Err(SandboxError::Config(format!(
            "{} lies below {OWN}, where every candidate has its own files; move it to another place",
            covered.display()
        ))),
    }
}

fn ask(python: &Path) -> Result<Interpreter, SandboxError> {
    let fail = |reason: String| SandboxError::Interpreter {
        path: python.to_owned(),
        reason,
    };
    let output = Command::new(python)
        .args(["-I", "-B", "-c", QUESTION])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| fail(format!("it does not start: {e}")))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(fail(format!(
            "it ended with {}: {}",
            output.status,
            text.lines().last().unwrap_or("no message")
        )));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| fail(format!("it gave no usable answer: {e}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shown(visible: &[&str]) -> Environment {
        Environment {
            visible: visible
                .iter()
                .map(|path| Shown {
                    source: PathBuf::from(path),
                    target: PathBuf::from(path),
                })
                .collect(),
            ..Environment::default()
        }
    }

    #[test]
    fn hidden_places_must_not_be_shown() {
        assert!(
            shown(&["/usr"])
                .check_hidden(&[PathBuf::from("/usr/share/clade-store")])
                .is_err()
        );
        assert!(
            shown(&["/usr"])
                .check_hidden(&[PathBuf::from("/home/me/clade-store")])
                .is_ok()
        );
    }

    #[test]
    fn files_below_the_candidates_own_places_are_refused() {
        let place = |path: &str| BTreeSet::from([PathBuf::from("/usr"), PathBuf::from(path)]);
        let error = check_own(&place("/candidate/env/bin/python")).unwrap_err().to_string();
        assert!(error.contains("/candidate/env/bin/python"), "{error}");
        // Folders that users have, also where they end like the candidate's own.
        assert!(check_own(&place("/scratch/env/bin/python")).is_ok());
        assert!(check_own(&place("/data/env/bin/python")).is_ok());
    }

    #[test]
    fn a_tree_without_the_interpreter_is_refused() {
        let tree = tempfile::tempdir().unwrap();
        let python = Path::new("/opt/venv/bin/python3");
        let error = Environment::of_tree(tree.path(), python, &[], &[]).unwrap_err();
        assert!(error.to_string().contains("--rootfs"), "{error}");
        std::fs::create_dir_all(tree.path().join("opt/venv/bin")).unwrap();
        std::os::unix::fs::symlink("/usr/bin/python3", tree.path().join("opt/venv/bin/python3")).unwrap();
        std::os::unix::fs::symlink("usr/bin", tree.path().join("bin")).unwrap();
        let environment = Environment::of_tree(tree.path(), python, &[], &[]).unwrap();
        assert_eq!(environment.links, [(PathBuf::from("/bin"), PathBuf::from("usr/bin"))]);
        assert_eq!(environment.visible.len(), 1);
        assert_eq!(environment.visible[0].target, PathBuf::from("/opt"));
    }

    #[test]
    fn a_missing_interpreter_is_named() {
        let error = Environment::of(Path::new("/no/python"), &[], &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("/no/python"), "{error}");
    }
}
