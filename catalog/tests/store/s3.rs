//! The cold tier in a bucket, against a server that speaks S3.
//!
//! `CLADE_TEST_PYTHON` names a Python interpreter that has `moto[server]`; without it the test does nothing, unless
//! `CLADE_TEST_S3=1` asks for it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clade_catalog::{ColdLocation, FlushScope, S3Location, Store, StoreOptions};

use crate::commits::{pair, state};
use crate::support::{int, now, options, session, text};

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn request(port: u16, line: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(
        stream,
        "{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn the_cold_tier_can_be_a_bucket() {
    let Some(python) = std::env::var_os("CLADE_TEST_PYTHON") else {
        assert!(
            std::env::var_os("CLADE_TEST_S3").is_none(),
            "CLADE_TEST_S3 is set, CLADE_TEST_PYTHON is not"
        );
        return;
    };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Command::new(python)
        .args(["-m", "moto.server", "-p", &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut server = Server(server);
    let started = Instant::now();
    while request(port, "PUT /shelf").is_err() {
        assert!(
            server.0.try_wait().unwrap().is_none(),
            "the server ended: is moto[server] installed?"
        );
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "the server does not answer"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    // Credentials come from the environment, so the store is used in a process of its own.
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["s3::bucket_process", "--exact", "--ignored", "--nocapture"])
        .env("CLADE_CHILD_S3", format!("http://127.0.0.1:{port}"))
        .env("SHELF_KEY", "key")
        .env("SHELF_SECRET", "secret")
        .status()
        .unwrap();
    assert!(status.success());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the other test of this file runs it as a process of its own"]
async fn bucket_process() {
    let Ok(endpoint) = std::env::var("CLADE_CHILD_S3") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let bucket = |url: &str| {
        ColdLocation::S3(S3Location {
            endpoint: Some(endpoint.clone()),
            allow_http: true,
            access_key_env: "SHELF_KEY".into(),
            secret_key_env: "SHELF_SECRET".into(),
            ..S3Location::new(url)
        })
    };
    let with = |url: &str| StoreOptions {
        cold: bucket(url),
        ..options()
    };
    let store = Store::create(&path, with("s3://shelf/some/where")).unwrap();
    for n in 1..=3 {
        store.commit(pair(&store, &format!("e{n}"), n)).await.unwrap();
        store.commit(state(&store, "k", n)).await.unwrap();
        store.flush(FlushScope::All).await.unwrap();
    }
    store.commit(pair(&store, "hot", 4)).await.unwrap();
    let context = session(&store, None);
    assert_eq!(int(&context, "SELECT sum(n) FROM events").await, 10);
    assert_eq!(int(&context, "SELECT v FROM states").await, 3);
    let plan = text(&context, "EXPLAIN SELECT id FROM events WHERE n = 2").await;
    assert_eq!(plan.matches(".parquet").count(), 1, "{plan}");
    store.optimize(None).await.unwrap();
    store.checkpoint().await.unwrap();
    assert_eq!(int(&context, "SELECT sum(n) FROM events").await, 10);
    assert!(!path.join("tables/t/events").exists());
    drop((store, context));
    let error = Store::open(&path, options()).unwrap_err().to_string();
    assert!(error.contains("s3://shelf/some/where"), "{error}");
    let store = Store::open(&path, with("s3://shelf/some/where")).unwrap();
    let old = session(&store, Some(store.snapshot(Some(3)).await.unwrap()));
    assert_eq!(int(&old, "SELECT sum(n) FROM events").await, 3);
    assert_eq!(now(&store, "SELECT count(*) FROM system.problems").await, 0);
    assert_eq!(
        now(
            &store,
            "SELECT cold_files FROM system.storage WHERE table_name = 't.events'"
        )
        .await,
        2
    );
}
