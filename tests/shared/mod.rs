//! The shared test data: tasks, programs and golden vectors. They are no part of the repository; where they are, they lie beside
//! the checkout or in the folder that `CLADE_SHARED` names.

use std::path::{Path, PathBuf};

/// The folder. Nothing, and a line that says so, where there is none and `CLADE_SKIP_SHARED=1` says that this is fine.
pub fn folder() -> Option<PathBuf> {
    let path = std::env::var_os("CLADE_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    if path.join("tasks").is_dir() {
        return Some(path);
    }
    assert!(
        std::env::var("CLADE_SKIP_SHARED").as_deref() == Ok("1"),
        "{} has no tasks: set CLADE_SHARED to the shared test data, or CLADE_SKIP_SHARED=1 to go without them",
        path.display()
    );
    #[expect(clippy::print_stdout, reason = "what is left out is said")]
    {
        println!("skipped: {} is missing", path.display());
    }
    None
}

/// A file of golden vectors, from the folder that `CLADE_VECTORS` names, else from the shared data.
pub fn vectors(name: &str) -> serde_json::Value {
    let folder =
        std::env::var_os("CLADE_VECTORS").map_or_else(|| folder().unwrap_or_default().join("vectors"), PathBuf::from);
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}
