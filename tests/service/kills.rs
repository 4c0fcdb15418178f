//! A server that is stopped or killed: nothing that was answered is lost, nothing is run to its end twice.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::fixture::{LIMIT, Site, job};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_stopped_gives_its_jobs_back() {
    let site = Site::new();
    let server = site.serve("native", 1);
    let key = server.first_key.clone().unwrap();
    let client = server.client(&key);
    let code = "import os, time\nprint('begun', flush=True)\ntime.sleep(600 if os.environ['LONG'] == '1' else 0)";
    let mut body = job(code);
    body["environment"] = json!({"LONG": "1"});
    body["timeout"] = 700.into();
    let running = client.submit(&body).await;
    client.wait_for(&running, &["running"]).await;
    let waiting = client.submit(&job("print(1)")).await;
    let begin = Instant::now();
    let said = server.stop();
    assert!(
        said.contains("stopping: jobs that run go back into the queue"),
        "{said}"
    );
    assert!(begin.elapsed() < Duration::from_secs(60));
    let rows = site.rows("SELECT job_id, state, attempts FROM sandbox.requests ORDER BY job_id");
    let expected = json!([
        {"job_id": running, "state": "queued", "attempts": 0},
        {"job_id": waiting, "state": "queued", "attempts": 0},
    ]);
    assert_eq!(rows, expected, "an orderly stop is no attempt");

    let server = site.serve("native", 1);
    let client = server.client(&key);
    client.wait_for(&running, &["running"]).await;
    client.delete(&format!("/api/v1/jobs/{running}")).await.ok();
    assert_eq!(client.wait(&waiting).await["status"], "completed");
    assert_eq!(client.wait(&running).await["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn killed_with_a_full_queue_it_loses_and_doubles_nothing() {
    const JOBS: usize = 250;
    let site = Site::new();
    let server = site.serve("process", 2);
    let key = server.first_key.clone().unwrap();
    let body = |number: usize| {
        let mut body = job(&format!("print('number {number}')"));
        body["idempotency_key"] = format!("k{number}").into();
        body
    };
    // Killed while requests come and jobs run.
    let sender = server.client(&key);
    let sending = tokio::spawn(async move {
        let mut answered = Vec::new();
        for number in 0..JOBS {
            let request = sender.post_json("/api/v1/jobs", &body(number));
            match sender.try_send(request).await {
                Ok(answer) => answered.push((number, answer.ok()["job_id"].as_str().unwrap().to_owned())),
                Err(_) => break,
            }
        }
        answered
    });
    let client = server.client(&key);
    loop {
        let done = client.get("/api/v1/jobs?status=completed&limit=500").await.ok();
        let waiting = client.get("/api/v1/jobs?status=queued&limit=500").await.ok();
        let count = |page: &Json| page["jobs"].as_array().unwrap().len();
        if count(&done) >= 5 && count(&waiting) >= 60 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.kill();
    let answered = sending.await.unwrap();
    assert!(answered.len() >= 60, "{}", answered.len());

    let server = site.serve("process", 2);
    let client = server.client(&key);
    // A client that had no answer asks again, and so do those that had one.
    let mut ids = BTreeSet::new();
    for number in 0..JOBS {
        ids.insert(client.submit(&body(number)).await);
    }
    assert_eq!(ids.len(), JOBS);
    for (_, id) in &answered {
        assert!(ids.contains(id), "an answered job is lost");
    }
    let begin = Instant::now();
    loop {
        let open = client.get("/api/v1/jobs?status=queued&limit=1").await.ok();
        let running = client.get("/api/v1/jobs?status=running&limit=1").await.ok();
        if open["jobs"] == json!([]) && running["jobs"] == json!([]) {
            break;
        }
        assert!(begin.elapsed() < LIMIT);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let (number, id) = &answered[0];
    let first = client.job(id).await;
    assert!(
        first["result"]["run_log"]
            .as_str()
            .unwrap()
            .contains(&format!("number {number}"))
    );
    server.stop();
    let rows = site.rows(
        "SELECT count(*) AS requests, count(DISTINCT idempotency_key) AS keys,
                count(*) FILTER (WHERE state = 'completed') AS completed, max(attempts) AS attempts
         FROM sandbox.requests",
    );
    assert_eq!(rows[0]["requests"], JOBS, "{rows}");
    assert_eq!(
        (&rows[0]["keys"], &rows[0]["completed"]),
        (&json!(JOBS), &json!(JOBS)),
        "{rows}"
    );
    assert!(rows[0]["attempts"].as_i64().unwrap() <= 2, "{rows}");
    let rows = site.rows("SELECT count(*) AS jobs, count(DISTINCT job_id) AS ids FROM sandbox.jobs");
    assert_eq!(rows, json!([{"jobs": JOBS, "ids": JOBS}]), "each has one end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_set_forward_takes_no_job_from_a_worker_that_lives() {
    let site = Site::new().set("service.lease_seconds=5");
    let server = site.serve("process", 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    let running = client.submit(&job("import time; time.sleep(6)")).await;
    client.wait_for(&running, &["running"]).await;
    // What the lease looks like then. The server looks for lost jobs every second.
    let lapse = "UPDATE job_requests SET lease_until = 0 WHERE state = 'running'";
    let database = site.database();
    let done = loop {
        database.execute(lapse, []).unwrap();
        let job = client.job(&running).await;
        if job["status"] != "running" {
            break job;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(
        (&done["status"], &done["attempts"]),
        (&json!("completed"), &json!(1)),
        "{done}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_taken_from_its_worker_counts_for_its_user_no_more() {
    let site = Site::new().set("service.lease_seconds=5");
    let server = site.serve("process", 1);
    let ann = server.client(&site.key("ann", &["--running", "1"]));
    let taken = ann.submit(&job("import time; time.sleep(600)")).await;
    ann.wait_for(&taken, &["running"]).await;
    // Another server of this store, which took it over.
    let other = "UPDATE job_requests SET owner = 'elsewhere', attempts = attempts + 1,
                 lease_until = lease_until + 3600000000 WHERE state = 'running'";
    assert_eq!(site.database().execute(other, []).unwrap(), 1);
    assert_eq!(ann.run(&job("print(1)")).await["status"], "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_ended_long_ago_are_only_in_the_tables() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let key = server.first_key.clone().unwrap();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let done = server.client(&key).run(&job("print(1)")).await;
        ids.push(done["job_id"].as_str().unwrap().to_owned());
    }
    server.stop();
    let days = 31_i64 * 24 * 3600 * 1_000_000;
    site.database()
        .execute(
            "UPDATE job_requests SET finished_at = finished_at - ?1 WHERE job_id = ?2",
            rusqlite::params![days, ids[0]],
        )
        .unwrap();
    let server = site.serve("process", 1);
    let client = server.client(&key);
    client.get(&format!("/api/v1/jobs/{}", ids[0])).await.refused(404);
    assert_eq!(client.job(&ids[1]).await["status"], "completed");
    server.stop();
    let rows = site.rows("SELECT count(*) AS n FROM sandbox.requests");
    assert_eq!(rows, json!([{"n": 2}]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_under_which_the_server_always_dies_fails_in_the_end() {
    let site = Site::new().set("service.max_attempts=2");
    let mut key = None;
    let mut job_id = None;
    for attempt in 1..=2 {
        let server = site.serve("native", 1);
        let key = key.get_or_insert_with(|| server.first_key.clone().unwrap());
        let client = server.client(key);
        if job_id.is_none() {
            job_id = Some(client.submit(&job("import time; time.sleep(600)")).await);
        }
        let running = client.wait_for(job_id.as_ref().unwrap(), &["running"]).await;
        assert_eq!(running["attempts"], attempt);
        server.kill();
    }
    let server = site.serve("native", 1);
    let failed = server.client(&key.unwrap()).wait(&job_id.unwrap()).await;
    assert_eq!(
        (&failed["status"], &failed["result"]["result"]),
        (&json!("failed"), &json!("sandbox_unconfirmed"))
    );
    let reason = failed["result"]["detail"]["reason"].as_str().unwrap();
    assert!(reason.contains("it was begun 2 times"), "{reason}");
}
