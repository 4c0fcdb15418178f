//! What is refused, and how it is said.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value as Json, json};

use super::fixture::{Site, job};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_requests_are_told_what_is_wrong_in_json() {
    let site = Site::new().set("service.max_job_seconds=100");
    std::fs::create_dir(site.place.path().join("secret")).unwrap();
    std::os::unix::fs::symlink(site.place.path().join("secret"), site.place.path().join("roots/link")).unwrap();
    let server = site.serve("process", 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    let long = "x".repeat(600);
    for (field, value, part) in [
        ("data_dir", json!("/etc"), "absolute paths"),
        ("data_dir", json!("../d"), "absolute paths and '..'"),
        ("data_dir", json!("d/../../secret"), "absolute paths and '..'"),
        ("data_dir", json!("d\u{0}"), "control character"),
        ("data_dir", json!("link"), "neither a task"),
        ("data_dir", json!("."), "neither a task"),
        ("data_dir", json!("nothing"), "neither a task (the store has none)"),
        ("data_dir", json!("sha256:../../x"), "absolute paths"),
        (
            "data_dir",
            json!(format!("sha256:{}", "0".repeat(64))),
            "there is no upload",
        ),
        ("data_dir", json!("sha256:abc"), "there is no upload"),
        ("name", json!(long), "more than 512"),
        ("timeout", json!(101), "100 s at most"),
        ("timeout", json!("60"), "a number"),
        ("priority", json!(0), "from 1 to 9"),
        ("resource_type", json!("tpu"), "'cpu' or 'gpu'"),
        ("environment", json!({"LD_PRELOAD": "x"}), "LD_PRELOAD"),
        ("environment", json!({"JOB_ID": "x"}), "JOB_ID"),
        ("colour", json!("red"), "there is no such field"),
    ] {
        let mut body = job("print(1)");
        body[field] = value.clone();
        let (code, message) = client.post("/api/v1/jobs", &body).await.refused(422);
        assert_eq!(code, "invalid_field");
        assert!(
            message.contains(&format!("field '{field}")) && message.contains(part),
            "{field} {value}: {message}"
        );
    }
    for missing in ["name", "code", "data_dir"] {
        let mut body = job("print(1)");
        body.as_object_mut().unwrap().remove(missing);
        let (_, message) = client.post("/api/v1/jobs", &body).await.refused(422);
        assert!(
            message.contains(&format!("field '{missing}': it is missing")),
            "{message}"
        );
    }
    let send = |body: &str, kind: &str| {
        let request = client
            .request(Method::POST, "/api/v1/jobs")
            .header("Content-Type", kind)
            .body(body.to_owned());
        client.send(request)
    };
    assert_eq!(
        send("{\"name\":", "application/json").await.refused(400).0,
        "malformed_json"
    );
    assert_eq!(send("\u{0}", "application/json").await.refused(400).0, "malformed_json");
    let (_, message) = send("[1]", "application/json").await.refused(422);
    assert_eq!(message, "the body must be a JSON object, not a list");
    assert_eq!(
        send("name=d", "application/x-www-form-urlencoded").await.refused(415).0,
        "not_json"
    );
    send("{}", "").await.refused(415);

    for path in [
        "/",
        "/api/v1",
        "/api/v1/none",
        "/api/v2/jobs",
        "/api/v1/jobs/",
        "/api/v1/jobs/a/b",
        "/api/v1/../../etc/passwd",
        "/api/v1/jobs/..%2f..%2fetc%2fpasswd",
        "/api/v1/jobs/%00",
        "/api/v1/uploads/%2e%2e%2f%2e%2e",
        "/api/v1/uploads/sha256:..%2f",
    ] {
        client.get(path).await.refused(404);
    }
    client.get("/api/v1/jobs/%ff").await.refused(400);
    let put = client.request(Method::PUT, "/api/v1/jobs").body("x");
    assert_eq!(client.send(put).await.refused(405).0, "wrong_method");
    let delete = client.request(Method::DELETE, "/health");
    client.send(delete).await.refused(405);
    let trace = client
        .post_json("/api/v1/jobs", &job("1"))
        .header("X-Trace-ID", "x".repeat(300));
    client.send(trace).await.refused(400);
    assert_eq!(
        client.get("/api/v1/jobs").await.ok()["jobs"],
        json!([]),
        "none of it became a job"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_are_too_large_are_cut_off() {
    let site = Site::new()
        .set("service.body_size=64KiB")
        .set("service.upload_size=1MiB");
    let server = site.serve("process", 1);
    let client = server.client(server.first_key.as_deref().unwrap());
    let large = client.post("/api/v1/jobs", &job(&"x".repeat(100 << 10))).await;
    assert_eq!(large.refused(413).0, "body_too_large");
    let upload = client.request(Method::POST, "/api/v1/uploads").body(vec![0; 3 << 20]);
    client.send(upload).await.refused(413);
    // Without a length the size is only seen as it comes.
    let mut socket = TcpStream::connect(server.address()).unwrap();
    let head = format!(
        "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.first_key.as_deref().unwrap()
    );
    socket.write_all(head.as_bytes()).unwrap();
    let chunk = vec![b'x'; 16 << 10];
    for _ in 0..10 {
        let sent = write!(socket, "{:x}\r\n", chunk.len())
            .and_then(|()| socket.write_all(&chunk))
            .and_then(|()| socket.write_all(b"\r\n"));
        if sent.is_err() {
            break;
        }
    }
    let _ = socket.write_all(b"0\r\n\r\n");
    let mut answer = String::new();
    let _ = socket.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    client.get("/health").await.ok();
}

/// What a server answers to text that is followed by silence.
fn answer_to(address: &str, text: &str) -> (String, Duration) {
    let begin = Instant::now();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(text.as_bytes()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut answer = String::new();
    let _ = socket.read_to_string(&mut answer);
    (answer, begin.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_and_heads_that_are_too_slow_are_cut_off() {
    let site = Site::new()
        .set("service.body_seconds=1")
        .set("service.upload_seconds=1")
        .set("service.head_seconds=1");
    let server = site.serve("process", 1);
    let key = server.first_key.clone().unwrap();
    for route in ["jobs", "uploads"] {
        let head = format!(
            "POST /api/v1/{route} HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
        );
        let (answer, time) = answer_to(server.address(), &head);
        assert!(
            answer.starts_with("HTTP/1.1 408") && answer.contains("slow_body"),
            "{answer}"
        );
        assert!(time < Duration::from_secs(30), "{time:?}");
    }
    let (answer, time) = answer_to(server.address(), "GET /health HTTP/1.1\r\nHost:");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(time < Duration::from_secs(30), "{time:?}");
    assert_eq!(site.uploads(), Vec::<std::path::PathBuf>::new(), "nothing of it stays");
    server.client(&key).get("/api/v1/jobs").await.ok();
}

#[test]
fn only_loopback_is_served_in_the_clear() {
    let site = Site::new();
    let serve = |arguments: &[&str]| {
        let arguments = ["serve", "--executor", "process"]
            .into_iter()
            .chain(arguments.iter().copied());
        let mut command = site.place.command(arguments);
        crate::cli::fixture::finish(command.env("CLADE_PYTHON", crate::cli::tasks::python()), "")
    };
    let refused = serve(&["--address", "0.0.0.0:0"]).fails(2);
    assert!(
        refused.contains("--tls-cert") && refused.contains("--insecure"),
        "{refused}"
    );
    serve(&["--address", "nonsense"]).fails(1);
    let lone = serve(&["--tls-cert", "x"]).fails(2);
    assert!(lone.contains("--tls-key"), "{lone}");
    let missing = serve(&["--tls-cert", "x", "--tls-key", "y"]).fails(1);
    assert!(
        missing.contains("the TLS certificate x and key y cannot be used"),
        "{missing}"
    );
    let unknown = serve(&["--executor", "none"]);
    assert_ne!(unknown.code, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_certificate_it_speaks_https() {
    let tls = |name: &str| format!("{}/tests/model/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let site = Site::new();
    let pair = tls("server.pem");
    let server = site.serve_with("process", 1, &["--tls-cert", &pair, "--tls-key", &pair]);
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.url);
    let authority = std::fs::read(tls("authority.pem")).unwrap();
    let http = reqwest::Client::builder()
        .tls_certs_only([reqwest::Certificate::from_pem(&authority).unwrap()])
        .build()
        .unwrap();
    let request = http
        .get(format!("{}/api/v1/jobs", server.url))
        .header("X-API-Key", server.first_key.as_deref().unwrap());
    assert_eq!(request.send().await.unwrap().status().as_u16(), 200);
    let (plain, _) = answer_to(server.address(), "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(!plain.contains("200 OK"), "nothing is served in the clear: {plain}");
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_the_same_address_is_told_so() {
    let site = Site::new();
    let server = site.serve("process", 1);
    let mut command = site
        .place
        .command(["serve", "--executor", "process", "--address", server.address()]);
    let said = crate::cli::fixture::finish(command.env("CLADE_PYTHON", crate::cli::tasks::python()), "").fails(1);
    assert!(
        said.contains("cannot listen on") && said.contains("--address"),
        "{said}"
    );
    let document: Json = server.stranger().get("/api/v1/openapi.json").await.ok();
    assert!(document["paths"]["/api/v1/jobs"]["post"].is_object(), "{document}");
}
