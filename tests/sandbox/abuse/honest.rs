//! Group H: what honest programs do works everywhere, or the sandbox would be of no use.

use std::sync::Arc;
use std::time::Duration;

use clade::sandbox::{Limits, NativeExecutor};

use super::attempts::note;
use super::rows::{Column, Rows};
use crate::sandbox::support::{Backend, Bench, expect_success, program, small_limits, token};

/// Things that the program tells of.
const WORK: usize = 13;

#[tokio::test(flavor = "multi_thread")]
async fn h40_honest_programs_work() {
    let bench = Bench::new();
    let mut rows = Rows::default();
    let warm = NativeExecutor::new(bench.options().with_warm_pool()).unwrap();
    let mut backends: Vec<Arc<dyn Backend>> = vec![Arc::new(bench.process()), Arc::new(warm)];
    backends.extend(bench.isolating());
    for backend in backends {
        let limits = Limits {
            memory_bytes: 4 << 30,
            scratch_bytes: 1 << 30,
            wall: Duration::from_secs(900),
            ..small_limits()
        };
        let mut job = bench.job(&program("positive.py"), limits);
        job.warm = true;
        let outcome = backend.run(job, &token()).await.unwrap();
        expect_success(&format!("positive.py in {}", backend.name()), &outcome);
        let done = note(Column::of(backend.name()), &outcome.stdout.text(), &mut rows);
        assert_eq!(done, WORK, "{}", outcome.stdout.text());
        assert_eq!(outcome.state, None, "{:?}", outcome.detail);
        bench.finish(backend);
    }
    rows.check();
}
