//! Clients that are not ours: the published ones, by what they send and read, and a user's script.

use std::process::Command;

use serde_json::{Value as Json, json};

use super::fixture::{Client, Site, own_file, test_python};
use crate::shared;

/// Polls as the published clients do: with the states that they wait for.
async fn poll(client: &Client, job_id: &str) -> Json {
    loop {
        let answer = client.get(&format!("/api/v1/jobs/{job_id}")).await;
        assert_eq!(answer.status.as_u16(), 200, "{answer:?}");
        let job = answer.json();
        if !["queued", "running"].contains(&job["status"].as_str().unwrap()) {
            return job;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_published_clients_requests_are_taken() {
    if shared::folder().is_none() {
        return;
    }
    // They always ask for a GPU.
    let site = Site::new().set("service.gpu_as_cpu=true");
    let server = site.serve("process", 2);
    hand_in_published_requests(&server.client(server.first_key.as_deref().unwrap())).await;
}

/// Does what the published clients do, on a service that takes jobs for a GPU and has two workers.
pub async fn hand_in_published_requests(client: &Client) {
    let vectors = shared::vectors("sandbox_client.json");
    let mut requests = 0;
    for (number, case) in vectors["cases"].as_array().unwrap().iter().enumerate() {
        for variant in ["evo", "rl"] {
            let expected = &case["expected"][variant];
            let mut body = expected["request"].clone();
            if expected["sends_key"] == true {
                body["idempotency_key"] = format!("{number}").into();
            }
            let accepted = client.post("/api/v1/jobs", &body).await;
            assert_eq!(accepted.status.as_u16(), 200, "{body}: {accepted:?}");
            let job_id = accepted.json()["job_id"].as_str().unwrap().to_owned();
            let job = poll(client, &job_id).await;
            // "c" is no program that runs; that is a result, not a fault of the service.
            assert_eq!(
                (&job["status"], &job["result"]["result"], &job["result"]["score"]),
                (&json!("completed"), &json!("code_execution_error"), &Json::Null)
            );
            assert!(
                job["result"]["run_log"].as_str().unwrap().contains("NameError"),
                "{job}"
            );
            if expected["sends_key"] == true {
                let again = client.post("/api/v1/jobs", &body).await.ok();
                assert_eq!(
                    again["job_id"],
                    job_id.as_str(),
                    "a request that is sent again is the same job"
                );
            }
            requests += 1;
        }
    }
    assert!(requests >= 20, "{requests}");
    let workers = client.get("/api/v1/workers/status").await.ok();
    let idle = |worker: &&Json| worker["status"].as_str().unwrap().eq_ignore_ascii_case("idle");
    assert_eq!(
        workers["workers_show"].as_array().unwrap().iter().filter(idle).count(),
        2
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_submits_polls_reads_logs_and_cancels() {
    let site = Site::new();
    let server = site.serve("native", 2);
    let key = server.first_key.clone().unwrap();
    let url = server.url.clone();
    run_script(url, key).await;
}

/// Runs the script of a user.
pub async fn run_script(url: String, key: String) {
    let output = tokio::task::spawn_blocking(move || {
        Command::new(test_python())
            .arg(own_file("client.py"))
            .args([url, key])
            .output()
            .unwrap()
    });
    let output = output.await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Json = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({
        "done": ["completed", "success", 0.75],
        "replayed": true,
        "log": "hello\nFinal Validation Score: 0.75\n",
        "complete": "true",
        "cancel": 202,
        "cancelled": "cancelled",
        "listed": 2,
        "wrong": [422, "invalid_field"],
    });
    assert_eq!(seen, expected);
}
