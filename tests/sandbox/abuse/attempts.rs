//! Programs that try something and print what came of it, a line for each attack: `held C13 tracing: ptrace`.

use clade::sandbox::{Executor, JobOutcome, Limits};

use super::rows::{Column, HELD, Rows, WORKS};
use crate::sandbox::support::{Backend, Bench, expect_success, program, small_limits, token};

/// What a program may print, and how the table says it.
const VERBS: &[(&str, &str)] = &[
    ("BREACH", WORKS),
    ("held", HELD),
    ("allowed", "allowed"),
    ("passes", "passes"),
    // The mount table of the kernel says where things lie on the host.
    ("told", "paths are told"),
    // What containers have and jails have not.
    ("harmless", "readable, holds nothing"),
    ("read-only", "read-only"),
    ("ignored", "no effect"),
];
const OF_CONTAINERS: [&str; 3] = ["harmless", "read-only", "ignored"];

/// Runs a program of `tests/abuse` in one back end.
pub async fn run(
    backend: &dyn Executor,
    bench: &Bench,
    name: &str,
    env: &[(&str, &str)],
    limits: Limits,
) -> JobOutcome {
    let mut job = bench.job(&program(name), limits);
    let env = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    job.env.extend(env);
    // Some attacks would hurt a machine that nothing protects.
    if backend.name() != "process" {
        job.env.insert("JAILED".to_owned(), "1".to_owned());
    }
    job.env.insert("BACKEND".to_owned(), backend.name().to_owned());
    backend.run(job, &token()).await.unwrap()
}

/// Runs a program everywhere and takes its lines into the table.
pub async fn attempt(bench: &Bench, name: &str, env: &[(&str, &str)], rows: &mut Rows) {
    let process = bench.process();
    let outcome = run(&process, bench, name, env, small_limits()).await;
    expect_success(name, &outcome);
    note(Column::Without, &outcome.stdout.text(), rows);
    drop(process);
    for backend in bench.isolating() {
        attempt_in(backend, bench, name, env, rows).await;
    }
    rows.fill_untried();
}

async fn attempt_in(
    backend: std::sync::Arc<dyn Backend>,
    bench: &Bench,
    name: &str,
    env: &[(&str, &str)],
    rows: &mut Rows,
) {
    let outcome = run(&*backend, bench, name, env, small_limits()).await;
    expect_success(name, &outcome);
    let column = Column::of(backend.name());
    assert!(note(column, &outcome.stdout.text(), rows) > 0, "{name} tried nothing");
    bench.finish(backend);
}

/// Takes the lines of a program into the table; gives how many there were.
#[track_caller]
pub fn note(column: Column, text: &str, rows: &mut Rows) -> usize {
    for line in text.lines() {
        let (verb, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?} in\n{text}"));
        let (case, attack) = rest.split_once(' ').unwrap_or_else(|| panic!("{line:?} in\n{text}"));
        let (attack, _) = attack.split_once(": ").unwrap_or((attack, ""));
        if verb == "unseen" {
            rows.unseen(case, attack);
            continue;
        }
        let (_, word) = VERBS
            .iter()
            .find(|(known, _)| *known == verb)
            .unwrap_or_else(|| panic!("{line:?} in\n{text}"));
        let is_fitting = column == Column::Docker || !OF_CONTAINERS.contains(&verb);
        assert!(is_fitting, "{line:?} in {column:?}");
        assert!(
            column == Column::Without || *word != WORKS,
            "{line:?} in {column:?}:\n{text}"
        );
        rows.see(column, case, attack, word);
    }
    text.lines().count()
}
