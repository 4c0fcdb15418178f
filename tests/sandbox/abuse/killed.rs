//! Case E30: a killed supervisor, launcher or server leaves nothing.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clade::sandbox::{Cause, DockerExecutor, Executor, Limits, NativeExecutor, ResultState};

use super::rows::{Column, NOT_TRIED, Rows};
use crate::sandbox::support::{
    Bench, containers_below, groups_named, has_docker, kill, processes_with, program, signal, small_limits, token,
};

const SERVER: &str = "killing the server from outside";

#[track_caller]
fn note(attack: &str, [without, native, docker]: [&str; 3]) {
    let mut rows = Rows::default();
    rows.see(Column::Without, "E30", attack, without);
    rows.see(Column::Native, "E30", attack, native);
    rows.see(Column::Docker, "E30", attack, docker);
    rows.check();
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
async fn e30_what_a_killed_launcher_leaves_goes_with_the_back_end() {
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
    let begin = Instant::now();
    while !processes_with(&bench.mark()).is_empty() {
        assert!(
            begin.elapsed() < Duration::from_secs(5),
            "the job outlived its launcher"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bench.finish(native);
}

#[tokio::test(flavor = "multi_thread")]
async fn e30_a_killed_supervisor_takes_its_job_along_and_the_next_job_runs() {
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
    note(
        "killing the supervisor from outside",
        [NOT_TRIED, "dies with it", "no supervisor"],
    );
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
        .insert("CLADE_TEST_MARK".to_owned(), root.clone().into_string().unwrap());
    let backend: Box<dyn Executor> = match std::env::var_os("CLADE_TEST_DOCKER") {
        None => Box::new(native),
        Some(_) => {
            let mut options = bench.docker_options();
            options.scratch_root = root.into();
            Box::new(DockerExecutor::new(options))
        }
    };
    let _ = backend.run(job, &token()).await;
}

fn start_server(root: &Path, variables: &[(&str, &str)]) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "sandbox::abuse::killed::server_that_will_be_killed",
            "--ignored",
        ])
        .env("CLADE_TEST_ROOT", root)
        .envs(variables.iter().copied())
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
async fn e30_a_killed_server_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mark = format!("CLADE_TEST_MARK={}", root.path().display());
    let mut server = start_server(root.path(), &[]);
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
    let mut rows = Rows::default();
    rows.see(Column::Without, "E30", SERVER, NOT_TRIED);
    rows.see(Column::Native, "E30", SERVER, "dies with it");
    rows.check();
}

/// Nobody stands by a container but the server: what a killed one leaves goes when the next one starts.
#[tokio::test(flavor = "multi_thread")]
async fn e30_the_containers_of_a_killed_server_go_with_the_next_start() {
    if !has_docker() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let mark = format!("CLADE_TEST_MARK={}", root.path().display());
    let mut server = start_server(root.path(), &[("CLADE_TEST_DOCKER", "1")]);
    wait_for_job(&mark).await;
    server.kill().unwrap();
    server.wait().unwrap();
    let left = containers_below(root.path());
    assert!(!left.is_empty(), "the kill proves nothing");
    let bench = Bench::new();
    let mut options = bench.docker_options();
    options.scratch_root = root.path().to_owned();
    let docker = DockerExecutor::new(options);
    let outcome = docker
        .run(bench.job("print(1)", small_limits()), &token())
        .await
        .unwrap();
    assert_eq!(outcome.stdout.text(), "1\n", "{}", outcome.stderr.text());
    let left = processes_with(&mark);
    assert!(left.is_empty(), "the job outlived the next start: {left:?}");
    docker.sweep().await.unwrap();
    drop(docker);
    let left = containers_below(root.path());
    assert!(left.is_empty(), "containers are left: {left:?}");
    let mut rows = Rows::default();
    rows.see(Column::Docker, "E30", SERVER, "removed at the next start");
    rows.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn e30_what_a_killed_server_and_its_helpers_leave_is_swept() {
    let root = tempfile::tempdir().unwrap();
    let mark = format!("CLADE_TEST_MARK={}", root.path().display());
    let mut server = start_server(root.path(), &[]);
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
    note(
        "killing the server and its helper from outside",
        [NOT_TRIED, "removed at the next start", "no helper"],
    );
}
