//! What servers refuse is refused through the router in the same way.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::fixture::Group;
use crate::service::fixture::{Answer, Client, job};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_requests_get_the_answer_of_a_server() {
    let group = Group::of(&[0, 0], |_, site| {
        site.set("service.body_size=64KiB").set("service.body_seconds=1")
    })
    .set("body_bytes = \"64KiB\"\nbody_seconds = 1\nupload_seconds = 1\nhead_seconds = 2");
    let (router, _) = group.routed().await;
    let reader = group.user("ann", "read");
    let mut wrong = group.key.clone();
    wrong.replace_range(wrong.len() - 1.., if wrong.ends_with('0') { "1" } else { "0" });
    let both = |key: &str| [group.servers[0].client(key), router.client(key)];
    let same = |what: &str, answers: [Answer; 2]| {
        let [direct, routed] = answers;
        let status = direct.status.as_u16();
        assert!((400..500).contains(&status), "{what}: {direct:?}");
        assert_eq!(direct.refused(status).0, routed.refused(status).0, "{what}");
    };
    let get = async |[direct, routed]: &[Client; 2], path: &str| [direct.get(path).await, routed.get(path).await];
    let post = async |[direct, routed]: &[Client; 2], body: &serde_json::Value| {
        [
            direct.post("/api/v1/jobs", body).await,
            routed.post("/api/v1/jobs", body).await,
        ]
    };

    for key in [wrong.as_str(), "nonsense", ""] {
        let clients = both(key);
        for path in [
            "/api/v1/jobs",
            "/api/v1/jobs/x",
            "/api/v1/jobs/x/logs",
            "/api/v1/uploads/x",
            "/api/v1/workers/status",
            "/api/v1/whoami",
            "/metrics",
        ] {
            same(path, get(&clients, path).await);
        }
        same("submit", post(&clients, &job("1")).await);
        same("large", post(&clients, &job(&"x".repeat(100 << 10))).await);
        let [direct, routed] = &clients;
        let path = "/api/v1/jobs/x";
        same("cancel", [direct.delete(path).await, routed.delete(path).await]);
    }
    same("reader", post(&both(&reader), &job("1")).await);

    let clients = both(&group.key);
    for path in [
        "/",
        "/api/v1",
        "/api/v1/none",
        "/api/v2/jobs",
        "/api/v1/jobs/",
        "/api/v1/jobs/a/b",
        "/api/v1/jobs/..%2f..%2fetc%2fpasswd",
        "/api/v1/jobs/%00",
        "/api/v1/jobs/%ff",
        "/api/v1/jobs/a%3Fb",
        "/api/v1/jobs/x/logs",
        "/api/v1/uploads/%2e%2e%2f%2e%2e",
        "/api/v1/uploads/sha256:..%2f",
        "/api/v1/uploads/x",
    ] {
        same(path, get(&clients, path).await);
    }
    for body in [
        json!([1]),
        json!({"name": "d"}),
        json!({"name": "d", "code": 7, "data_dir": "d"}),
        json!({"name": "d", "code": "1", "data_dir": "../d"}),
        json!({"name": "d", "code": "1", "data_dir": "nothing"}),
        json!({"name": "d", "code": "1", "data_dir": "sha256:../x"}),
        json!({"name": "d", "code": "1", "data_dir": "d", "idempotency_key": 7}),
        json!({"name": "d", "code": "1", "data_dir": "d", "idempotency_key": ""}),
        json!({"name": "d", "code": "1", "data_dir": "d", "idempotency_key": "a&user=bob\u{0}"}),
        json!({"name": "d", "code": "1", "data_dir": "d", "resource_type": "tpu"}),
        json!({"name": "d", "code": "1", "data_dir": "d", "colour": "red"}),
        job(&"x".repeat(100 << 10)),
    ] {
        same(
            &body.to_string()[..20.min(body.to_string().len())],
            post(&clients, &body).await,
        );
    }
    let send = async |client: &Client, method: Method, path: &str, kind: &str, body: &str| {
        let request = client.request(method, path).header("Content-Type", kind);
        client.send(request.body(body.to_owned())).await
    };
    for (method, path, kind, body) in [
        (Method::POST, "/api/v1/jobs", "application/json", "{\"name\":"),
        (Method::POST, "/api/v1/jobs", "text/plain", "{}"),
        (Method::PUT, "/api/v1/jobs", "text/plain", "x"),
        (Method::DELETE, "/health", "text/plain", ""),
        (
            Method::POST,
            "/api/v1/jobs/submit_and_wait?timeout_s=601",
            "application/json",
            "{}",
        ),
        (
            Method::POST,
            "/api/v1/jobs/submit_and_wait?patience=1",
            "application/json",
            "{}",
        ),
    ] {
        let [direct, routed] = &clients;
        let answers = [
            send(direct, method.clone(), path, kind, body).await,
            send(routed, method, path, kind, body).await,
        ];
        same(path, answers);
    }
    let traced = async |client: &Client| {
        let request = client
            .post_json("/api/v1/jobs", &job("1"))
            .header("X-Trace-ID", "x".repeat(300));
        client.send(request).await
    };
    same("trace", [traced(&clients[0]).await, traced(&clients[1]).await]);
    assert_eq!(group.counts().await, [0, 0], "none of it became a job");

    for route in ["jobs", "uploads"] {
        let head = format!(
            "POST /api/v1/{route} HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
            group.key
        );
        let answer = answer_to(router.address(), &head);
        assert!(
            answer.starts_with("HTTP/1.1 408") && answer.contains("slow_body"),
            "{answer}"
        );
    }
    let answer = answer_to(router.address(), "GET /health HTTP/1.1\r\nHost:");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    router.client(&group.key).get("/api/v1/jobs").await.ok();
}

/// What is answered to text that is followed by silence.
fn answer_to(address: &str, text: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(text.as_bytes()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut answer = String::new();
    let _ = socket.read_to_string(&mut answer);
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_of_requests_is_passed_on() {
    let group = Group::new(&[0]);
    let (router, _) = group.routed().await;
    let hasty = router.client(&group.sites[0].key("hasty", &["--per-minute", "3"]));
    let mut last = None;
    for _ in 0..5 {
        last = Some(hasty.get("/api/v1/jobs").await);
    }
    let last = last.unwrap();
    assert!(last.headers["retry-after"].parse::<u32>().unwrap() >= 1);
    assert_eq!(last.refused(429).0, "too_many_requests");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_certificate_it_speaks_https() {
    let tls = |name: &str| format!("{}/tests/model/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let group = Group::new(&[0]);
    group.write(&group.urls(), "");
    let pair = tls("server.pem");
    let router = group.route_as_written(&["--tls-cert", &pair, "--tls-key", &pair]);
    assert!(router.url.starts_with("https://127.0.0.1:"), "{}", router.url);
    let authority = std::fs::read(tls("authority.pem")).unwrap();
    let http = reqwest::Client::builder()
        .tls_certs_only([reqwest::Certificate::from_pem(&authority).unwrap()])
        .build()
        .unwrap();
    let request = http
        .get(format!("{}/api/v1/jobs", router.url))
        .header("X-API-Key", &group.key);
    assert_eq!(request.send().await.unwrap().status().as_u16(), 200);
    let plain = answer_to(router.address(), "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(!plain.contains("200 OK"), "nothing is served in the clear: {plain}");
}
