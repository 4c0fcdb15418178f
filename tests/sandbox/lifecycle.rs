//! Ends that the caller brings about.

use std::time::{Duration, Instant};

use clade::sandbox::{Executor, NativeExecutor, SandboxError};
use tokio_util::sync::CancellationToken;

use super::support::{Bench, processes_with, program, small_limits, token};

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_ends_the_job() {
    let bench = Bench::new();
    for backend in bench.isolating() {
        check_cancelling(&*backend, &bench).await;
        bench.finish(backend);
    }
}

async fn check_cancelling(backend: &dyn Executor, bench: &Bench) {
    let cancel = CancellationToken::new();
    let mut job = bench.job(&program("life.py"), small_limits());
    job.env.insert("KIND".to_owned(), "forever".to_owned());
    let begin = Instant::now();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        stop.cancel();
    });
    let error = backend.run(job, &cancel).await.unwrap_err();
    assert!(matches!(error, SandboxError::Cancelled), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(6));
    assert!(processes_with(&bench.mark()).is_empty());
    let error = backend
        .run(bench.job("print(1)", small_limits()), &cancel)
        .await
        .unwrap_err();
    assert!(
        matches!(error, SandboxError::Cancelled),
        "a cancelled token starts nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_future_ends_the_job() {
    let bench = Bench::new();
    for backend in bench.isolating() {
        check_dropping(&*backend, &bench).await;
        bench.finish(backend);
    }
}

async fn check_dropping(backend: &dyn Executor, bench: &Bench) {
    let mut job = bench.job(&program("life.py"), small_limits());
    job.env.insert("KIND".to_owned(), "forever".to_owned());
    let cancel = token();
    let ended = tokio::time::timeout(Duration::from_millis(400), backend.run(job, &cancel)).await;
    assert!(ended.is_err());
    let begin = Instant::now();
    while !processes_with(&bench.mark()).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(5), "the job outlived its caller");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_helper_that_is_none_is_named() {
    let bench = Bench::new();
    let mut options = bench.options();
    options.helper = Some("/bin/true".into());
    let error = NativeExecutor::new(options)
        .unwrap()
        .run(bench.job("print(1)", small_limits()), &token())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("/bin/true"), "{error}");
}
