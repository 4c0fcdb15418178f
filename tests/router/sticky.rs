//! A job is found wherever it is.

use reqwest::Method;
use serde_json::json;

use super::fixture::{Group, keyed};
use crate::service::fixture::{Client, job};

const TALKS: &str = "import time\nprint('first', flush=True)\ntime.sleep(600)";

async fn spread(client: &Client) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(client.submit(&keyed(&format!("k{number}"))).await);
    }
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_are_found_after_a_restart_of_the_router_and_through_another_one() {
    let group = Group::new(&[1, 1]);
    let (router, client) = group.routed().await;
    let ids = spread(&client).await;
    let other = group.route();
    for id in &ids {
        let done = other.client(&group.key).wait(id).await;
        assert_eq!(done["status"], "completed");
        let log = client.get(&format!("/api/v1/jobs/{id}/logs?offset=1&limit=1")).await;
        assert_eq!((log.status.as_u16(), log.text.len()), (200, 1));
        assert_eq!(
            ["x-log-offset", "x-log-next-offset", "x-log-complete"].map(|name| log.headers[name].as_str()),
            ["1", "2", "false"]
        );
    }
    router.stop();
    let router = group.route();
    let client = router.client(&group.key);
    for id in &ids {
        client.get(&format!("/api/v1/jobs/{id}/logs")).await;
        let cancelled = client.delete(&format!("/api/v1/jobs/{id}")).await;
        assert_eq!(
            (cancelled.status.as_u16(), &cancelled.ok()["status"]),
            (202, &json!("completed"))
        );
        assert_eq!(client.job(id).await["status"], "completed");
    }
    // The trace is kept, and other users' jobs are not found.
    let traced = client
        .post_json("/api/v1/jobs", &keyed("traced"))
        .header("X-Trace-ID", "t1");
    let traced = client.send(traced).await.ok()["job_id"].as_str().unwrap().to_owned();
    let shown = client.get(&format!("/api/v1/jobs/{traced}")).await;
    assert_eq!(shown.headers["x-trace-id"], "t1");
    let bob = router.client(&group.user("bob", "submit"));
    assert_eq!(
        bob.get(&format!("/api/v1/jobs/{traced}")).await.refused(404).0,
        "unknown_job"
    );
    assert_eq!(
        bob.delete(&format!("/api/v1/jobs/{traced}")).await.refused(404).0,
        "unknown_job"
    );
    bob.get("/api/v1/jobs/0198c0de-0000-7000-8000-000000000000/logs")
        .await
        .refused(404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_followed_through_the_router() {
    let group = Group::new(&[1, 1]);
    let (router, client) = group.routed().await;
    let mut body = job(TALKS);
    body["timeout"] = 700.into();
    let id = client.submit(&body).await;
    // Another one, which has to look for it.
    let other = group.route();
    let path = format!("/api/v1/jobs/{id}/logs?follow=true");
    for (client, is_last) in [(other.client(&group.key), false), (client, true)] {
        let mut response = client.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut seen = String::new();
        while !seen.contains("first") {
            seen.push_str(&String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap()));
        }
        assert_eq!(client.job(&id).await["status"], "running", "it is seen before the end");
        // Taken up again from the middle.
        let again = client.request(Method::GET, &path).header("Last-Event-ID", "3");
        let mut again = again.send().await.unwrap();
        let part = again.chunk().await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&part).contains("\"offset\":3"), "{part:?}");
        if is_last {
            client.delete(&format!("/api/v1/jobs/{id}")).await.ok();
            while let Some(part) = response.chunk().await.unwrap() {
                seen.push_str(&String::from_utf8_lossy(&part));
            }
            assert!(seen.contains("event: end") && seen.contains("cancelled"), "{seen}");
        }
    }
    // A log that is followed does not hold up the stop.
    let id = router.client(&group.key).submit(&body).await;
    let path = format!("/api/v1/jobs/{id}/logs?follow=true");
    let open = router
        .client(&group.key)
        .request(Method::GET, &path)
        .send()
        .await
        .unwrap();
    assert_eq!(open.status().as_u16(), 200);
    router.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_answer_is_named_and_jobs_of_others_are_found() {
    let mut group = Group::new(&[0, 0]);
    let (router, client) = group.routed().await;
    let ids = spread(&client).await;
    let gone: Vec<String> = {
        let listed = group.servers[1].client(&group.key).get("/api/v1/jobs").await.ok();
        let jobs = listed["jobs"].as_array().unwrap();
        jobs.iter()
            .map(|job| job["job_id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!((ids.len(), gone.len()), (4, 2));
    let address = group.servers[1].address().to_owned();
    group.servers.remove(1).kill();
    router.until_up("b", false).await;
    let fresh = group.route_as_written(&[]);
    for client in [&client, &fresh.client(&group.key)] {
        for id in &ids {
            let answer = client.get(&format!("/api/v1/jobs/{id}")).await;
            if gone.contains(id) {
                assert!(answer.headers.contains_key("retry-after"));
                let (code, message) = answer.refused(503);
                assert_eq!(
                    (code.as_str(), message.contains("server b ")),
                    ("server_unreachable", true)
                );
                client.delete(&format!("/api/v1/jobs/{id}")).await.refused(503);
                client.get(&format!("/api/v1/jobs/{id}/logs")).await.refused(503);
            } else {
                answer.ok();
            }
        }
        let nowhere = client.get("/api/v1/jobs/0198c0de-0000-7000-8000-000000000000").await;
        assert_eq!(
            nowhere.refused(503).0,
            "server_unreachable",
            "it may be on the one that does not answer"
        );
    }
    let _server = group.sites[1].serve_at(&address, "process", 0, &[]);
    router.until_up("b", true).await;
    for id in &ids {
        client.job(id).await;
    }
    let nowhere = client.get("/api/v1/jobs/0198c0de-0000-7000-8000-000000000000").await;
    assert_eq!(nowhere.refused(404).0, "unknown_job");
}
