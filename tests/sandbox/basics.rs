//! The shape of an outcome, in the native back end and without isolation.

use clade::sandbox::{Cause, Executor, Grade, JobEnd, ResultState};

use super::support::{Bench, small_limits, token};

const GOOD: &str = r#"
import os, sys
rows = open(os.path.join(os.environ["DATA_DIR"], "train.csv")).read()
print("out", len(rows)); print("err", file=sys.stderr)
open("submission.csv", "w").write(rows)
"#;

async fn check_good<T: Executor>(backend: &T, bench: &Bench) {
    let outcome = backend.run(bench.job(GOOD, small_limits()), &token()).await.unwrap();
    assert_eq!(outcome.end, JobEnd::Exited { code: 0 }, "{outcome:?}");
    assert_eq!((outcome.state, outcome.cause), (None, Cause::Exit));
    assert_eq!(
        (outcome.stdout.text().as_str(), outcome.stderr.text().as_str()),
        ("out 9\n", "err\n")
    );
    let submission = outcome.submission.unwrap();
    assert_eq!(std::fs::read_to_string(&submission.path).unwrap(), "id,y\n1,2\n");
    assert_eq!(submission.bytes, 9);
    assert!(outcome.queued_at <= outcome.started_at.unwrap() && outcome.started_at.unwrap() <= outcome.finished_at);
    assert!(outcome.peak_memory_bytes.unwrap() > 1 << 20 && outcome.cpu_seconds.unwrap() > 0.0);
    assert_eq!(outcome.isolation.backend, backend.name());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_program_in_the_native_back_end() {
    let bench = Bench::new();
    let native = bench.native();
    check_good(&native, &bench).await;
    assert_eq!(native.isolation().await.unwrap().grade, Grade::Isolated);
    bench.finish(native);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_program_without_isolation() {
    let bench = Bench::new();
    let process = bench.process();
    check_good(&process, &bench).await;
    assert_eq!(process.isolation().await.unwrap().grade, Grade::Unsandboxed);
    bench.finish(process);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_cannot_be_run_is_refused() {
    let bench = Bench::new();
    let native = bench.native();
    for name in ["", "../x.csv", "a/b", ".."] {
        let mut job = bench.job(GOOD, small_limits());
        job.output_name = name.to_owned();
        assert!(native.run(job, &token()).await.is_err(), "{name}");
    }
    let mut job = bench.job(GOOD, small_limits());
    job.data_dir = bench.root.path().join("nowhere");
    let message = native.run(job, &token()).await.unwrap_err().to_string();
    assert!(message.contains("nowhere"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_report_names_every_layer() {
    let bench = Bench::new();
    let native = bench.native();
    let report = native.capabilities().await.unwrap();
    assert!(report.usable);
    for layer in clade::sandbox::Layer::REQUIRED {
        assert!(
            report.layers[&layer].available,
            "{layer:?} is missing: {:?}",
            report.layers[&layer]
        );
    }
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(
        serde_json::from_str::<clade::sandbox::CapabilityReport>(&text).unwrap(),
        report
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_and_signals_are_told_apart() {
    let bench = Bench::new();
    let native = bench.native();
    for (code, end) in [
        ("import os; os._exit(137)", JobEnd::Exited { code: 137 }),
        ("import os; os.kill(os.getpid(), 9)", JobEnd::Signaled { signal: 9 }),
        ("import os; os.kill(os.getpid(), 11)", JobEnd::Signaled { signal: 11 }),
        ("import sys; sys.exit('no')", JobEnd::Exited { code: 1 }),
        ("def f(:", JobEnd::Exited { code: 1 }),
    ] {
        let outcome = native.run(bench.job(code, small_limits()), &token()).await.unwrap();
        assert_eq!(outcome.end, end, "{code}");
        assert_eq!(outcome.state, Some(ResultState::CodeExecutionError));
        assert!(!outcome.oom, "{code}");
    }
}
