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

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_that_of_the_whole_tree() {
    let bench = Bench::new();
    let native = bench.native();
    let code = r#"
import os, time
for _ in range(2):
    if os.fork() == 0:
        block = bytearray(b"x" * (150 << 20))
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        time.sleep(0.4)
        os._exit(0)
os.wait(); os.wait()
"#;
    let outcome = native.run(bench.job(code, small_limits()), &token()).await.unwrap();
    assert_eq!(outcome.end, JobEnd::Exited { code: 0 }, "{}", outcome.stderr.text());
    assert!(
        outcome.peak_memory_bytes.unwrap() > 300 << 20,
        "{:?}",
        outcome.peak_memory_bytes
    );
    assert!(outcome.cpu_seconds.unwrap() > 0.55, "{:?}", outcome.cpu_seconds);
    bench.finish(native);
}

/// Runs in a process of its own, which it shuts off from mounting.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by another test"]
async fn inner_without_mounts() {
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch};
    let bench = Bench::new();
    let native = bench.native();
    let rules = [(libc::SYS_open_tree, vec![])].into();
    let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM as u32),
        arch,
    )
    .unwrap();
    let program: seccompiler::BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter_all_threads(&program).unwrap();
    let error = native
        .run(bench.job("print(1)", small_limits()), &token())
        .await
        .unwrap_err();
    assert!(
        matches!(error, clade::sandbox::SandboxError::Unavailable { .. }),
        "{error}"
    );
    assert_eq!(error.class(), clade::error::ErrorClass::Config);
    let text = error.to_string();
    assert!(
        text.contains("namespaces") && text.contains("Operation not permitted") && text.contains("process"),
        "{text}"
    );
}

#[test]
fn a_machine_without_a_layer_is_refused_in_plain_words() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "sandbox::basics::inner_without_mounts",
            "--ignored",
            "--nocapture",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
