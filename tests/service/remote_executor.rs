//! The executor `remote`: an engine whose programs run on a job service, both as users have them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clade::engine::OpenMode;
use clade::sandbox::{Executor, JobSpec, Limits, LogObserver, LogPart, RemoteExecutor, RemoteOptions};
use clade::scheduler::{ProgramRun, Sandbox, run_program};
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::fixture::{Client, LIMIT, Server, Site};
use super::remote::{Remote, Wire};
use crate::bench::naturebench;
use crate::cli::fixture::{Outcome, Place, finish};
use crate::cli::tasks::{TASK, package, python, with_python};
use crate::engine::fixture::{add_task, open_store};
use crate::engine::instant;

/// A store of its own, whose programs run on a service.
struct Away {
    place: Place,
    url: String,
    key: String,
}

const SLEEPS: &str = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n";
const COPIES: &str = "import os, shutil\nshutil.copy(os.environ['DATA_DIR'] + '/sample_submission.csv', 'submission.csv')\n\
                      print('done', os.environ['CLADE_SEED'])\n";

impl Away {
    /// A store with an example task.
    fn new(url: &str, key: &str) -> Self {
        let place = Place::with_store();
        let folder = package(&place).to_string_lossy().into_owned();
        with_python(&place, ["task", "add", &folder]).ok();
        Self {
            place,
            url: url.to_owned(),
            key: key.to_owned(),
        }
    }

    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let url = format!("sandbox.remote.url={}", self.url);
        let fixed = ["--set", &url, "--set", "sandbox.warm=false"].map(str::to_owned);
        let all = arguments.into_iter().map(str::to_owned).chain(fixed);
        let mut command = self.place.command(all);
        command.env("CLADE_PYTHON", python()).env("CLADE_REMOTE_KEY", &self.key);
        command
    }

    fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Outcome {
        finish(&mut self.command(arguments), "")
    }

    /// Runs a program on the task there; gives its row and what was said.
    fn exec(&self, code: &str, more: &[&str]) -> (Json, String) {
        self.place.write("program.py", code);
        let fixed = [
            "exec",
            "program.py",
            "--task",
            TASK,
            "--sandbox",
            "remote",
            "--format",
            "json",
        ];
        let outcome = self.run(fixed.iter().chain(more).copied());
        let rows: Json = serde_json::from_str(&outcome.stdout).unwrap_or_default();
        (rows[0].clone(), outcome.stderr)
    }

    /// Starts one that is not waited for.
    fn start(&self, code: &str, more: &[&str]) -> Child {
        self.place.write("program.py", code);
        let fixed = ["exec", "program.py", "--task", TASK, "--sandbox", "remote"];
        let mut command = self.command(fixed.iter().chain(more).copied());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn rows(&self, sql: &str) -> Json {
        let text = self.place.run(["sql", "-c", sql, "--format", "json"]).ok();
        serde_json::from_str(&text).unwrap()
    }
}

fn admin(server: &Server) -> Client {
    server.client(server.first_key.as_deref().unwrap())
}

/// Waits until the service has a job of a status; gives it.
async fn some_job(client: &Client, status: &str) -> Json {
    let begin = Instant::now();
    loop {
        let page = client
            .get(&format!("/api/v1/jobs?status={status}&limit=500"))
            .await
            .ok();
        if let Some(job) = page["jobs"].as_array().unwrap().first() {
            return job.clone();
        }
        assert!(begin.elapsed() < LIMIT, "no job is {status}");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

/// Whether bytes are in a file somewhere below a folder.
fn is_below(folder: &Path, wanted: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return is_below(&path, wanted);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes.windows(wanted.len()).any(|window| window == wanted)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_there_comes_to_what_one_here_comes_to() {
    let site = Site::new();
    let server = site.serve("native", 2);
    let key = site.key("engine", &[]);
    let away = Away::new(&server.url, &key);
    for (id, sandbox) in [("here", "native"), ("there", "remote")] {
        let outcome = away.run([
            "evolve",
            TASK,
            "--steps",
            "6",
            "--workers",
            "1",
            "--seed",
            "5",
            "--id",
            id,
            "--sandbox",
            sandbox,
        ]);
        outcome.ok();
    }
    let nodes = |run: &str| {
        away.rows(&format!(
            "SELECT step, code_hash, status, score FROM evo.nodes WHERE run_id = '{run}' ORDER BY step"
        ))
    };
    let here = nodes("here");
    assert_eq!(here, nodes("there"));
    let scored = here.as_array().unwrap().iter().filter(|node| node["score"].is_number());
    assert!(scored.count() >= 2, "{here}");
    let grades =
        away.rows("SELECT count(*) AS n, count(DISTINCT score) AS scores FROM bench.grades WHERE score IS NOT NULL");
    assert_eq!(grades, json!([{"n": 2, "scores": 1}]), "both were graded, alike");
    // What shut the programs in is told as it was.
    let jobs = away.rows("SELECT backend, isolation FROM sandbox.jobs WHERE run_id = 'there'");
    for job in jobs.as_array().unwrap() {
        let isolation: Json = serde_json::from_str(job["isolation"].as_str().unwrap()).unwrap();
        assert_eq!(
            (&job["backend"], &isolation["backend"]),
            (&json!("remote"), &json!("native"))
        );
        assert!(isolation["layers"]["namespaces"].is_string(), "{isolation}");
    }

    // The data went over once, the programs did, and nothing that scores them.
    assert_eq!(
        site.uploads().len(),
        2,
        "that of the search and that of the final run: {:?}",
        site.uploads()
    );
    let store = site.place.path().join("clade-store");
    let imported = away.rows(&format!("SELECT package_path FROM gym.tasks WHERE task_id = '{TASK}'"));
    let imported = away
        .place
        .path()
        .join("clade-store")
        .join(imported[0]["package_path"].as_str().unwrap());
    let (mut hidden, mut metric) = (0, 0);
    for (folder, name) in [("", "metric.py"), ("data/private", "")] {
        for entry in std::fs::read_dir(imported.join(folder)).unwrap().flatten() {
            let is_it = name.is_empty() || entry.file_name() == name;
            if is_it && entry.path().is_file() {
                let bytes = std::fs::read(entry.path()).unwrap();
                assert!(!is_below(&store, &bytes), "{} is on the server", entry.path().display());
                if name.is_empty() { hidden += 1 } else { metric += 1 }
            }
        }
    }
    assert!(hidden > 0 && metric > 0, "they were looked for");
    let said = server.stop();
    assert!(!said.contains(&key), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_end_there_as_they_end_here() {
    let site = Site::new();
    let server = site.serve("native", 1);
    let away = Away::new(&server.url, server.first_key.as_deref().unwrap());
    let (row, _) = away.exec(COPIES, &["--seed", "7"]);
    assert_eq!(
        (&row["status"], &row["backend"]),
        (&json!("success"), &json!("remote")),
        "{row}"
    );
    assert!(
        row["score"].is_number() && row["evaluation_seconds"].is_number(),
        "{row}"
    );
    assert!(
        row["wall_seconds"].is_number() && row["peak_memory_bytes"].is_number(),
        "{row}"
    );

    let (row, said) = away.exec("import sys\nprint('oh', file=sys.stderr)\nsys.exit(3)", &[]);
    assert_eq!(
        (&row["status"], &row["cause"], &row["exit_code"]),
        (&json!("code_execution_error"), &json!("exit"), &json!(3)),
        "{row}"
    );
    assert!(said.contains("oh\n") && said.contains("exited with code 3"), "{said}");

    let (row, _) = away.exec("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", &[]);
    assert_eq!((&row["cause"], &row["signal"]), (&json!("signal"), &json!(11)), "{row}");

    let (row, _) = away.exec(SLEEPS, &["--timeout", "1s"]);
    assert_eq!(
        (&row["status"], &row["cause"]),
        (&json!("timeout"), &json!("wall_limit")),
        "{row}"
    );

    let (row, _) = away.exec("pass", &[]);
    assert_eq!(
        (&row["status"], &row["detail"]),
        (
            &json!("submission_missing"),
            &json!("the program wrote no submission.csv")
        ),
        "{row}"
    );
    let (row, _) = away.exec(
        "open('submission.csv', 'w').write('x' * 2_000_000)",
        &["--set", "sandbox.submission_size=1MiB"],
    );
    assert_eq!(
        (&row["status"], &row["detail"]),
        (
            &json!("submission_missing"),
            &json!("submission.csv has 2000000 bytes, the limit is 1048576")
        ),
        "{row}"
    );
    let (row, _) = away.exec("open('submission.csv', 'w').write('nonsense')", &[]);
    assert_eq!(row["status"], "scoring_failed", "{row}");
    let (row, said) = away.exec("", &[]);
    assert_eq!(row, Json::Null);
    assert!(said.contains("code_missing"), "{said}");

    // A flood is counted whole, and kept as the smaller of both limits says.
    let flood = format!("{COPIES}for i in range(400_000):\n    print('line', i)\n");
    let count = |number: u64| (0..number).map(|i| format!("line {i}\n").len() as u64).sum::<u64>() + 7;
    for more in [&[][..], &["--set", "sandbox.log_size=64KiB"][..]] {
        let (row, _) = away.exec(&flood, more);
        assert_eq!(
            (&row["status"], &row["stdout_bytes"]),
            (&json!("success"), &json!(count(400_000))),
            "{row}"
        );
        let rows = away.rows(&format!(
            "SELECT logs_truncated, stdout_head, stdout_tail FROM sandbox.jobs WHERE job_id = {}",
            row["job_id"].to_string().replace('"', "'")
        ));
        assert_eq!(rows[0]["logs_truncated"], true);
        assert!(
            rows[0]["stdout_head"].as_str().unwrap().starts_with("done 0\nline 0\n"),
            "{rows}"
        );
        assert!(
            rows[0]["stdout_tail"].as_str().unwrap().ends_with("line 399999\n"),
            "{rows}"
        );
    }
    assert!(
        !is_below(away.place.path().join("clade-store").as_path(), away.key.as_bytes()),
        "the key is kept nowhere"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_user_has_to_mend_is_said_at_once() {
    let site = Site::new().set("service.max_job_seconds=60");
    let server = site.serve("process", 1);
    let key = server.first_key.clone().unwrap();
    let mut away = Away::new(&server.url, "clade_000000000000_0000");
    let fails = |away: &Away, more: &[&str], parts: &[&str]| {
        let begin = Instant::now();
        let (row, said) = away.exec("pass", more);
        assert_eq!(row, Json::Null);
        for part in parts {
            assert!(said.contains(part), "{part} is not in {said}");
        }
        begin.elapsed()
    };
    fails(&away, &[], &["CLADE_REMOTE_KEY", "401"]);
    away.key = site.key("reader", &["--role", "read"]);
    fails(&away, &[], &["CLADE_REMOTE_KEY", "role submit"]);
    away.key = String::new();
    fails(&away, &[], &["CLADE_REMOTE_KEY holds no API key"]);
    away.key = key;
    fails(
        &away,
        &["--timeout", "61s"],
        &["field 'timeout'", "service.max_job_seconds"],
    );
    fails(
        &away,
        &["--timeout", "50s", "--set", "sandbox.remote.resource_type=gpu"],
        &["no_gpu"],
    );
    away.url = server.url.replace("http://127.0.0.1", "http://example.org");
    fails(
        &away,
        &[],
        &["sandbox.remote.url", "in the clear", "sandbox.remote.insecure"],
    );
    away.url = String::new();
    fails(&away, &[], &["set sandbox.remote.url"]);

    // Nobody listens there: that may pass, and is given up in the end.
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    away.url = format!("http://{gone}");
    let took = fails(
        &away,
        &["--set", "sandbox.remote.give_up_seconds=1"],
        &["did not answer for 1 s", &away.url],
    );
    assert!(took >= Duration::from_secs(1));
    // Something else listens there.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    away.url = format!("http://{}", listener.local_addr().unwrap());
    let other = tokio::spawn(async move {
        let page = page_of_a_web_server();
        while let Ok((mut stream, _)) = listener.accept().await {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(page.as_bytes()).await;
        }
    });
    tokio::task::block_in_place(|| fails(&away, &[], &["is no job service of this version"]));
    other.abort();

    // A service does not hand its jobs on.
    let serving = away
        .run(["serve", "--address", "127.0.0.1:0", "--executor", "remote"])
        .fails(1);
    assert!(
        serving.contains("neither a job service nor a worker can run with it"),
        "{serving}"
    );
}

/// A page of a web server.
fn page_of_a_web_server() -> String {
    let body = "<html>It works</html>";
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_comes_back_loses_nothing() {
    let site = Site::new();
    let server = site.serve("process", 2);
    let key = server.first_key.clone().unwrap();
    let wire = Wire::to(server.address()).await;
    let away = Away::new(&wire.url, &key);
    let mut command = away.command([
        "evolve",
        TASK,
        "--steps",
        "12",
        "--workers",
        "2",
        "--seed",
        "3",
        "--id",
        "r",
        "--sandbox",
        "remote",
    ]);
    let mut search = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let client = server.client(&key);
    some_job(&client, "completed").await;
    some_job(&client, "running").await;
    server.kill();
    let server = site.serve("process", 2);
    wire.lead_to(server.address());
    let status = tokio::task::spawn_blocking(move || search.wait().unwrap())
        .await
        .unwrap();
    assert!(status.success(), "{status}");
    let nodes = away.rows("SELECT count(*) AS n, count(DISTINCT step) AS steps FROM evo.nodes WHERE run_id = 'r'");
    assert_eq!(nodes, json!([{"n": 12, "steps": 12}]));
    let bad = away.rows("SELECT attempt_id, status, error FROM evo.attempts WHERE status <> 'done'");
    assert_eq!(bad, json!([]));
    server.stop();
    let jobs = site.rows(
        "SELECT count(*) AS n, count(DISTINCT idempotency_key) AS keys, count(*) FILTER (WHERE state = 'completed') AS done
         FROM sandbox.requests",
    );
    assert_eq!(
        (&jobs[0]["n"], &jobs[0]["n"]),
        (&jobs[0]["keys"], &jobs[0]["done"]),
        "{jobs}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stays_away_fails_the_job() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let client = admin(&server);
    let away = Away::new(&server.url, server.first_key.as_deref().unwrap());
    let running = away.start(SLEEPS, &["--set", "sandbox.remote.give_up_seconds=2"]);
    some_job(&client, "running").await;
    server.kill();
    let output = tokio::task::spawn_blocking(move || running.wait_with_output().unwrap());
    let output = output.await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("did not answer for 2 s") && said.contains(&away.url),
        "{said}"
    );
    assert_eq!(away.rows("SELECT count(*) AS n FROM sandbox.jobs"), json!([{"n": 0}]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_nobody_waits_for_are_cancelled() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let client = admin(&server);
    let away = Away::new(&server.url, server.first_key.as_deref().unwrap());
    // Ctrl-C.
    let mut running = away.start(SLEEPS, &[]);
    let job = some_job(&client, "running").await;
    let pid = rustix::process::Pid::from_child(&running);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = client.wait(job["job_id"].as_str().unwrap()).await;
    assert_eq!(ended["status"], "cancelled", "{ended}");
    running.wait().unwrap();

    // A kill: whoever opens the store next cancels what was left.
    let mut running = away.start(SLEEPS, &[]);
    let job = some_job(&client, "running").await;
    let job_id = job["job_id"].as_str().unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(client.job(job_id).await["status"], "running");
    let begin = Instant::now();
    loop {
        away.run(["sql", "-c", "CREATE TABLE IF NOT EXISTS t (a BIGINT)"]);
        if client.job(job_id).await["status"] == "cancelled" {
            break;
        }
        assert!(begin.elapsed() < LIMIT, "it was not cancelled");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }

    // Cancelled there: the job has failed, and says so.
    let running = away.start(SLEEPS, &[]);
    let job = some_job(&client, "running").await;
    client
        .delete(&format!("/api/v1/jobs/{}", job["job_id"].as_str().unwrap()))
        .await
        .ok();
    let output = tokio::task::spawn_blocking(move || running.wait_with_output().unwrap());
    let output = output.await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("was cancelled there, not from here"), "{said}");
    let notes = std::fs::read_dir(away.place.path().join("clade-store/remote")).unwrap();
    assert_eq!(notes.count(), 0, "nothing is open any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_folders_come_back_and_are_scored_here() {
    let site = Site::new();
    let server = site.serve("native", 1);
    let away = Away::new(&server.url, server.first_key.as_deref().unwrap());
    naturebench::task(&away.place);
    naturebench::add(&away.place).ok();
    away.place.write("fills.py", naturebench::PROGRAM);
    for sandbox in ["native", "remote"] {
        away.run([
            "exec",
            "fills.py",
            "--task",
            "s00000-000-00000-0",
            "--final",
            "--sandbox",
            sandbox,
        ])
        .ok();
    }
    let rows = away
        .rows("SELECT DISTINCT status, submission_bytes, submission_hash IS NOT NULL AS is_there FROM sandbox.jobs");
    assert_eq!(
        rows,
        json!([{"status": "success", "submission_bytes": 3072, "is_there": true}])
    );
    let same = away.rows("SELECT count(DISTINCT submission_hash) AS n, count(*) AS jobs FROM sandbox.jobs");
    assert_eq!(same, json!([{"n": 1, "jobs": 2}]), "the same bytes from both back ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_may_stand_in_between_and_rows_say_what_it_is() {
    let site = Site::new();
    let server = site.serve("process", 0);
    let away = Away::new(&server.url, server.first_key.as_deref().unwrap());
    let doctor = |away: &Away| {
        let text = away
            .run(["doctor", "--format", "json", "--set", "sandbox.executor=remote"])
            .stdout;
        let checks: Json = serde_json::from_str(&text).unwrap();
        let checks = checks.as_array().unwrap().clone();
        checks
            .into_iter()
            .find(|check| check["check"] == "sandbox: remote")
            .unwrap()
    };
    let check = doctor(&away);
    assert_eq!(check["result"], "failed", "{check}");
    assert!(
        check["detail"]
            .as_str()
            .unwrap()
            .contains("no worker takes cpu jobs now"),
        "{check}"
    );
    let key = site.key("machines", &["--role", "worker"]);
    let _worker = Remote::start(
        &site,
        &server.url,
        &key,
        &python(),
        &["--executor", "process", "--slots", "2"],
    );
    let check = doctor(&away);
    assert_eq!(check["result"], "ok", "{check}");
    assert!(
        check["detail"]
            .as_str()
            .unwrap()
            .contains("2 cpu slots (process); process has no isolation"),
        "{check}"
    );
    let (row, said) = away.exec(COPIES, &[]);
    assert_eq!(row["status"], "success", "{row} {said}");
    let isolation: Json = serde_json::from_str(row["isolation"].as_str().unwrap()).unwrap();
    assert_eq!(
        isolation,
        json!({"backend": "process", "grade": "unsandboxed", "layers": {}})
    );
}

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
    assert!(
        matches!(ended, Err(clade::sandbox::SandboxError::Cancelled)),
        "{ended:?}"
    );
    assert_eq!(client.job(job["job_id"].as_str().unwrap()).await["status"], "cancelled");
    // It may be run after all.
    let again = here.executor.run(here.job("j1", SLEEPS), &CancellationToken::new());
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
        _ = here.executor.run(here.job("j2", SLEEPS), &CancellationToken::new()) => panic!("it sleeps"),
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
    let engine = open_store(
        &folder.path().join("store"),
        &["sandbox.concurrency=1"],
        vec![],
        sandbox,
        OpenMode::Create,
    );
    let engine = engine.await.unwrap();
    add_task(&engine, "toy").await;
    let gates = site.place.path().join("gates");
    std::fs::create_dir(&gates).unwrap();
    let code = format!(
        "import os, time\nopen({gates:?} + '/' + os.environ['JOB_ID'], 'w')\n\
         while len(os.listdir({gates:?})) < 3:\n    time.sleep(0.02)\n{WRITES}\n"
    );
    std::fs::write(
        folder.path().join("store/tasks/toy/test/validation/public/train.csv"),
        "id,y\n1,2\n",
    )
    .unwrap();
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
