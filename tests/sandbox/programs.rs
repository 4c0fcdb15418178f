//! Every shared program ends in the state that its `expected.json` names, in every back end.

use std::path::Path;
use std::time::Duration;

use clade::sandbox::{CandidateResult, Evaluator, Executor, Grade};
use serde::Deserialize;

use super::support::{Bench, candidate, run};
use crate::shared;

#[derive(Deserialize)]
struct Expected {
    slug: String,
    programs: std::collections::BTreeMap<String, Program>,
}

#[derive(Deserialize)]
struct Program {
    status: String,
    exit_code: Option<i32>,
    score: Option<f64>,
    stderr_has: Option<String>,
    stdout_must_not_have: Option<String>,
    #[serde(default)]
    prints_validation_score: bool,
}

/// The program as the fixture means it. One of them asks for the directory of a bare file name, which does not exist
/// anywhere: it needs a path with a directory.
fn source(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    if text.contains("os.makedirs(os.path.dirname(OUTPUT), exist_ok=True)") {
        return text.replacen("OUTPUT = \"submission.csv\"", "OUTPUT = \"./submission.csv\"", 1);
    }
    text
}

pub async fn check_all<T: Executor + Evaluator>(backend: &T, bench: &Bench, warm: bool) {
    let Some(shared) = shared::folder() else { return };
    let mut folders: Vec<_> = std::fs::read_dir(shared.join("programs"))
        .unwrap()
        .flatten()
        .map(|e| e.path())
        .collect();
    folders.sort();
    assert!(!folders.is_empty(), "there are no programs below {}", shared.display());
    for folder in folders {
        let expected: Expected =
            serde_json::from_str(&std::fs::read_to_string(folder.join("expected.json")).unwrap()).unwrap();
        for (name, program) in &expected.programs {
            let hangs = program.status == "timeout";
            let wall = Duration::from_secs(if hangs { 8 } else { 120 });
            let task = shared.join("tasks").join(&expected.slug);
            let mut job = candidate(&task, source(&folder.join(format!("{name}.py"))), &bench.out, wall);
            (job.warm, job.warm_evaluation) = (warm, warm);
            let result = run(backend, job).await;
            check(&format!("{}/{name}", expected.slug), program, &result);
            assert!(
                !warm || result.job.unwrap().warm,
                "{name} did not start from the warm pool"
            );
        }
    }
}

fn check(name: &str, expected: &Program, result: &CandidateResult) {
    let job = result.job.as_ref().unwrap();
    let stderr = job.stderr.text();
    if let Some(leak) = &expected.stdout_must_not_have {
        let found = job.stdout.text().contains(leak);
        // The attack works where nothing stops it, or the test would prove nothing.
        assert_eq!(
            found,
            job.isolation.grade == Grade::Unsandboxed,
            "{name}: {}",
            job.stdout.text()
        );
        if found {
            return;
        }
    }
    assert_eq!(
        result.state.as_str(),
        expected.status,
        "{name}: {:?}\n{stderr}",
        result.detail
    );
    if let Some(code) = expected.exit_code {
        assert_eq!(job.exit_code, Some(code), "{name}");
    }
    if let Some(text) = &expected.stderr_has {
        assert!(stderr.contains(text), "{name}: {stderr}");
    }
    if expected.prints_validation_score {
        assert!(
            result.self_reported.is_some(),
            "{name}: the printed score was not found"
        );
    }
    if let Some(score) = expected.score {
        let got = result.score.unwrap_or(f64::NAN);
        assert!((got - score).abs() <= 1e-6, "{name}: score {got}, expected {score}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_program_ends_as_expected_in_the_native_back_end() {
    let bench = Bench::new();
    let native = bench.native();
    check_all(&native, &bench, false).await;
    bench.finish(native);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_program_ends_as_expected_without_isolation() {
    let bench = Bench::new();
    let process = bench.process();
    check_all(&process, &bench, false).await;
    bench.finish(process);
}
