//! The executor `remote` in this process: what it sees of jobs, and what becomes of those that it does not wait for.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clade::engine::OpenMode;
use clade::sandbox::{Executor, JobSpec, Limits, LogObserver, LogPart, RemoteExecutor, RemoteOptions, SandboxError};
use clade::scheduler::{ProgramRun, Sandbox, run_program};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::fixture::{Client, LIMIT, Server, Site};
use super::remote_executor::{SLEEPS, admin, some_job};
use crate::engine::fixture::{add_task, open_store};
use crate::engine::instant;

/// The executor in this process, and a folder for what it works with.
struct Here {
    folder: tempfile::TempDir,
    executor: RemoteExecutor,
}

impl Here {
    fn new(server: &Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        std::fs::write(folder.path().join("data/train.csv"), "id,y\n1,2\n").unwrap();
        let executor = executor(server, folder.path());
        Self { folder, executor }
    }

    fn job(&self, id: &str, code: &str) -> JobSpec {
        let output_dir = self.folder.path().join("out");
        std::fs::create_dir_all(&output_dir).unwrap();
        JobSpec {
            job_id: id.to_owned(),
            code: code.to_owned(),
            data_dir: self.folder.path().join("data"),
            env: [("CLADE_SEED".to_owned(), "1".to_owned())].into(),
            limits: Limits {
                wall: Duration::from_secs(300),
                ..Limits::default()
            },
            output_name: "submission.csv".to_owned(),
            output_is_folder: false,
            output_dir,
            warm: false,
            observer: None,
        }
    }
}

fn executor(server: &Server, folder: &Path) -> RemoteExecutor {
    let options = RemoteOptions::new(&server.url, folder.join("notes"));
    RemoteExecutor::with_key(options, server.first_key.as_deref().unwrap()).unwrap()
}

async fn count(client: &Client) -> usize {
    let page = client.get("/api/v1/jobs?limit=500").await.ok();
    page["jobs"].as_array().unwrap().len()
}

const WRITES: &str =
    "open('submission.csv', 'w').write(open(__import__('os').environ['DATA_DIR'] + '/train.csv').read())";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_is_seen_while_the_program_runs() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let here = Here::new(&server);
    let gate = here.folder.path().join("gate");
    let code = format!(
        "import os, sys, time\nprint('fürst', flush=True)\nwhile not os.path.exists({gate:?}):\n    time.sleep(0.02)\n\
         print('last', file=sys.stderr)\n{WRITES}\n"
    );
    let seen = Arc::new(Mutex::new([Vec::new(), Vec::new()]));
    let mut job = here.job("j1", &code);
    let sink = Arc::clone(&seen);
    job.observer = Some(LogObserver::new(move |part: LogPart<'_>| {
        assert_eq!(part.skipped, 0);
        let mut seen = sink.lock().unwrap();
        let place = usize::from(part.stream.as_str() == "stderr");
        seen[place].extend_from_slice(part.bytes);
        // The program goes on when its output was seen.
        std::fs::write(&gate, "").unwrap();
    }));
    let outcome = here.executor.run(job, &CancellationToken::new()).await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], "fürst\n".as_bytes());
    assert_eq!(seen[1], b"last\n");
    assert_eq!(
        (outcome.stdout.kept.clone(), outcome.stderr.kept.clone()),
        (seen[0].clone(), seen[1].clone())
    );
    let submission = outcome.submission.unwrap();
    assert_eq!(std::fs::read_to_string(submission.path).unwrap(), "id,y\n1,2\n");
    assert_eq!(outcome.state, None, "it is to be scored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_run_once_and_again_where_nothing_is_left_of_it() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let client = admin(&server);
    let here = Here::new(&server);
    let never = CancellationToken::new();
    let first = here.executor.run(here.job("j1", WRITES), &never).await.unwrap();
    // As after a restart of the engine.
    let again = executor(&server, here.folder.path());
    let same = again.run(here.job("j1", WRITES), &never).await.unwrap();
    assert_eq!((first.submission, first.started_at), (same.submission, same.started_at));
    assert_eq!(count(&client).await, 1);
    again.run(here.job("j2", WRITES), &never).await.unwrap();
    assert_eq!(count(&client).await, 2, "another job is another");

    // Its submission is kept no more: it is run again.
    let kept = site.place.path().join("clade-store/submissions");
    for entry in std::fs::read_dir(kept).unwrap().flatten() {
        std::fs::remove_file(entry.path()).unwrap();
    }
    let anew = again.run(here.job("j1", WRITES), &never).await.unwrap();
    assert!(anew.submission.is_some() && anew.started_at != same.started_at);
    assert_eq!(count(&client).await, 3);

    // Its data is there no more: it is sent again.
    let page = client.get("/api/v1/jobs").await.ok();
    let upload = page["jobs"][0]["data_dir"].as_str().unwrap().to_owned();
    client.delete(&format!("/api/v1/uploads/{upload}")).await.ok();
    again.run(here.job("j3", WRITES), &never).await.unwrap();
    // It has changed: that is other data.
    std::fs::write(here.folder.path().join("data/train.csv"), "id,y\n1,3\n").unwrap();
    let changed = again.run(here.job("j1", WRITES), &never).await.unwrap();
    assert_eq!(
        std::fs::read_to_string(changed.submission.unwrap().path).unwrap(),
        "id,y\n1,3\n"
    );
    assert_eq!(site.uploads().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_job_has_ended_there_when_it_has_ended_here() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let client = admin(&server);
    let here = Here::new(&server);
    let cancel = CancellationToken::new();
    let running = here.executor.run(here.job("j1", SLEEPS), &cancel);
    let stop = async {
        let job = some_job(&client, "running").await;
        cancel.cancel();
        job
    };
    let (ended, job) = tokio::join!(running, stop);
    assert!(matches!(ended, Err(SandboxError::Cancelled)), "{ended:?}");
    assert_eq!(client.job(job["job_id"].as_str().unwrap()).await["status"], "cancelled");
    // It may be run after all.
    let never = CancellationToken::new();
    let again = here.executor.run(here.job("j1", SLEEPS), &never);
    let stop = async {
        let job = some_job(&client, "running").await;
        client
            .delete(&format!("/api/v1/jobs/{}", job["job_id"].as_str().unwrap()))
            .await
            .ok();
    };
    let (ended, ()) = tokio::join!(again, stop);
    assert!(ended.unwrap_err().to_string().contains("was cancelled there"));
    // One that is dropped is cancelled, too.
    tokio::select! {
        _ = here.executor.run(here.job("j2", SLEEPS), &never) => panic!("it sleeps"),
        _ = some_job(&client, "running") => {}
    }
    let Here { executor, folder } = here;
    tokio::task::block_in_place(|| drop(executor));
    let begin = Instant::now();
    while client.get("/api/v1/jobs?status=running").await.ok()["jobs"] != json!([]) {
        assert!(begin.elapsed() < LIMIT);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(std::fs::read_dir(folder.path().join("notes")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_are_kept_within_the_limits_of_both_sides() {
    let site = Site::new();
    let server = site.serve("native", 1);
    let here = Here::new(&server);
    let code = "for i in range(400_000):\n    print('line', i)\n";
    let bytes: u64 = (0..400_000).map(|i| format!("line {i}\n").len() as u64).sum();
    for (name, log_bytes, kept) in [("j1", 64 << 20, 1 << 20), ("j2", 64 << 10, 64 << 10), ("j3", 0, 0)] {
        let mut job = here.job(name, code);
        job.limits.log_bytes = log_bytes;
        let outcome = here.executor.run(job, &CancellationToken::new()).await.unwrap();
        let log = outcome.stdout;
        assert_eq!((log.bytes, log.truncated), (bytes, true));
        let length = log.kept.len();
        assert!(
            (kept..kept + 100).contains(&length),
            "{length} bytes were kept of at most {kept}"
        );
        if kept > 0 {
            assert!(log.text().starts_with("line 0\n") && log.text().ends_with("line 399999\n"));
        }
        let left_out = log.text().lines().find_map(|line| {
            let number = line.strip_prefix("[... ")?.strip_suffix(" bytes left out ...]")?;
            number.parse::<u64>().ok()
        });
        assert_eq!(left_out, Some(bytes - kept as u64), "one line says what is missing");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_that_run_elsewhere_take_no_place_here() {
    let site = Site::new();
    let server = site.serve("process", 3);
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox {
        executor: Arc::new(executor(&server, folder.path())),
        evaluator: Arc::new(instant::Instant::default()),
    };
    // One place here, three programs that end when all three run.
    let store = folder.path().join("store");
    let engine = open_store(&store, &["sandbox.concurrency=1"], vec![], sandbox, OpenMode::Create).await;
    let engine = engine.unwrap();
    add_task(&engine, "toy").await;
    let gates = site.place.path().join("gates");
    std::fs::create_dir(&gates).unwrap();
    let code = format!(
        "import os, time\nopen({gates:?} + '/' + os.environ['JOB_ID'], 'w')\n\
         while len(os.listdir({gates:?})) < 3:\n    time.sleep(0.02)\n{WRITES}\n"
    );
    std::fs::write(store.join("tasks/toy/test/validation/public/train.csv"), "id,y\n1,2\n").unwrap();
    let services = engine.scheduler().services();
    let task = services.task("toy").await.unwrap();
    let never = CancellationToken::new();
    let run = |number: i64| {
        let program = ProgramRun {
            job_id: format!("x{number}"),
            sandbox: "remote",
            code: &code,
            split: task.validation.as_ref().unwrap(),
            self_reported: false,
            seed: number,
            seconds: 300.0,
            evaluation_seconds: 60.0,
            warm: false,
        };
        run_program(services, program, &never, None)
    };
    let (a, b, c) = tokio::join!(run(1), run(2), run(3));
    for result in [a, b, c] {
        let job = result.unwrap().candidate.job.unwrap();
        assert!(job.submission.is_some(), "{:?}", job.detail);
    }
    engine.close().await;
}
