//! Installing the small model.

use std::path::{Path, PathBuf};

use clade_lm::load;

/// The small model, downloaded once. `None` where `CLADE_SKIP_SMOLLM2=1` goes without it.
pub fn smollm2() -> Option<PathBuf> {
    if std::env::var("CLADE_SKIP_SMOLLM2").is_ok_and(|value| value == "1") {
        return None;
    }
    let python = std::env::var_os("CLADE_PYTHON").unwrap_or_else(|| "python3".into());
    let pulled = load::pull_smollm2(Path::new(&python), None);
    Some(pulled.unwrap_or_else(|error| panic!("{error}; CLADE_SKIP_SMOLLM2=1 leaves out the tests on SmolLM2")))
}

#[test]
fn the_model_is_there_and_a_second_pull_needs_no_network() {
    let Some(path) = smollm2() else { return };
    assert!(
        path.ends_with("clade/models/smollm2-135m-instruct.gguf"),
        "{}",
        path.display()
    );
    assert_eq!(load::pull_smollm2(Path::new("/nowhere/python3"), None).unwrap(), path);
}
