//! Workers in processes of their own, and a wire between them and their server that can be listened to and cut.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::fixture::{Client, LIMIT, Site};
use super::process::Process;

/// A running worker.
pub struct Remote {
    process: Process,
    pub id: String,
}

impl Remote {
    /// Starts a worker and waits until it has joined.
    pub fn start(site: &Site, url: &str, key: &str, python: &Path, arguments: &[&str]) -> Self {
        let cache = site.place.path().join(format!("cache-{:x}", rand::random::<u32>()));
        let cache = cache.to_string_lossy().into_owned();
        let fixed = ["worker", "--server", url, "--key-env", "WORKER_KEY", "--cache", &cache];
        let arguments = fixed.iter().chain(arguments).chain(&["--set", "sandbox.warm=false"]);
        let mut command = site.place.command(arguments);
        let mut id = String::new();
        let process = Process::start(command.env("WORKER_KEY", key).env("CLADE_PYTHON", python), |line| {
            let is_ready = line.starts_with("joined ");
            if is_ready {
                line.split_whitespace().nth(3).unwrap().clone_into(&mut id);
            }
            is_ready
        });
        Self { process, id }
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// SIGTERM; it must end well. Gives what it said.
    pub fn stop(self) -> String {
        self.process.stop()
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
