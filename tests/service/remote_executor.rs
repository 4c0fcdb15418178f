//! The executor `remote`: an engine whose programs run on a job service, both as users have them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::fixture::{Client, LIMIT, Server, Site};
use super::remote::{Remote, Wire};
use crate::bench::naturebench;
use crate::cli::fixture::{Outcome, Place, finish};
use crate::cli::tasks::{TASK, package, python, with_python};

/// A store of its own, whose programs run on a service.
struct Away {
    place: Place,
    url: String,
    key: String,
}

pub const SLEEPS: &str = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n";
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

pub fn admin(server: &Server) -> Client {
    server.client(server.first_key.as_deref().unwrap())
}

/// Waits until the service has a job of a status; gives it.
pub async fn some_job(client: &Client, status: &str) -> Json {
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
    let public = std::fs::read(imported.join("data/public/sample_submission.csv")).unwrap();
    assert!(is_below(&store, &public), "what was sent is found");
    for name in [
        "utils/metric.py",
        "data/private/test_answer.csv",
        "validation/private/test_answer.csv",
    ] {
        let bytes = std::fs::read(imported.join(name)).unwrap();
        assert!(!is_below(&store, &bytes), "{name} is on the server");
    }
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
