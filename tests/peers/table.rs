//! The page of faults names tests that exist, and all of those that stand here.

use std::collections::BTreeSet;
use std::path::Path;

/// Names of the test functions below a folder.
fn tests(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.append(&mut tests(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            names.append(&mut tests_of(&std::fs::read_to_string(&path).unwrap()));
        }
    }
    names
}

/// Names of the functions that stand under a test attribute.
fn tests_of(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some((_, rest)) = line.split_once("fn ") {
            if is_test {
                names.insert(rest.split('(').next().unwrap().to_owned());
            }
            is_test = false;
        }
    }
    names
}

#[test]
fn the_page_of_faults_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let known: BTreeSet<String> = ["tests", "src", "catalog", "udfs"]
        .iter()
        .flat_map(|folder| tests(&root.join(folder)))
        .collect();
    let page = std::fs::read_to_string(root.join("docs/peers.md")).unwrap();
    let listed: BTreeSet<String> = page
        .lines()
        .filter(|line| line.starts_with('|'))
        .filter_map(|line| line.trim_end_matches(['|', ' ']).rsplit_once('|'))
        .flat_map(|(_, cell)| cell.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect();
    assert!(listed.len() > 60, "{listed:?}");
    let missing: Vec<&String> = listed.difference(&known).collect();
    assert!(
        missing.is_empty(),
        "docs/peers.md names tests that do not exist: {missing:?}"
    );
    let here = tests(&root.join("tests/peers"));
    let unlisted: Vec<&String> = here
        .difference(&listed)
        .filter(|name| *name != "the_page_of_faults_names_tests_that_exist")
        .collect();
    assert!(unlisted.is_empty(), "docs/peers.md lacks {unlisted:?}");
}
