//! Golden vectors: every case of a file runs through SQL; differences are accepted only by a rule with a reason.

mod expectations;
mod graders;
mod logs;
mod programs;
mod rules;
mod search;
mod utilities;

use std::fs;
use std::path::{Path, PathBuf};

use datafusion::prelude::SessionContext;
use serde_json::Value;

use self::rules::Rules;
use crate::session::{number, session};

/// One recorded case of a file.
pub struct Case {
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

/// How one file is checked.
pub trait Suite {
    /// Name of the file without its ending.
    const FILE: &'static str;
    /// Predicates that rules may name.
    const PREDICATES: &'static [(&'static str, Predicate)] = &[];

    /// Comparisons of a case.
    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check>;
}

fn vector_folder() -> PathBuf {
    std::env::var_os("CLADE_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors"),
        PathBuf::from,
    )
}

fn deviations_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/deviations.toml")
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
    Some(
        cases
            .iter()
            .map(|case| Case {
                name: case["name"].as_str().unwrap_or_default().to_owned(),
                input: case["input"].clone(),
                expected: case["expected"].clone(),
            })
            .collect(),
    )
}

/// Equal up to the last bits of a number.
pub fn agrees(reference: &Value, ours: &Value) -> bool {
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

async fn run<S: Suite>() {
    let Some(cases) = load(S::FILE) else { return };
    let rules = Rules::load(&deviations_file(), S::FILE, S::PREDICATES);
    let context = session();
    let mut used = vec![0_usize; rules.len()];
    let mut compared = 0;
    let mut faults = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let checks = S::checks(&context, case).await;
        assert!(!checks.is_empty(), "{} case {index}: nothing was compared", S::FILE);
        for check in checks {
            compared += 1;
            if let Err(fault) = rules.judge(&check, &mut used) {
                faults.push(format!("case {index} ({}): {fault}\n  {check:?}", case.name));
            }
        }
    }
    faults.extend(rules.unused(&used));
    println!(
        "{}: {} cases, {compared} comparisons, {} accepted by {} rules",
        S::FILE,
        cases.len(),
        used.iter().sum::<usize>(),
        rules.len()
    );
    assert!(
        faults.is_empty(),
        "{}: {} faults\n{}",
        S::FILE,
        faults.len(),
        faults.join("\n")
    );
}

macro_rules! suites {
    ($($test:ident: $suite:ty),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $test() {
                run::<$suite>().await;
            }
        )+
    };
}

suites! {
    evo_normalization: utilities::Normalization,
    evo_softmax: utilities::Softmax,
    evo_parent_utilities: search::ParentUtilities,
    evo_best_node: search::BestNode,
    evo_extract_imports: programs::Imports,
    method_family: programs::MethodFamily,
    evo_error_signature: programs::ErrorSignature,
    code_extraction: programs::CodeExtraction,
    thinking_tags: programs::ThinkingTags,
    log_validation_score: logs::ValidationScore,
    log_clear: logs::ClearLog,
    evo_trim_long_string: logs::TrimLongString,
    evo_prompt_sanitization: logs::PromptSanitization,
    medal_positions: graders::MedalPositions,
    medal_grade: graders::MedalGrade,
    submit_grade_and_medal: graders::SubmitGradeAndMedal,
    reward_signed_score: graders::SignedScore,
}
