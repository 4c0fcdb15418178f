//! A request with an idempotency key is one job, whatever breaks on the way.

use std::collections::BTreeSet;

use serde_json::json;

use super::cut::Cut;
use super::fixture::{Group, keyed};
use crate::service::fixture::Client;

async fn submitted(client: &Client, key: &str) -> String {
    client.submit(&keyed(key)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_key_is_one_job_at_once_and_after_a_restart_of_the_router() {
    let group = Group::new(&[0, 0, 0]);
    let (router, client) = group.routed().await;
    let (ann, same_ann) = (group.user("ann", "submit"), group.user("ann", "submit"));
    let mut all = tokio::task::JoinSet::new();
    for number in 0..24 {
        let key = if number % 2 == 0 { &ann } else { &same_ann };
        let client = router.client(key);
        all.spawn(async move { submitted(&client, &format!("k{}", number % 4)).await });
    }
    let mut ids = BTreeSet::new();
    while let Some(id) = all.join_next().await {
        ids.insert(id.unwrap());
    }
    assert_eq!(ids.len(), 4, "keys of one user are one user's");
    let first = submitted(&router.client(&ann), "k0").await;
    let admins = submitted(&client, "k0").await;
    assert!(!ids.contains(&admins), "another user's key is another");
    // The same key with another request.
    let mut other = keyed("k0");
    other["code"] = json!("print('other')");
    let (code, message) = router.client(&ann).post("/api/v1/jobs", &other).await.refused(409);
    assert_eq!(code, "idempotency_conflict");
    assert!(message.contains(&first), "{message}");

    router.stop();
    let router = group.route();
    for number in 0..4 {
        let answer = router
            .client(&ann)
            .post("/api/v1/jobs", &keyed(&format!("k{number}")))
            .await;
        assert_eq!(answer.headers["idempotent-replay"], "true");
        assert!(ids.contains(answer.ok()["job_id"].as_str().unwrap()), "{answer:?}");
    }
    let (code, _) = router.client(&ann).post("/api/v1/jobs", &other).await.refused(409);
    assert_eq!(code, "idempotency_conflict");
    assert_eq!(group.counts().await.iter().sum::<usize>(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_lost_makes_no_second_job() {
    let group = Group::new(&[0, 0]);
    let mut cuts = Vec::new();
    for server in &group.servers {
        cuts.push(Cut::to(server.address()).await);
    }
    let urls: Vec<String> = cuts.iter().map(|cut| cut.url.clone()).collect();
    group.write(&urls, "");
    let router = group.route_as_written(&[]);
    let client = router.client(&group.key);
    client.get("/api/v1/jobs").await.ok();
    // Lost once: the router asks the same server again.
    cuts.iter().for_each(|cut| cut.lose(1));
    let mut body = keyed("k1");
    let one = client.submit(&body).await;
    assert_eq!(cuts.iter().map(Cut::lost).sum::<usize>(), 1);
    // Without a key it is safe as well.
    cuts.iter().for_each(|cut| cut.lose(1));
    body.as_object_mut().unwrap().remove("idempotency_key");
    let two = client.submit(&body).await;
    assert_ne!(one, two);
    assert_eq!(group.counts().await.iter().sum::<usize>(), 2);
    // Lost always: the client is told so, and finds its job when answers come again.
    cuts.iter().for_each(|cut| cut.lose(1000));
    let lost = client.post("/api/v1/jobs", &keyed("k3")).await;
    assert!(lost.headers["retry-after"].parse::<u32>().unwrap() >= 1);
    let (code, message) = lost.refused(503);
    assert_eq!(code, "server_unreachable");
    assert!(
        message.contains("server a") || message.contains("server b"),
        "{message}"
    );
    client.post("/api/v1/jobs", &keyed("k3")).await.refused(503);
    cuts.iter().for_each(|cut| cut.lose(0));
    let answer = client.post("/api/v1/jobs", &keyed("k3")).await;
    assert_eq!(answer.headers["idempotent-replay"], "true");
    answer.ok();
    assert_eq!(group.counts().await.iter().sum::<usize>(), 3);
    let figures = client.get("/metrics").await.text;
    assert!(figures.contains("clade_router_unreachable_answers_total"), "{figures}");
    assert!(figures.contains("clade_router_server_retries{server="), "{figures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_waits_for_its_server_until_that_counts_as_gone() {
    let mut group = Group::new(&[0, 0]).set("failover_seconds = 4");
    let (router, client) = group.routed().await;
    let first = submitted(&client, "k").await;
    let counts = group.counts().await;
    let holder = counts.iter().position(|count| *count == 1).unwrap();
    let name = ["a", "b"][holder];
    group.servers.remove(holder).kill();
    router.until_up(name, false).await;
    let (code, message) = client.post("/api/v1/jobs", &keyed("k")).await.refused(503);
    assert_eq!(code, "server_unreachable");
    assert!(message.contains(&format!("server {name} ")), "{message}");
    // Others are not held up.
    submitted(&client, "other").await;
    let begin = std::time::Instant::now();
    let second = loop {
        let answer = client.post("/api/v1/jobs", &keyed("k")).await;
        if answer.status.is_success() {
            break answer.ok()["job_id"].as_str().unwrap().to_owned();
        }
        answer.refused(503);
        assert!(begin.elapsed() < crate::service::fixture::LIMIT);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    assert_ne!(first, second);
    assert_eq!(submitted(&client, "k").await, second);
    assert!(router.said().contains("its job may run twice"), "{}", router.said());
}
