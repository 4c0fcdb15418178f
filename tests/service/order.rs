//! What comes next: priorities, fair shares, classes, idempotent requests.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::fixture::{Client, Site, job};

/// The ids of jobs in the order in which they were begun.
async fn begun(client: &Client, ids: &[String]) -> Vec<usize> {
    let mut times = Vec::new();
    for (number, id) in ids.iter().enumerate() {
        let job = client.wait(id).await;
        times.push((job["started_at"].as_str().unwrap().to_owned(), number));
    }
    times.sort();
    times.into_iter().map(|(_, number)| number).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn priority_comes_first_and_users_share() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let admin = server.client(server.first_key.as_deref().unwrap());
    let blocker = admin.submit(&job("import time; time.sleep(120)")).await;
    admin.wait_for(&blocker, &["running"]).await;
    let (many, few) = (
        server.client(&site.key("many", &[])),
        server.client(&site.key("few", &[])),
    );
    let with_priority = |priority: u8| {
        let mut body = job("pass");
        body["priority"] = priority.into();
        body
    };
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(many.submit(&with_priority(2)).await);
    }
    ids.push(few.submit(&with_priority(2)).await);
    ids.push(few.submit(&with_priority(2)).await);
    ids.push(few.submit(&with_priority(9)).await);
    ids.push(many.submit(&with_priority(1)).await);
    admin.delete(&format!("/api/v1/jobs/{blocker}")).await.ok();
    let order = begun(&admin, &ids).await;
    // The urgent one; then the users in turns; the one that may wait last.
    assert_eq!(order, [7, 4, 0, 5, 1, 2, 3, 6]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_with_a_quota_of_running_jobs_leaves_workers_to_others() {
    let site = Site::new();
    let server = site.serve("process", 2);
    let greedy = server.client(&site.key("greedy", &["--running", "1"]));
    let other = server.client(&site.key("other", &[]));
    let sleeper = greedy.submit(&job("import time; time.sleep(120)")).await;
    let second = greedy.submit(&job("pass")).await;
    greedy.wait_for(&sleeper, &["running"]).await;
    assert_eq!(other.run(&job("pass")).await["status"], "completed");
    assert_eq!(greedy.job(&second).await["status"], "queued");
    greedy.delete(&format!("/api/v1/jobs/{sleeper}")).await.ok();
    assert_eq!(greedy.wait(&second).await["status"], "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gpu_is_promised_only_where_there_is_one() {
    let mut body = job("import os; print(os.environ['RESOURCE_TYPE'])");
    body["resource_type"] = "GPU".into();
    let site = Site::new();
    let server = site.serve("process", 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    let (code, message) = client.post("/api/v1/jobs", &body).await.refused(422);
    assert!(
        code == "no_gpu" && message.contains("no worker of this server has a GPU"),
        "{code} {message}"
    );
    let key = server.first_key.clone().unwrap();
    server.stop();

    let site = site.set("service.gpu_as_cpu=true");
    let server = site.serve("process", 1);
    let done = server.client(&key).run(&body).await;
    assert_eq!((&done["resource_type"], &done["class"]), (&json!("gpu"), &json!("cpu")));
    assert!(
        done["result"]["run_log"].as_str().unwrap().contains("\ncpu\n"),
        "the program is told the truth"
    );
    server.stop();

    let site = site.set("service.gpu_as_cpu=false").set("service.gpu_workers=1");
    let server = site.serve("process", 1);
    let client = server.client(&key);
    let blocker = client.submit(&job("import time; time.sleep(120)")).await;
    client.wait_for(&blocker, &["running"]).await;
    let done = client.run(&body).await;
    assert_eq!(done["class"], "gpu", "its own worker takes it while the other is busy");
    client.delete(&format!("/api/v1/jobs/{blocker}")).await.ok();
}

fn keyed(key: &str, code: &str) -> Json {
    let mut body = job(code);
    body["idempotency_key"] = key.into();
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_request_is_one_job_however_often_and_at_once_it_comes() {
    let site = Site::new();
    let server = site.serve("process", 2);
    let key = server.first_key.clone().unwrap();
    let client = server.client(&key);
    let mut racers = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let client = server.client(&key);
        racers.spawn(async move { client.post("/api/v1/jobs", &keyed("k", "print(1)")).await });
    }
    let (mut ids, mut replays) = (BTreeSet::new(), 0);
    while let Some(answer) = racers.join_next().await {
        let answer = answer.unwrap();
        ids.insert(answer.ok()["job_id"].as_str().unwrap().to_owned());
        replays += usize::from(
            answer
                .headers
                .get("idempotent-replay")
                .is_some_and(|value| value == "true"),
        );
    }
    assert_eq!((ids.len(), replays), (1, 19), "{ids:?}");
    let job_id = ids.into_iter().next().unwrap();

    // Fields in another order are the same request; another program is not.
    let text = r#"{"idempotency_key":"k","timeout":60.0,"data_dir":"d","code":"print(1)","name":"d","environment":{}}"#;
    let request = client
        .request(reqwest::Method::POST, "/api/v1/jobs")
        .header("Content-Type", "application/json")
        .body(text);
    assert_eq!(client.send(request).await.ok()["job_id"], job_id.as_str());
    let (code, message) = client.post("/api/v1/jobs", &keyed("k", "print(2)")).await.refused(409);
    assert!(code == "idempotency_conflict" && message.contains(&job_id), "{message}");
    // Keys are each user's own.
    let other = server.client(&site.key("other", &[]));
    assert_ne!(other.submit(&keyed("k", "print(2)")).await, job_id);
    client.wait(&job_id).await;
    server.stop();

    let server = site.serve("process", 1);
    let replay = server.client(&key).post("/api/v1/jobs", &keyed("k", "print(1)")).await;
    assert_eq!(
        (&replay.ok()["job_id"], &replay.ok()["status"]),
        (&json!(job_id), &json!("completed"))
    );
    assert_eq!(replay.headers["idempotent-replay"], "true");
    server.stop();
    let rows = site.rows("SELECT count(*) AS n FROM sandbox.requests WHERE \"user\" = 'admin'");
    assert_eq!(rows, json!([{"n": 1}]));
}

/// Not asserted, but printed: how fast jobs are taken, found again after a kill, and run.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "a measurement of minutes"]
#[expect(clippy::print_stdout, reason = "figures are its purpose")]
async fn ten_thousand_jobs_wait() {
    const JOBS: usize = 10_000;
    let site = Site::new()
        .set("service.queue_limit=20000")
        .set("service.queued_per_user=20000")
        .set("service.requests_per_minute=1000000");
    let server = site.serve("process", 1);
    let key = server.first_key.clone().unwrap();
    let client = server.client(&key);
    let blocker = client.submit(&job("import time; time.sleep(600)")).await;
    client.wait_for(&blocker, &["running"]).await;
    let begin = std::time::Instant::now();
    let mut senders = tokio::task::JoinSet::new();
    for sender in 0..16 {
        let client = server.client(&key);
        senders.spawn(async move {
            for _ in (sender..JOBS).step_by(16) {
                client.submit(&job("pass")).await;
            }
        });
    }
    while let Some(sent) = senders.join_next().await {
        sent.unwrap();
    }
    println!("{JOBS} jobs taken in {:.1} s", begin.elapsed().as_secs_f64());
    let begin = std::time::Instant::now();
    client.submit(&job("pass")).await;
    println!("one more in {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    let begin = std::time::Instant::now();
    client.get("/api/v1/jobs?status=queued&limit=100").await.ok();
    println!("a page of 100 in {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    server.kill();
    let begin = std::time::Instant::now();
    let server = site.serve("process", 2);
    println!("started anew in {:.2} s", begin.elapsed().as_secs_f64());
    let client = server.client(&key);
    client.delete(&format!("/api/v1/jobs/{blocker}")).await.ok();
    let figures = client.get("/metrics").await.text;
    for line in figures
        .lines()
        .filter(|line| line.starts_with("clade_jobs{") || line.starts_with("clade_queue"))
    {
        println!("{line}");
    }
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    let figures = client.get("/metrics").await.text;
    let done = figures.lines().find(|line| line.contains("state=\"completed\""));
    println!("after 20 s: {}", done.unwrap_or_default());
}
