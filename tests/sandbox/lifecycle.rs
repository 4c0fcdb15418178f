//! Ways not to end, and ends of the processes around a job.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clade::sandbox::{Cause, Executor, JobEnd, JobOutcome, Limits, NativeExecutor, ResultState, SandboxError};
use tokio_util::sync::CancellationToken;

use super::support::{Bench, groups_named, processes_with, program, small_limits, token};

async fn live(backend: &dyn Executor, bench: &Bench, kind: &str, wall: u64, warm: bool) -> JobOutcome {
    let mut job = bench.job(
        &program("life.py"),
        Limits {
            wall: Duration::from_secs(wall),
            ..small_limits()
        },
    );
    job.env.insert("KIND".to_owned(), kind.to_owned());
    if backend.name() != "process" {
        job.env.insert("JAILED".to_owned(), "1".to_owned());
    }
    job.warm = warm;
    backend.run(job, &token()).await.unwrap()
}

/// kind, expected end, longest wall seconds (limit 2, grace 2).
const LIVES: &[(&str, JobEnd, f64)] = &[
    ("daemon", JobEnd::Exited { code: 0 }, 1.5),
    ("stdout_holder", JobEnd::Exited { code: 0 }, 1.5),
    ("ignore_term", JobEnd::WallLimit, 6.0),
    ("stop_itself", JobEnd::WallLimit, 6.0),
    ("late_submission", JobEnd::WallLimit, 4.0),
    ("late_exit", JobEnd::WallLimit, 4.0),
    ("zombies", JobEnd::Exited { code: 0 }, 2.0),
    ("exec", JobEnd::WallLimit, 6.0),
];

async fn check_lives<T: Executor>(backend: T, bench: &Bench, warm: bool) {
    for (kind, end, within) in LIVES {
        let outcome = live(&backend, bench, kind, 2, warm).await;
        assert_eq!(outcome.warm, warm);
        assert_eq!(outcome.end, *end, "{kind}: {}", outcome.stderr.text());
        assert!(
            outcome.wall_seconds.unwrap() < *within,
            "{kind} took {:?} s",
            outcome.wall_seconds
        );
        assert!(
            outcome.stdout.text().contains("started"),
            "{kind}: output before the end is kept"
        );
        if *end == JobEnd::WallLimit {
            assert_eq!(outcome.state, Some(ResultState::Timeout), "{kind}");
            assert_eq!(outcome.submission, None, "{kind}");
        }
        if *kind == "late_submission" {
            assert!(outcome.stdout.text().contains("saved"), "the handler ran");
        }
        if *kind == "late_exit" {
            assert_eq!(outcome.exit_code, Some(3));
        }
        let left = processes_with(&bench.mark());
        assert!(left.is_empty(), "{kind} left {left:?}");
    }
    let outcome = live(&backend, bench, "kill_all", 2, warm).await;
    assert!(
        matches!(outcome.end, JobEnd::Exited { code: 0 }),
        "kill_all: {:?} {}",
        outcome.end,
        outcome.stderr.text()
    );
    bench.finish(backend);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_life_ends_with_control_groups() {
    let bench = Bench::new();
    check_lives(bench.native(), &bench, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_life_ends_without_control_groups() {
    let bench = Bench::new();
    let mut options = bench.options();
    options.cgroups = false;
    check_lives(NativeExecutor::new(options).unwrap(), &bench, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_life_ends_in_the_warm_pool() {
    let bench = Bench::new();
    let mut options = bench.options().with_warm_pool();
    options.preload = Some(vec!["json".to_owned()]);
    check_lives(NativeExecutor::new(options).unwrap(), &bench, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_life_ends_in_a_container() {
    let bench = Bench::new();
    if let Some(docker) = bench.docker() {
        check_lives(docker, &bench, false).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_isolation_the_group_is_killed_in_time() {
    let bench = Bench::new();
    let process = bench.process();
    for (kind, end) in [
        ("late_submission", JobEnd::WallLimit),
        ("stop_itself", JobEnd::WallLimit),
        ("forever", JobEnd::WallLimit),
        ("zombies", JobEnd::Exited { code: 0 }),
    ] {
        let outcome = live(&process, &bench, kind, 1, false).await;
        assert_eq!(outcome.end, end, "{kind}");
        assert!(outcome.wall_seconds.unwrap() < 5.0, "{kind}");
    }
    // What left the group lives on: that is what the other back ends are for.
    let escaped = processes_with(&bench.mark());
    assert!(!escaped.is_empty(), "the escape proves nothing");
    escaped.iter().for_each(|pid| kill(pid.parse().unwrap()));
}

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

/// The helper processes of a server: children of any of its threads.
fn children_of(parent: u32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{parent}/task")).unwrap().flatten();
    let texts = threads.map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    texts
        .flat_map(|text| {
            text.split_whitespace()
                .map(|pid| pid.parse().unwrap())
                .collect::<Vec<i32>>()
        })
        .collect()
}

fn signal(pid: i32, signal: rustix::process::Signal) {
    let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal);
}

fn kill(pid: i32) {
    signal(pid, rustix::process::Signal::KILL);
}

/// The process of a running job that carries a mark, once there is one.
fn marked_process(mark: &str) -> String {
    let begin = Instant::now();
    loop {
        if let Some(python) = processes_with(mark).into_iter().next() {
            return python;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "the job did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn parent(pid: &str) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().nth(1).unwrap().to_owned()
}

/// The supervisor of a job's process.
fn supervisor(python: &str) -> String {
    // python -> init -> supervisor
    let supervisor = parent(&parent(python));
    // The marked process may be the daemon that init has adopted.
    if supervisor == "0" || supervisor == "1" {
        return parent(python);
    }
    supervisor
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_launcher_leaves_goes_with_the_back_end() {
    let bench = Bench::new();
    let native = bench.native();
    let limits = Limits {
        wall: Duration::from_secs(4),
        ..small_limits()
    };
    let job = bench.job("import time; time.sleep(60)", limits);
    let mark = bench.mark();
    let killer = tokio::task::spawn_blocking(move || {
        let launcher = parent(&supervisor(&marked_process(&mark)));
        kill(launcher.parse().unwrap());
    });
    // Whatever becomes of the job: it ends, and nobody but the back end can clean up.
    native.run(job, &token()).await.unwrap();
    killer.await.unwrap();
    bench.finish(native);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_supervisor_takes_its_job_along_and_the_next_job_runs() {
    let bench = Bench::new();
    let native = bench.native();
    let mut job = bench.job(&program("life.py"), small_limits());
    job.env.insert("KIND".to_owned(), "forever".to_owned());
    let mark = bench.mark();
    let killer = tokio::task::spawn_blocking(move || {
        kill(supervisor(&marked_process(&mark)).parse().unwrap());
    });
    let outcome = native.run(job, &token()).await.unwrap();
    killer.await.unwrap();
    assert_eq!(
        outcome.state,
        Some(ResultState::SandboxUnconfirmed),
        "{:?}",
        outcome.end
    );
    assert_eq!(outcome.cause, Cause::Setup);
    let begin = Instant::now();
    while !processes_with(&bench.mark()).is_empty() {
        assert!(
            begin.elapsed() < Duration::from_secs(5),
            "the job outlived its supervisor"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let outcome = native
        .run(bench.job("print(1)", small_limits()), &token())
        .await
        .unwrap();
    assert_eq!(outcome.stdout.text(), "1\n");
    bench.finish(native);
}

/// Runs in a process of its own: starts a job and waits for its own death.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by other tests"]
async fn server_that_will_be_killed() {
    let Some(root) = std::env::var_os("CLADE_TEST_ROOT") else {
        return;
    };
    let bench = Bench::new();
    let mut options = bench.options();
    options.scratch_root = root.clone().into();
    options.standby = 1;
    let native = NativeExecutor::new(options).unwrap();
    let mut job = bench.job(
        &program("life.py"),
        Limits {
            wall: Duration::from_secs(100),
            ..small_limits()
        },
    );
    job.env.insert("KIND".to_owned(), "forever".to_owned());
    job.env
        .insert("CLADE_TEST_MARK".to_owned(), root.into_string().unwrap());
    let _ = native.run(job, &token()).await;
}

fn start_server(root: &std::path::Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::lifecycle::server_that_will_be_killed", "--ignored"])
        .env("CLADE_TEST_ROOT", root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

async fn wait_for_job(mark: &str) {
    let begin = Instant::now();
    while processes_with(mark).len() < 2 {
        assert!(begin.elapsed() < Duration::from_secs(20), "the job did not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mark = format!("CLADE_TEST_MARK={}", root.path().display());
    let mut server = start_server(root.path());
    wait_for_job(&mark).await;
    server.kill().unwrap();
    server.wait().unwrap();
    let begin = Instant::now();
    let instances = || {
        let families = std::fs::read_dir(root.path()).unwrap().flatten();
        families
            .flat_map(|family| std::fs::read_dir(family.path()).unwrap().flatten())
            .count()
    };
    while !processes_with(&mark).is_empty() || instances() > 0 {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "the job or its directory outlived the server"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_server_and_its_helpers_leave_is_swept() {
    let root = tempfile::tempdir().unwrap();
    let mark = format!("CLADE_TEST_MARK={}", root.path().display());
    let mut server = start_server(root.path());
    wait_for_job(&mark).await;
    // The helper goes first and the server is stopped, so nobody is left to clean up.
    signal(server.id() as i32, rustix::process::Signal::STOP);
    children_of(server.id()).into_iter().for_each(kill);
    server.kill().unwrap();
    server.wait().unwrap();
    let begin = Instant::now();
    while !processes_with(&mark).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(5), "the job outlived its helper");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let bench = Bench::new();
    let mut options = bench.options();
    options.scratch_root = root.path().to_owned();
    let native = NativeExecutor::new(options).unwrap();
    let group = format!("clade-{}-", server.id());
    assert_eq!(native.sweep().await.unwrap(), 1);
    let groups = groups_named(Path::new("/sys/fs/cgroup"), 4, &|name| name.starts_with(&group));
    assert!(groups.is_empty(), "control groups are left: {groups:?}");
    assert_eq!(native.sweep().await.unwrap(), 0);
    let outcome = native
        .run(bench.job("print(1)", small_limits()), &token())
        .await
        .unwrap();
    assert_eq!(outcome.stdout.text(), "1\n");
    assert_eq!(native.sweep().await.unwrap(), 0, "a living instance is left alone");
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
