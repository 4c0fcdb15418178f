//! Logs: ranges, live, and what a program cannot forge.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value as Json, json};

use super::fixture::{Answer, Client, Site, job};

async fn log(client: &Client, job_id: &str, query: &str) -> Answer {
    client.get(&format!("/api/v1/jobs/{job_id}/logs?{query}")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_read_in_parts() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    let code = "import sys\nsys.stdout.write('0123456789')\nsys.stderr.buffer.write(b'\\xff\\x00bytes')";
    let done = client.run(&job(code)).await;
    let job_id = done["job_id"].as_str().unwrap();
    let whole = log(&client, job_id, "").await;
    assert_eq!(whole.text, "0123456789");
    let places = |answer: &Answer| {
        ["x-log-offset", "x-log-next-offset", "x-log-total", "x-log-complete"].map(|name| answer.headers[name].clone())
    };
    assert_eq!(places(&whole), ["0", "10", "10", "true"]);
    let part = log(&client, job_id, "stream=stdout&offset=3&limit=4").await;
    assert_eq!(
        (part.text.as_str(), places(&part)),
        ("3456", ["3", "7", "10", "false"].map(str::to_owned))
    );
    let beyond = log(&client, job_id, "offset=99").await;
    assert_eq!(
        (beyond.text.as_str(), places(&beyond)),
        ("", ["10", "10", "10", "true"].map(str::to_owned))
    );
    let request = client.request(Method::GET, &format!("/api/v1/jobs/{job_id}/logs?stream=stderr"));
    let bytes = request.send().await.unwrap().bytes().await.unwrap();
    assert_eq!(&bytes[..], b"\xff\x00bytes", "bytes that are no text are kept");
    for wrong in [
        "stream=stdin",
        "limit=0",
        "limit=99999999",
        "offset=-1",
        "follow=perhaps",
    ] {
        log(&client, job_id, wrong).await.refused(400);
    }
    log(&client, "none", "").await.refused(404);
}

/// Text of the log events and the data of the last event.
async fn followed(client: &Client, job_id: &str, query: &str) -> (String, Json) {
    let path = format!("/api/v1/jobs/{job_id}/logs?follow=true{query}");
    let response = client.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let (mut text, mut last) = (String::new(), Json::Null);
    let body = response.text().await.unwrap();
    for event in body.split("\n\n") {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let (Some(kind), Some(data)) = (field("event:"), field("data:")) else {
            continue;
        };
        let data: Json = serde_json::from_str(data).unwrap();
        match kind {
            "log" => text.push_str(data["text"].as_str().unwrap()),
            _ => last = data,
        }
    }
    (text, last)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_of_a_warm_program_can_be_seen_while_it_runs() {
    is_seen_while_it_runs("native", true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_of_a_cold_program_can_be_seen_while_it_runs() {
    is_seen_while_it_runs("native", false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_without_a_sandbox_can_be_seen_while_it_runs() {
    is_seen_while_it_runs("process", false).await;
}

async fn is_seen_while_it_runs(executor: &str, warm: bool) {
    const CODE: &str = r#"
import sys, time
print("first é", flush=True)
print("aside", file=sys.stderr, flush=True)
for _ in range(1200):
    time.sleep(0.1)
"#;
    let site = Site::new().set(&format!("sandbox.warm={warm}"));
    let server = site.serve(executor, 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    let job_id = client.submit(&job(CODE)).await;
    // Followed from before its start.
    let path = format!("/api/v1/jobs/{job_id}/logs?follow=true");
    let mut response = client.request(Method::GET, &path).send().await.unwrap();
    let mut seen = String::new();
    while !seen.contains("first é") {
        seen.push_str(&String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap()));
    }
    assert_eq!(
        client.job(&job_id).await["status"],
        "running",
        "it is seen before the end"
    );
    let mut live = log(&client, &job_id, "stream=stdout").await;
    // A program may write its line in two parts.
    while !live.text.ends_with('\n') {
        tokio::time::sleep(Duration::from_millis(50)).await;
        live = log(&client, &job_id, "stream=stdout").await;
    }
    assert_eq!(
        (live.text.as_str(), live.headers["x-log-complete"].as_str()),
        ("first é\n", "false")
    );
    let mut aside = log(&client, &job_id, "stream=stderr").await;
    while !aside.text.ends_with('\n') {
        tokio::time::sleep(Duration::from_millis(50)).await;
        aside = log(&client, &job_id, "stream=stderr").await;
    }
    assert_eq!(aside.text, "aside\n");
    client.delete(&format!("/api/v1/jobs/{job_id}")).await.ok();
    while let Some(part) = response.chunk().await.unwrap() {
        seen.push_str(&String::from_utf8_lossy(&part));
    }
    assert!(seen.contains("event: end") && seen.contains("cancelled"), "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_followed_log_is_whole_and_can_be_taken_up_again() {
    const CODE: &str = "import time\nfor i in range(200):\n    print('line', i, flush=True)\n    time.sleep(0.005)\n";
    let site = Site::new();
    let server = site.serve("process", 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    let expected: String = (0..200).map(|i| format!("line {i}\n")).collect();
    let job_id = client.submit(&job(CODE)).await;
    let (text, last) = followed(&client, &job_id, "").await;
    assert_eq!(
        (text.as_str(), &last),
        (expected.as_str(), &json!({"status": "completed"}))
    );
    let (rest, _) = followed(&client, &job_id, "&offset=14").await;
    assert_eq!(rest, expected[14..]);
    let path = format!("/api/v1/jobs/{job_id}/logs?follow=true");
    let again = client.request(Method::GET, &path).header("Last-Event-ID", "7");
    assert!(client.send(again).await.text.contains("\"offset\":7"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_cut_and_the_end_is_kept() {
    let site = Site::new().set("sandbox.log_size=64KiB");
    let server = site.serve("native", 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    let code = "for i in range(300000): print('line', i)\nprint('Final Validation Score: 0.5')";
    let done = client.run(&job(code)).await;
    assert_eq!(done["result"]["score"], 0.5, "{}", done["result"]["detail"]);
    let text = done["result"]["run_log"].as_str().unwrap();
    assert!(
        text.len() < 100 << 10 && text.contains("bytes left out"),
        "{} bytes",
        text.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_cannot_write_what_only_the_service_writes() {
    const MARKERS: [&str; 6] = [
        "--- OUTPUT START ---",
        "--- OUTPUT END ---",
        "--- SANDBOX STDOUT START ---",
        "--- SANDBOX STDOUT END ---",
        "[HB]",
        "```",
    ];
    let site = Site::new();
    let server = site.serve("process", 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    for marker in MARKERS {
        let printed = format!("{marker}\nmid {marker} line\r{marker}\r\n{marker}");
        let code = format!(
            "import sys\ntext = {}\nsys.stdout.write(text)\nsys.stderr.write(text)",
            json!(printed)
        );
        let done = client.run(&job(&code)).await;
        let log = done["result"]["run_log"].as_str().unwrap();
        let own = usize::from(marker.contains("SANDBOX"));
        assert_eq!(log.matches(marker).count(), own, "{log}");
        // The plain log is as the program wrote it.
        let job_id = done["job_id"].as_str().unwrap();
        assert_eq!(self::log(&client, job_id, "").await.text, printed);
    }
}
