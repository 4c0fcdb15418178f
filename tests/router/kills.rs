//! A server that is killed in the middle of work.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::fixture::{Group, keyed};
use crate::service::fixture::{Client, LIMIT, Server};

const JOBS: usize = 300;
const CLIENTS: usize = 6;

/// Hands a job in as clients do: what passes is tried again. Gives the job.
async fn insist(client: &Client, body: &Json) -> String {
    let begin = Instant::now();
    loop {
        let answer = client.post("/api/v1/jobs", body).await;
        match answer.status.as_u16() {
            200 => return answer.ok()["job_id"].as_str().unwrap().to_owned(),
            503 => {
                assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
                assert!(begin.elapsed() < LIMIT, "{answer:?}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            _ => panic!("{answer:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn with_a_server_that_is_killed_every_job_ends_once() {
    let mut group = Group::new(&[1, 1, 1]);
    let (router, _) = group.routed().await;
    let taken = Arc::new(AtomicUsize::new(0));
    let mut senders = tokio::task::JoinSet::new();
    for sender in 0..CLIENTS {
        let (client, taken) = (router.client(&group.key), Arc::clone(&taken));
        senders.spawn(async move {
            let mut ids = Vec::new();
            for number in (sender..JOBS).step_by(CLIENTS) {
                let key = format!("k{number}");
                ids.push((key.clone(), insist(&client, &keyed(&key)).await));
                taken.fetch_add(1, Ordering::SeqCst);
            }
            ids
        });
    }
    let until = async |count: usize| {
        while taken.load(Ordering::SeqCst) < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    until(60).await;
    let address = group.servers[1].address().to_owned();
    group.servers.remove(1).kill();
    until(160).await;
    let server = group.sites[1].serve_at(&address, "process", 1, &[]);
    group.servers.insert(1, server);
    let mut ids = BTreeMap::new();
    while let Some(sent) = senders.join_next().await {
        ids.extend(sent.unwrap());
    }
    assert_eq!(ids.len(), JOBS);
    // Once more by all clients: they are the same jobs.
    let client = router.client(&group.key);
    for (key, id) in &ids {
        assert_eq!(&insist(&client, &keyed(key)).await, id);
    }
    let begin = Instant::now();
    for state in ["queued", "running"] {
        loop {
            let open = client.get(&format!("/api/v1/jobs?status={state}&limit=1")).await.ok();
            if open["jobs"] == json!([]) && open["unreachable"] == json!([]) {
                break;
            }
            assert!(begin.elapsed() < 2 * LIMIT, "{open}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    for (key, id) in ids.iter().take(20) {
        let done = client.job(id).await;
        assert_eq!(
            (&done["status"], &done["idempotency_key"]),
            (&json!("completed"), &json!(key))
        );
    }
    router.stop();
    let moments = group
        .servers
        .drain(..)
        .map(Server::stop)
        .filter(|said| said.contains("stopping"))
        .count();
    assert_eq!(moments, 3);
    let mut keys = BTreeMap::new();
    let mut by_server = Vec::new();
    for rows in group.requests("job_id, idempotency_key, state") {
        let rows = rows.as_array().unwrap();
        by_server.push(rows.len());
        for row in rows {
            assert_eq!(row["state"], "completed", "{row}");
            let key = row["idempotency_key"].as_str().unwrap().to_owned();
            let id = row["job_id"].as_str().unwrap().to_owned();
            assert_eq!(keys.insert(key, id), None, "{row} is there twice");
        }
    }
    assert_eq!(keys, ids, "what clients were told is what there is");
    assert!(
        by_server.iter().all(|count| *count >= 20),
        "all took part: {by_server:?}"
    );
    for site in &group.sites {
        let ends = site.rows("SELECT count(*) AS ends, count(DISTINCT job_id) AS jobs FROM sandbox.jobs");
        assert_eq!(ends[0]["ends"], ends[0]["jobs"], "each has one end");
    }
}
