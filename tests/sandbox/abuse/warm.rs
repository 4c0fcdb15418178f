//! Group I: the warm pool of jails. Its jobs are forked from one interpreter and share nothing but what it has imported.

use std::collections::BTreeSet;

use clade::sandbox::{Executor, JobEnd, NativeExecutor};

use super::rows::{Column, Rows};
use crate::sandbox::support::{Bench, program, small_limits, token};

/// The other back ends start every interpreter anew.
const NO_POOL: &str = "no warm pool";

#[tokio::test(flavor = "multi_thread")]
async fn i42_i43_i44_jobs_of_one_interpreter_share_nothing() {
    let bench = Bench::new();
    let native = NativeExecutor::new(bench.options().with_warm_pool()).unwrap();
    let mut rows = Rows::default();
    let mut drawn = BTreeSet::new();
    for round in 0..3 {
        let mut job = bench.job(&program("warm.py"), small_limits());
        job.env.insert("FIRST".to_owned(), (round == 0).to_string());
        // Only the first job is told the secret.
        if round == 0 {
            job.env
                .insert("TOKEN".to_owned(), "the-secret-of-an-earlier-job".to_owned());
        }
        job.warm = true;
        let outcome = native.run(job, &token()).await.unwrap();
        assert!(outcome.warm, "not from the warm pool");
        assert_eq!(outcome.end, JobEnd::Exited { code: 0 }, "{}", outcome.stderr.text());
        let text = outcome.stdout.text();
        let (numbers, lines) = text.split_once('\n').unwrap();
        assert!(drawn.insert(numbers.to_owned()), "two jobs drew {numbers}");
        if round > 0 {
            super::attempts::note(Column::Native, lines, &mut rows);
        }
    }
    // What the program looks for is how such places are named.
    let family = std::fs::read_dir(bench.scratch_root())
        .unwrap()
        .flatten()
        .next()
        .unwrap();
    let instance = std::fs::read_dir(family.path()).unwrap().flatten().next().unwrap();
    let place = format!("{}/{}", family.file_name().display(), instance.file_name().display());
    let (user, process) = place.strip_prefix("clade-sandbox-").unwrap().split_once('/').unwrap();
    let (process, random) = process.split_once('-').unwrap();
    assert!(
        user.parse::<u32>().is_ok() && process.parse::<u32>().is_ok() && random.len() == 8,
        "{place}"
    );
    rows.see(
        Column::Native,
        "I43",
        "the same random numbers as another job",
        super::rows::HELD,
    );
    bench.finish(native);
    for (case, attack) in ATTACKS {
        for column in [Column::Without, Column::Docker] {
            rows.see(column, case, attack, NO_POOL);
        }
    }
    rows.check();
}

const ATTACKS: [(&str, &str); 6] = [
    ("I42", "variables of the host"),
    ("I42", "memory of an earlier job"),
    ("I42", "host paths of an earlier job"),
    ("I43", "the same random numbers as another job"),
    ("I44", "library that an earlier job has changed"),
    ("I44", "files that an earlier job has left"),
];
