//! The generated reference page.

use std::fs;
use std::path::Path;

use clade_udfs::{all_functions, reference_page};

#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/functions.md");
    let page = reference_page();
    if std::env::var("UPDATE_DOCS").as_deref() == Ok("1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &page).unwrap();
        return;
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "{} is stale; run this test with UPDATE_DOCS=1 to write it",
        path.display()
    );
}

#[test]
fn every_function_is_documented() {
    for function in all_functions() {
        let name = function.name();
        let documentation = function
            .documentation()
            .unwrap_or_else(|| panic!("{name} has no documentation"));
        assert!(
            documentation.syntax_example.starts_with(&format!("{name}(")),
            "{name}: syntax"
        );
        assert!(
            documentation
                .sql_example
                .as_deref()
                .is_some_and(|example| example.contains(name)),
            "{name}: example"
        );
        let documented: Vec<&str> = documentation
            .arguments
            .iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        let parameters = function.signature().parameter_names.clone().unwrap_or_default();
        assert_eq!(documented, parameters, "{name}: arguments");
    }
}
