//! Workers in processes of their own, and a wire between them and their server that can be listened to and cut.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::fixture::{Client, LIMIT, Site};

/// A running worker.
pub struct Remote {
    child: Child,
    stderr: BufReader<ChildStderr>,
    pub id: String,
}

impl Remote {
    /// Starts a worker and waits until it has joined.
    pub fn start(site: &Site, url: &str, key: &str, python: &Path, arguments: &[&str]) -> Self {
        let cache = site.place.path().join(format!("cache-{:x}", rand::random::<u32>()));
        let cache = cache.to_string_lossy().into_owned();
        let fixed = ["worker", "--server", url, "--key-env", "WORKER_KEY", "--cache", &cache];
        let mut child = site
            .place
            .command(fixed.iter().chain(arguments).chain(&["--set", "sandbox.warm=false"]))
            .env("WORKER_KEY", key)
            .env("CLADE_PYTHON", python)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut remote = Self {
            child,
            stderr,
            id: String::new(),
        };
        let mut said = String::new();
        while remote.id.is_empty() {
            let mut line = String::new();
            assert!(remote.stderr.read_line(&mut line).unwrap() > 0, "it ended: {said}");
            if line.starts_with("joined ") {
                line.split_whitespace().nth(3).unwrap().clone_into(&mut remote.id);
            }
            said.push_str(&line);
        }
        remote
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM; it must end well. Gives what it said.
    pub fn stop(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {said}");
        said
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // One that was stopped is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A wire to a server that keeps what comes from there.
pub struct Wire {
    pub url: String,
    server: Arc<Mutex<String>>,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Wire {
    pub async fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let wire = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            server: Arc::new(Mutex::new(address.to_owned())),
            received: Arc::default(),
        };
        let (server, received) = (Arc::clone(&wire.server), Arc::clone(&wire.received));
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let address = server.lock().unwrap().clone();
                tokio::spawn(join(near, address, Arc::clone(&received)));
            }
        });
        wire
    }

    /// From now on it leads to another server.
    pub fn lead_to(&self, address: &str) {
        address.clone_into(&mut self.server.lock().unwrap());
    }

    /// All bytes that came from the server.
    pub fn received(&self) -> String {
        String::from_utf8_lossy(&self.received.lock().unwrap()).into_owned()
    }
}

async fn join(near: TcpStream, address: String, received: Arc<Mutex<Vec<u8>>>) {
    let Ok(far) = TcpStream::connect(address).await else {
        return;
    };
    let ((mut near_in, mut near_out), (mut far_in, mut far_out)) = (near.into_split(), far.into_split());
    let there = async {
        let _ = tokio::io::copy(&mut near_in, &mut far_out).await;
    };
    let back = async {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(n @ 1..) = far_in.read(&mut buffer).await {
            received.lock().unwrap().extend_from_slice(&buffer[..n]);
            if near_out.write_all(&buffer[..n]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = there => {}
        () = back => {}
    }
}

/// What the server shows of a worker.
pub async fn shown(client: &Client, worker_id: &str) -> Option<Json> {
    let workers = client.get("/api/v1/workers/status").await.ok();
    let all = workers["workers_show"].as_array().unwrap();
    all.iter().find(|worker| worker["worker_id"] == *worker_id).cloned()
}

/// Waits until a worker has a status.
pub async fn wait_until(client: &Client, worker_id: &str, status: &str) -> Json {
    let begin = Instant::now();
    loop {
        if let Some(worker) = shown(client, worker_id).await
            && worker["status"] == status
        {
            return worker;
        }
        assert!(begin.elapsed() < LIMIT, "it does not become {status}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What a worker says of itself when it joins a server.
pub async fn facts(client: &Client, worker_id: &str) -> Json {
    let health = client.get("/health").await.ok();
    json!({
        "worker_id": worker_id,
        "host": "elsewhere",
        "version": health["version"],
        "slots": {"cpu": 1, "gpu": 0},
        "backend": "process",
        "capabilities": [],
        "jobs": [],
    })
}
