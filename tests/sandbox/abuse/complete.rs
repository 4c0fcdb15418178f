//! Case H41: the tables are whole, and an attack that is held has been seen to work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::rows::{Column, HELD, NOT_TRIED, Rows, WORKS, documented};

/// Cases of which nothing is tried without a sandbox, and why.
const WITHOUT_CONTROL: &[(&str, &str)] = &[
    ("B9", "there may be no network that could answer"),
    ("B12", "there may be no network that could answer"),
    ("D17", "it would take the machine's processes"),
    ("D22", "the limits of the tests are those of the machine"),
    ("E30", "there is nobody who watches over a plain process"),
    ("F34", "the process that swaps would live on"),
];

fn cases() -> Vec<String> {
    let groups = [
        ("A", 1..=7),
        ("B", 8..=12),
        ("C", 13..=16),
        ("D", 17..=23),
        ("E", 24..=31),
    ];
    let more = [("F", 32..=35), ("G", 36..=39), ("H", 40..=41), ("I", 42..=44)];
    let all = groups.into_iter().chain(more);
    all.flat_map(|(group, numbers)| numbers.map(move |number| format!("{group}{number}")))
        .collect()
}

#[test]
fn h41_every_case_has_rows_and_a_control() {
    let mut words: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in documented().into_iter().filter(|row| row[0] != "H41") {
        assert_eq!(row.len(), 5, "{row:?}");
        assert!(row[3] != WORKS && row[4] != WORKS, "{row:?}");
        assert!(!row.contains(&"not run".to_owned()), "{row:?}");
        words.entry(row[0].clone()).or_default().insert(row[2].clone());
    }
    let cases = cases();
    assert_eq!(cases.len(), 44);
    let mut missing = cases.iter().filter(|case| *case != "H41" && !words.contains_key(*case));
    assert_eq!(missing.next(), None, "is without a row");
    for (case, words) in words {
        let is_tried = words.iter().any(|word| word != NOT_TRIED && word != HELD);
        let excused = WITHOUT_CONTROL.iter().any(|(known, _)| *known == case);
        assert!(is_tried != excused, "{case} without a sandbox: {words:?}");
    }
    let mut rows = Rows::default();
    for column in [Column::Without, Column::Native, Column::Docker] {
        rows.see(column, "H41", "control of the other cases", "passes");
    }
    rows.check();
}

/// A row whose attack nobody tries any more would stay in the page.
#[test]
fn h41_every_row_is_tried_by_a_test() {
    let mut sources = String::new();
    for folder in ["tests/sandbox/abuse", "tests/abuse"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            sources += &std::fs::read_to_string(entry.path()).unwrap();
        }
    }
    for row in documented() {
        assert!(sources.contains(&row[1]), "no test tries {row:?}");
    }
}
