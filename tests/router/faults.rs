//! Servers that say that they do well, and fail.

use std::time::{Duration, Instant};

use serde_json::json;

use super::fixture::{Group, keyed};
use crate::service::fixture::{Client, LIMIT, Site, job};

/// From now on no job can be written.
fn take_no_jobs(site: &Site) {
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON job_requests BEGIN SELECT RAISE(ABORT, 'no more'); END";
    site.database().execute_batch(refuse).unwrap();
}

async fn is_failing(client: &Client, place: usize) -> bool {
    let shown = client.get("/api/v1/router/servers").await.ok();
    shown["servers"][place]["is_failing"] == true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_write_jobs_is_passed_over() {
    let group = Group::new(&[0, 0]);
    let (_router, client) = group.routed().await;
    take_no_jobs(&group.sites[0]);
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(client.submit(&keyed(&format!("k{number}"))).await);
        client.submit(&job("print(1)")).await;
    }
    assert_eq!(group.counts().await, [0, 8]);
    let again = client.post("/api/v1/jobs", &keyed("k0")).await;
    assert_eq!(again.headers["idempotent-replay"], "true");
    assert_eq!(again.ok()["job_id"], ids[0]);
    let figures = client.get("/metrics").await.text;
    assert!(
        figures.contains("clade_router_jobs_refused_total{server=\"a\"}"),
        "{figures}"
    );
    take_no_jobs(&group.sites[1]);
    let (code, _) = client.post("/api/v1/jobs", &keyed("late")).await.refused(500);
    assert_eq!(code, "internal");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_fails_every_question_holds_up_the_others_for_some_seconds_only() {
    let group = Group::new(&[0, 0]);
    let (_router, client) = group.routed().await;
    let database = group.sites[0].database();
    database
        .execute_batch("ALTER TABLE job_requests RENAME TO away")
        .unwrap();
    let (code, message) = client.post("/api/v1/jobs", &keyed("first")).await.refused(503);
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("server_unreachable", "server a does not answer")
    );
    let begin = Instant::now();
    while !client.post("/api/v1/jobs", &keyed("first")).await.status.is_success() {
        assert!(begin.elapsed() < LIMIT);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(is_failing(&client, 0).await);
    for number in 0..3 {
        client.submit(&keyed(&format!("k{number}"))).await;
        client.submit(&job("print(1)")).await;
    }
    let listed = group.servers[1].client(&group.key).get("/api/v1/jobs").await.ok();
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 7);
    // It is asked with every key, so that it is noticed when it does well again.
    database
        .execute_batch("ALTER TABLE away RENAME TO job_requests")
        .unwrap();
    client.submit(&keyed("k3")).await;
    assert!(!is_failing(&client, 0).await);
    client.submit(&keyed("k4")).await;
    let counts = group.counts().await;
    assert!(counts[0] > 0 && counts[0] + counts[1] == 9, "{counts:?}");
    let all = client.get("/api/v1/jobs").await.ok();
    assert_eq!(all["unreachable"], json!([]));
}
