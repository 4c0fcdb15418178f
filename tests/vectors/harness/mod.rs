//! Golden vectors: every case of a file is compared with what the reference gave; differences are accepted only by a rule of
//! `deviations.toml` with a reason.
#![allow(clippy::print_stdout, reason = "what was compared is said")]

mod expectations;
mod rules;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use self::rules::Rules;

/// One recorded case of a file.
pub struct Case {
    /// Place in the file, from 0.
    pub index: usize,
    pub name: String,
    pub input: Value,
    pub expected: Value,
}

/// One comparison: what went in, what the reference gave and what we give.
#[derive(Debug)]
pub struct Check {
    /// What is compared, for messages.
    pub what: String,
    pub input: Value,
    pub reference: Value,
    pub ours: Value,
}

impl Check {
    pub fn new(what: impl Into<String>, input: &Value, reference: &Value, ours: Value) -> Self {
        Self {
            what: what.into(),
            input: input.clone(),
            reference: reference.clone(),
            ours,
        }
    }
}

/// Whether a rule speaks about a comparison.
pub type Predicate = fn(&Check) -> bool;

/// A number as the vectors write it: NaN and infinities are words.
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(word) => match word.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// The folder of the repository; the tests of every crate are built inside it.
fn repository() -> &'static Path {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder
        .ancestors()
        .find(|folder| folder.join("tests/vectors/deviations.toml").exists())
        .unwrap_or_else(|| panic!("no deviations.toml above {}", crate_folder.display()))
}

fn vector_folder() -> PathBuf {
    std::env::var_os("CLADE_VECTORS").map_or_else(|| repository().join("../shared/vectors"), PathBuf::from)
}

/// Cases of a file; nothing when there are no vectors here and that was said to be fine.
fn load(file: &str) -> Option<Vec<Case>> {
    let path = vector_folder().join(format!("{file}.json"));
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(_) if std::env::var("CLADE_SKIP_SHARED").as_deref() == Ok("1") => {
            println!("{file}: skipped, {} is missing", path.display());
            return None;
        }
        Err(error) => panic!(
            "cannot read the golden vectors {}: {error}; set CLADE_VECTORS to their folder, or CLADE_SKIP_SHARED=1 to go without them",
            path.display()
        ),
    };
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let cases = document["cases"]
        .as_array()
        .unwrap_or_else(|| panic!("{}: no cases", path.display()));
    let cases = cases.iter().enumerate().map(|(index, case)| Case {
        index,
        name: case["name"].as_str().unwrap_or_default().to_owned(),
        input: case["input"].clone(),
        expected: case["expected"].clone(),
    });
    Some(cases.collect())
}

/// Equal up to the last bits of a number.
fn agrees(reference: &Value, ours: &Value) -> bool {
    match (reference, ours) {
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| agrees(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, left)| right.get(key).is_some_and(|right| agrees(left, right)))
        }
        _ => match (number(reference), number(ours)) {
            (Some(left), Some(right)) => {
                left == right
                    || (left.is_nan() && right.is_nan())
                    || (left - right).abs() <= 1e-12 * left.abs().max(right.abs()) + 1e-15
            }
            _ => reference == ours,
        },
    }
}

/// Compares all cases of a file. `predicates` are those that its rules may name.
pub async fn compare(file: &str, predicates: &[(&str, Predicate)], checks: impl AsyncFn(&Case) -> Vec<Check>) {
    let Some(cases) = load(file) else { return };
    let rules = Rules::load(&repository().join("tests/vectors/deviations.toml"), file, predicates);
    let mut used = vec![0_usize; rules.len()];
    let mut compared = 0;
    let mut faults = Vec::new();
    for case in &cases {
        let checks = checks(case).await;
        assert!(!checks.is_empty(), "{file} case {}: nothing was compared", case.index);
        for check in checks {
            compared += 1;
            if let Err(fault) = rules.judge(&check, &mut used) {
                faults.push(format!("case {} ({}): {fault}\n  {check:?}", case.index, case.name));
            }
        }
    }
    faults.extend(rules.unused(&used));
    println!(
        "{file}: {} cases, {compared} comparisons, {} accepted by {} rules",
        cases.len(),
        used.iter().sum::<usize>(),
        rules.len()
    );
    assert!(
        faults.is_empty(),
        "{file}: {} faults\n{}",
        faults.len(),
        faults.join("\n")
    );
}
