//! Which server gets a job.

use serde_json::json;

use super::fixture::{Group, dead_url, keyed};
use crate::service::fixture::{Site, job};

const LONG: &str = "import time; time.sleep(600)";

fn long() -> serde_json::Value {
    let mut body = job(LONG);
    body["timeout"] = 700.into();
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_go_where_there_is_least_to_do() {
    let group = Group::new(&[1, 3]);
    let (router, client) = group.routed().await;
    router
        .until(|health| {
            let slots = |place: usize| health["servers"][place]["load"]["cpu"]["slots"].as_u64();
            (slots(0), slots(1)) == (Some(1), Some(3))
        })
        .await;
    for _ in 0..8 {
        client.submit(&long()).await;
    }
    let counts = group.counts().await;
    assert!((1..=3).contains(&counts[0]) && counts[0] + counts[1] == 8, "{counts:?}");
    // One that got much by another way gets no more.
    let direct = group.servers[1].client(&group.key);
    for _ in 0..20 {
        direct.submit(&long()).await;
    }
    let load = |health: &serde_json::Value, place: usize| health["servers"][place]["load"]["cpu"].clone();
    router
        .until(|health| load(health, 1)["waiting"].as_u64() >= Some(20) && load(health, 0)["busy"] == 1)
        .await;
    let before = group.counts().await;
    for _ in 0..3 {
        client.submit(&long()).await;
    }
    let after = group.counts().await;
    assert_eq!((after[0] - before[0], after[1] - before[1]), (3, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_servers_take_turns() {
    let group = Group::new(&[0, 0, 0]);
    let (_router, client) = group.routed().await;
    for _ in 0..6 {
        client.submit(&long()).await;
    }
    // They have no slots, so that none is better than another.
    assert_eq!(group.counts().await, [2, 2, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_is_passed_over_and_when_all_are_full_the_client_is_told_so() {
    let group = Group::of(&[0, 0], |_, site| site.set("service.queue_limit=2"));
    let (_router, client) = group.routed().await;
    for number in 0..4 {
        client.submit(&keyed(&format!("k{number}"))).await;
    }
    assert_eq!(group.counts().await, [2, 2]);
    let full = client.post("/api/v1/jobs", &keyed("k4")).await;
    assert!(full.headers["retry-after"].parse::<u32>().unwrap() >= 1);
    assert_eq!(full.refused(429).0, "queue_full");
    // What is there is found nevertheless, and the one that was refused may come later.
    let again = client.post("/api/v1/jobs", &keyed("k1")).await;
    assert_eq!(again.headers["idempotent-replay"], "true");
    let first = again.ok()["job_id"].as_str().unwrap().to_owned();
    client.delete(&format!("/api/v1/jobs/{first}")).await.ok();
    client.submit(&keyed("k4")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_for_a_gpu_goes_to_a_server_that_takes_it() {
    let gpu = |key: &str| {
        let mut body = keyed(key);
        body["resource_type"] = json!("gpu");
        body
    };
    let some = |number: usize, site: Site| match number {
        1 => site.set("service.gpu_as_cpu=true"),
        _ => site,
    };
    let group = Group::of(&[1, 0], some);
    let (_router, client) = group.routed().await;
    for number in 0..3 {
        client.submit(&gpu(&format!("k{number}"))).await;
    }
    assert_eq!(group.counts().await, [0, 3]);
    let group = Group::new(&[1, 1]);
    let (_router, client) = group.routed().await;
    assert_eq!(client.post("/api/v1/jobs", &gpu("k")).await.refused(422).0, "no_gpu");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_dead_from_the_beginning_does_no_harm() {
    let group = Group::new(&[1]);
    group.write(&[group.servers[0].url.clone(), dead_url()], "");
    let router = group.route_as_written(&[]);
    let client = router.client(&group.key);
    for number in 0..5 {
        let body = keyed(&format!("k{number}"));
        let done = client.run(&body).await;
        assert_eq!(done["status"], "completed");
    }
    let answer = client.request(reqwest::Method::POST, "/api/v1/jobs/submit_and_wait?timeout_s=100");
    let answer = client
        .send(
            answer
                .header("Content-Type", "application/json")
                .body(keyed("w").to_string()),
        )
        .await;
    assert_eq!(
        (answer.status.as_u16(), &answer.ok()["status"]),
        (200, &json!("completed"))
    );
    assert!(!answer.headers.contains_key("idempotent-replay"), "{answer:?}");
    let listed = client.get("/api/v1/jobs").await.ok();
    assert_eq!(
        (listed["jobs"].as_array().unwrap().len(), &listed["unreachable"]),
        (6, &json!(["b"]))
    );
    let said = router.stop();
    assert!(
        said.contains("a server does not answer") && said.contains("stopped"),
        "{said}"
    );
}
