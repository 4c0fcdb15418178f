//! Group G, neighbours: jobs beside each other and after each other do not meet.

use clade::sandbox::{JobOutcome, NativeExecutor};

use super::attempts::note;
use super::rows::{Column, Rows};
use crate::sandbox::support::{Backend, Bench, expect_success, program, small_limits, token};

async fn meet(backend: &dyn Backend, bench: &Bench, case: &str, name: &str, pause: &str) -> JobOutcome {
    let mut job = bench.job(&program("meeting.py"), small_limits());
    let variables = [
        ("CASE", case),
        ("GROUP", &group(bench)),
        ("NAME", name),
        ("PAUSE", pause),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    job.env.extend(variables);
    backend.run(job, &token()).await.unwrap()
}

/// Unlike those of tests that run at the same time.
fn group(bench: &Bench) -> String {
    let name = bench.root.path().file_name().unwrap().to_string_lossy();
    name.rsplit(' ').next().unwrap().to_owned()
}

/// Removes what the jobs without a sandbox have left in the places of all.
struct Tidy(String);

impl Drop for Tidy {
    fn drop(&mut self) {
        for place in ["/tmp", "/dev/shm"] {
            for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with(&self.0) {
                    let _ = std::fs::remove_file(entry.path());
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn g38_jobs_at_the_same_time_do_not_meet() {
    let bench = Bench::new();
    let _tidy = Tidy(format!("meeting-{}", group(&bench)));
    let mut rows = Rows::default();
    for backend in bench.every() {
        let run = |name| meet(&*backend, &bench, "G38", name, "2");
        let (a, b) = tokio::join!(run("a"), run("b"));
        for outcome in [a, b] {
            expect_success("meeting.py", &outcome);
            note(Column::of(backend.name()), &outcome.stdout.text(), &mut rows);
        }
        bench.finish(backend);
    }
    rows.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn g39_nothing_is_left_of_the_last_job() {
    let bench = Bench::new();
    let _tidy = Tidy(format!("meeting-{}", group(&bench)));
    let mut rows = Rows::default();
    for backend in bench.every() {
        for name in ["a", "b", "c"] {
            let outcome = meet(&*backend, &bench, "G39", name, "0").await;
            expect_success("meeting.py", &outcome);
            note(Column::of(backend.name()), &outcome.stdout.text(), &mut rows);
        }
        bench.finish(backend);
    }
    rows.check();
}

/// Jails that were made before their job was known.
#[tokio::test(flavor = "multi_thread")]
async fn g39_what_stood_ready_is_new() {
    let bench = Bench::new();
    let mut options = bench.options();
    options.standby = 2;
    let cold = NativeExecutor::new(options).unwrap();
    for name in ["a", "b", "c", "d", "e"] {
        let outcome = meet(&cold, &bench, "G39", name, "0").await;
        let text = outcome.stdout.text();
        assert!(
            text.contains("held") && !text.contains("BREACH"),
            "{text}{}",
            outcome.stderr.text()
        );
    }
    bench.finish(cold);
}
