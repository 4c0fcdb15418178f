//! Workers on other machines: jobs are shared, each runs once whatever becomes of its worker, and what must stay on the server does.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::fixture::{Client, Server, Site, job};
use super::remote::{Remote, Wire, facts, shown, wait_until};
use crate::cli::tasks::{TASK, package, python, with_python};

/// A server that runs no jobs itself, a client of its admin, and a key for workers.
fn server(site: &Site, executor: &str) -> (Server, Client, String) {
    let server = site.serve(executor, 0);
    let client = server.client(server.first_key.as_deref().unwrap());
    let key = site.key("machines", &["--role", "worker"]);
    (server, client, key)
}

fn worker(site: &Site, server: &Server, key: &str, arguments: &[&str]) -> Remote {
    Remote::start(site, &server.url, key, &python(), arguments)
}

/// A job that notes its number in a file.
fn noted(site: &Site, number: usize, seconds: f64) -> Json {
    let ledger = site.place.path().join("ledger");
    job(&format!(
        "import time\ntime.sleep({seconds})\nopen({ledger:?}, 'a').write('{number}\\n')\nprint('number {number}')"
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_do_all_jobs_each_once() {
    const JOBS: usize = 40;
    let site = Site::new();
    let (server, client, key) = server(&site, "process");
    let workers = [(); 2].map(|()| worker(&site, &server, &key, &["--executor", "process", "--slots", "2"]));
    let mut ids = Vec::new();
    for number in 0..JOBS {
        ids.push(client.submit(&noted(&site, number, 0.05)).await);
    }
    let mut by: BTreeSet<String> = BTreeSet::new();
    for (number, id) in ids.iter().enumerate() {
        let done = client.wait(id).await;
        assert_eq!(
            (&done["status"], &done["attempts"]),
            (&json!("completed"), &json!(1)),
            "{done}"
        );
        let log = done["result"]["run_log"].as_str().unwrap();
        assert!(log.contains(&format!("number {number}\n")), "{log}");
        by.insert(done["worker_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(by, workers.iter().map(|worker| worker.id.clone()).collect());
    let ledger = std::fs::read_to_string(site.place.path().join("ledger")).unwrap();
    let mut numbers: Vec<usize> = ledger.lines().map(|line| line.parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..JOBS).collect::<Vec<_>>(), "each ran once");
    let row = shown(&client, &workers[0].id).await.unwrap();
    assert_eq!(
        (&row["status"], &row["slots"], &row["busy"], &row["executor"]),
        (&json!("idle"), &json!(2), &json!(0), &json!("process"))
    );
    assert!(
        row["host"].is_string() && row["version"].is_string() && row["last_seen"].is_string(),
        "{row}"
    );
    for worker in workers {
        let said = worker.stop();
        assert!(said.contains("left; what was running goes on elsewhere"), "{said}");
    }
    assert_eq!(
        client.get("/api/v1/workers/status").await.ok(),
        json!({"workers_show": []})
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_jobs_of_a_killed_worker_end_once_on_another() {
    const JOBS: usize = 20;
    let site = Site::new().set("service.lease_seconds=4");
    let (server, client, key) = server(&site, "process");
    let arguments = ["--executor", "process", "--slots", "2"];
    let mut killed = worker(&site, &server, &key, &arguments);
    let mut ids = Vec::new();
    for number in 0..JOBS {
        ids.push(client.submit(&noted(&site, number, 0.5)).await);
    }
    wait_until(&client, &killed.id, "busy").await;
    killed.kill();
    let other = worker(&site, &server, &key, &arguments);
    let mut again = 0;
    for id in &ids {
        let done = client.wait(id).await;
        assert_eq!(done["status"], "completed", "{done}");
        again += usize::from(done["attempts"] == 2);
        let by = done["worker_id"].as_str().unwrap();
        assert!(by == other.id || by == killed.id);
    }
    assert!((1..=2).contains(&again), "what it had began anew: {again}");
    wait_until(&client, &killed.id, "lost").await;
    server.stop();
    let rows = site.rows("SELECT count(*) AS runs, count(DISTINCT job_id) AS jobs FROM sandbox.jobs");
    assert_eq!(rows, json!([{"runs": JOBS, "jobs": JOBS}]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_is_followed_and_a_cancel_arrives() {
    let site = Site::new();
    let (server, client, key) = server(&site, "native");
    let worker = worker(&site, &server, &key, &["--executor", "native", "--slots", "1"]);
    let code =
        "import sys, time\nprint('first', flush=True)\nprint('aside', file=sys.stderr, flush=True)\ntime.sleep(300)";
    let mut body = job(code);
    body["timeout"] = 400.into();
    let job_id = client.submit(&body).await;
    for (stream, expected) in [("stdout", "first\n"), ("stderr", "aside\n")] {
        let path = format!("/api/v1/jobs/{job_id}/logs?stream={stream}");
        let mut seen = client.get(&path).await;
        // A program may write its line in two parts.
        while !seen.text.ends_with('\n') {
            assert!(["queued", "running"].contains(&client.job(&job_id).await["status"].as_str().unwrap()));
            tokio::time::sleep(Duration::from_millis(50)).await;
            seen = client.get(&path).await;
        }
        assert_eq!(seen.text, expected);
    }
    assert_eq!(
        client.job(&job_id).await["status"],
        "running",
        "it is seen before the end"
    );
    client.delete(&format!("/api/v1/jobs/{job_id}")).await.ok();
    assert_eq!(client.wait(&job_id).await["status"], "cancelled");
    let next = client.run(&job("print('next')")).await;
    assert_eq!(
        (&next["status"], &next["worker_id"]),
        (&json!("completed"), &json!(worker.id))
    );
    assert_eq!(next["result"]["detail"]["isolation"], "isolated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_stopped_gives_its_job_back() {
    let site = Site::new();
    let (server, client, key) = server(&site, "process");
    let first = worker(&site, &server, &key, &["--executor", "process", "--slots", "1"]);
    let flag = site.place.path().join("flag");
    let code = format!("import os, time\ntime.sleep(0 if os.path.exists({flag:?}) else 300)");
    let mut body = job(&code);
    body["timeout"] = 400.into();
    let job_id = client.submit(&body).await;
    client.wait_for(&job_id, &["running"]).await;
    first.stop();
    let queued = client.job(&job_id).await;
    assert_eq!(
        (&queued["status"], &queued["attempts"]),
        (&json!("queued"), &json!(0)),
        "{queued}"
    );
    std::fs::write(flag, "").unwrap();
    let _second = worker(&site, &server, &key, &["--executor", "process", "--slots", "1"]);
    let done = client.wait(&job_id).await;
    assert_eq!((&done["status"], &done["attempts"]), (&json!("completed"), &json!(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_goes_on_while_its_server_begins_anew() {
    let site = Site::new();
    let (first, client, key) = server(&site, "process");
    let admin = first.first_key.clone().unwrap();
    let wire = Wire::to(first.address()).await;
    let worker = Remote::start(
        &site,
        &wire.url,
        &key,
        &python(),
        &["--executor", "process", "--slots", "1"],
    );
    let job_id = client.submit(&noted(&site, 7, 6.0)).await;
    client.wait_for(&job_id, &["running"]).await;
    first.stop();
    let second = site.serve("process", 0);
    wire.lead_to(second.address());
    let client = second.client(&admin);
    let done = client.wait(&job_id).await;
    assert_eq!(
        (&done["status"], &done["attempts"], &done["worker_id"]),
        (&json!("completed"), &json!(1), &json!(worker.id)),
        "{done}"
    );
    assert!(done["result"]["run_log"].as_str().unwrap().contains("number 7"));
    let ledger = std::fs::read_to_string(site.place.path().join("ledger")).unwrap();
    assert_eq!(ledger, "7\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_and_roles_are_looked_at() {
    let site = Site::new();
    let (server, admin, key) = server(&site, "process");
    let machines = server.client(&key);
    let mut other = facts(&admin, "w1").await;
    other["version"] = "99.0.0".into();
    let (code, message) = machines.post("/api/v1/workers/join", &other).await.refused(409);
    assert_eq!(code, "version_mismatch");
    assert!(message.contains("99.0.0"), "{message}");

    let good = facts(&admin, "w1").await;
    let submitter = server.client(&site.key("ann", &[]));
    submitter.post("/api/v1/workers/join", &good).await.refused(403);
    server.stranger().post("/api/v1/workers/join", &good).await.refused(401);
    for path in ["/api/v1/jobs", "/api/v1/jobs/x", "/api/v1/uploads/x", "/metrics"] {
        machines.get(path).await.refused(403);
    }
    machines.post("/api/v1/jobs", &job("print(1)")).await.refused(403);
    machines.post("/api/v1/workers/join", &good).await.ok();
    machines.post("/api/v1/workers/w1/drain", &json!({})).await.refused(403);

    // Another key knows nothing of this worker.
    let others = server.client(&site.key("others", &["--role", "worker"]));
    others.post("/api/v1/workers/join", &good).await.refused(409);
    let asked = json!({"class": "cpu", "wait_seconds": 0.0});
    others.post("/api/v1/workers/w1/claim", &asked).await.refused(404);
    let claimed = machines.post("/api/v1/workers/w1/claim", &asked).await.ok();
    assert_eq!(claimed, json!({"job": null, "probe": null}));
    for wrong in [
        json!({"class": "cpu", "wait_seconds": -1.0}),
        json!({"class": "tpu", "wait_seconds": 0.0}),
        json!([]),
    ] {
        machines.post("/api/v1/workers/w1/claim", &wrong).await.refused(422);
    }
    for path in ["data/../../x", "data/x", "finish", "give_back"] {
        let answer = machines
            .post(&format!("/api/v1/workers/w1/jobs/none/{path}"), &json!({}))
            .await;
        assert!(answer.status.is_client_error(), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_end_changes_nothing() {
    let site = Site::new().set("service.lease_seconds=4");
    let (server, admin, key) = server(&site, "process");
    let machines = server.client(&key);
    machines
        .post("/api/v1/workers/join", &facts(&admin, "w1").await)
        .await
        .ok();
    let job_id = admin.submit(&job("print(1)")).await;
    let asked = json!({"class": "cpu", "wait_seconds": 20.0});
    let claimed = machines.post("/api/v1/workers/w1/claim", &asked).await.ok();
    assert_eq!(claimed["job"]["job_id"], json!(job_id));
    // What a worker gets is what it runs, and no more.
    let names: BTreeSet<&str> = claimed["job"].as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "attempt",
        "code",
        "data",
        "environment",
        "job_id",
        "limits",
        "output_is_folder",
        "output_name",
    ];
    assert_eq!(names, BTreeSet::from(expected));
    wait_until(&admin, "w1", "lost").await;
    let queued = admin.wait_for(&job_id, &["queued"]).await;
    assert_eq!(queued["attempts"], 1, "it counts");
    let path = |end: &str| format!("/api/v1/workers/w1/jobs/{job_id}/{end}");
    let late = json!({"attempt": 1, "end": {"failed": {"reason": "late"}}});
    let (code, _) = machines.post(&path("finish"), &late).await.refused(409);
    assert_eq!(code, "lease_lost");
    let attempt = json!({"job_id": job_id, "attempt": 1});
    machines.post(&path("give_back"), &attempt).await.refused(409);
    let unchanged = admin.job(&job_id).await;
    assert_eq!(
        (&unchanged["status"], &unchanged["attempts"]),
        (&json!("queued"), &json!(1))
    );
    // The next attempt is another lease, and a wrong submission is not taken.
    machines.post("/api/v1/workers/w1/claim", &asked).await.ok();
    machines.post(&path("finish"), &late).await.refused(409);
    let request = machines.request(reqwest::Method::POST, &path("submission?attempt=2&offset=5"));
    machines.send(request.body("x")).await.refused(422);
    let cancelled = json!({"attempt": 2, "end": "cancelled"});
    machines.post(&path("finish"), &cancelled).await.refused(422);
    let good = json!({"attempt": 2, "end": {"failed": {"reason": "no"}}});
    assert_eq!(machines.post(&path("finish"), &good).await.status, 204);
    machines.post(&path("finish"), &good).await.refused(409);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_sandbox_fails_is_set_apart_until_it_works() {
    let site = Site::new()
        .set("service.quarantine_after=2")
        .set("service.max_attempts=5")
        .set("service.probe_seconds=1");
    let (server, client, key) = server(&site, "process");
    // An interpreter that can be taken away.
    let wrapper = site.place.path().join("python");
    place_wrapper(&wrapper);
    let arguments = ["--executor", "process", "--slots", "1"];
    let worker = Remote::start(&site, &server.url, &key, &wrapper, &arguments);
    assert_eq!(client.run(&job("print(1)")).await["status"], "completed");
    std::fs::remove_file(&wrapper).unwrap();
    let job_id = client.submit(&job("print('at last')")).await;
    wait_until(&client, &worker.id, "quarantined").await;
    // The job goes back just after.
    let waiting = client.wait_for(&job_id, &["queued"]).await;
    assert_eq!(
        (&waiting["status"], &waiting["attempts"]),
        (&json!("queued"), &json!(2)),
        "{waiting}"
    );
    // Bad probes leave it where it is.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(shown(&client, &worker.id).await.unwrap()["status"], "quarantined");
    place_wrapper(&wrapper);
    let done = client.wait(&job_id).await;
    assert_eq!(
        (&done["status"], &done["attempts"]),
        (&json!("completed"), &json!(3)),
        "{done}"
    );
    wait_until(&client, &worker.id, "idle").await;
}

fn place_wrapper(path: &Path) {
    let new = path.with_extension("new");
    std::fs::write(&new, format!("#!/bin/sh\nexec '{}' \"$@\"\n", python().display())).unwrap();
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_drains_a_worker_and_lets_it_go_on() {
    let site = Site::new();
    let (server, client, key) = server(&site, "process");
    let worker = worker(&site, &server, &key, &["--executor", "process", "--slots", "1"]);
    let running = client.submit(&job("import time; time.sleep(3)")).await;
    client.wait_for(&running, &["running"]).await;
    let path = |what: &str| format!("/api/v1/workers/{}/{what}", worker.id);
    assert_eq!(client.post(&path("drain"), &json!({})).await.status, 204);
    client.post("/api/v1/workers/none/drain", &json!({})).await.refused(404);
    wait_until(&client, &worker.id, "draining").await;
    let waiting = client.submit(&job("print(2)")).await;
    assert_eq!(client.wait(&running).await["status"], "completed", "what runs goes on");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(client.job(&waiting).await["status"], "queued");
    assert_eq!(client.post(&path("resume"), &json!({})).await.status, 204);
    assert_eq!(client.wait(&waiting).await["status"], "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_metrics_and_keys_never_reach_a_worker() {
    let site = Site::new();
    let package = package(&site.place);
    with_python(&site.place, ["task", "add", &package.to_string_lossy()]).ok();
    let (server, client, key) = server(&site, "native");
    let wire = Wire::to(server.address()).await;
    let worker = Remote::start(
        &site,
        &wire.url,
        &key,
        &python(),
        &["--executor", "native", "--slots", "1"],
    );
    let code = "import os, pandas as pd\nsample = pd.read_csv(os.path.join(os.environ['DATA_DIR'], 'sample_submission.csv'))\n\
                sample.iloc[:, -1] = 0.5\nsample.to_csv('submission.csv', index=False)\nprint('Final Validation Score: 0.99')";
    for split in ["validation", "final"] {
        let body = json!({"name": TASK, "code": code, "data_dir": TASK, "timeout": 120, "eval_split": split});
        let done = client.run(&body).await;
        let result = &done["result"];
        assert_eq!(
            (&result["result"], &result["score"], &result["score_source"]),
            (&json!("success"), &json!(0.5), &json!("evaluator")),
            "a constant has an area of one half: {done}"
        );
        assert_eq!(done["worker_id"], json!(worker.id));
    }
    let received = wire.received();
    let train = std::fs::read_to_string(package.join("data/public/train.csv")).unwrap();
    assert!(received.contains(train.lines().next().unwrap()), "the public data came");
    let answers = hidden_files(site.place.path());
    assert!(answers.len() >= 2, "those of both splits: {answers:?}");
    for path in &answers {
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert!(lines.len() > 20, "{}", path.display());
        for run in lines.windows(20).map(|run| run.join("\n")) {
            assert!(!received.contains(&run), "a part of {} was received", path.display());
        }
    }
    let metric = std::fs::read_to_string(package.join("utils/metric.py")).unwrap();
    let class = metric.lines().find(|line| line.starts_with("class ")).unwrap();
    assert!(!received.contains(class), "the metric was received");
    for name in ["test_answer", "data/private", "metric.py", "clade_", "admin"] {
        assert!(!received.contains(name), "'{name}' was received");
    }
}

/// Answers below a folder.
fn hidden_files(root: &Path) -> Vec<std::path::PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if path.to_string_lossy().contains("answer") && path.extension().is_some_and(|end| end == "csv") {
                found.push(path);
            }
        }
    }
    found
}
