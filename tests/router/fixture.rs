//! Servers of our own and a router in front of them.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::cli::fixture::Place;
use crate::service::fixture::{Client, LIMIT, Server, Site};
use crate::service::process::Process;

/// Names of the servers.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Servers with the same key of an admin, and the file of a router.
pub struct Group {
    pub sites: Vec<Site>,
    pub servers: Vec<Server>,
    pub key: String,
    pub place: Place,
    /// Settings of the file.
    pub settings: String,
}

/// A running router.
pub struct Router {
    process: Process,
    pub url: String,
}

impl Group {
    /// Servers with so many workers each.
    pub fn new(workers: &[u32]) -> Self {
        Self::of(workers, |_, site| site)
    }

    /// The same, each site made ready in some way.
    pub fn of(workers: &[u32], prepare: impl Fn(usize, Site) -> Site) -> Self {
        let sites: Vec<Site> = (0..workers.len()).map(|number| prepare(number, Site::new())).collect();
        let first = sites[0].serve("process", workers[0]);
        let key = first.first_key.clone().unwrap();
        let mut servers = vec![first];
        for (site, workers) in sites.iter().zip(workers).skip(1) {
            site.adopt("admin", "admin", &key);
            servers.push(site.serve("process", *workers));
        }
        Self {
            sites,
            servers,
            key,
            place: Place::new(),
            settings: "poll_seconds = 0.1\nconnect_seconds = 1\n".to_owned(),
        }
    }

    /// The same with a setting of the router.
    pub fn set(mut self, setting: &str) -> Self {
        self.settings.push_str(setting);
        self.settings.push('\n');
        self
    }

    /// A key that all servers know.
    pub fn user(&self, name: &str, role: &str) -> String {
        let key = self.sites[0].key(name, &["--role", role]);
        for site in &self.sites[1..] {
            site.adopt(name, role, &key);
        }
        key
    }

    /// Addresses of the servers.
    pub fn urls(&self) -> Vec<String> {
        self.servers.iter().map(|server| server.url.clone()).collect()
    }

    /// Writes the file of the router with servers at these addresses.
    pub fn write(&self, urls: &[String], more: &str) {
        let mut text = self.settings.clone();
        for (name, url) in NAMES.iter().zip(urls) {
            text.push_str(&format!("[[server]]\nname = \"{name}\"\nurl = \"{url}\"\n{more}\n"));
        }
        // As editors do.
        let new = self.place.write("router.toml.new", &text);
        std::fs::rename(new, self.place.path().join("router.toml")).unwrap();
    }

    /// Starts a router in front of all servers.
    pub fn route(&self) -> Router {
        self.write(&self.urls(), "");
        self.route_as_written(&[])
    }

    /// The same with the file as it is.
    pub fn route_as_written(&self, more: &[&str]) -> Router {
        let arguments = ["router", "--config", "router.toml", "--address", "127.0.0.1:0"];
        let mut url = String::new();
        let process = Process::start(&mut self.place.command(arguments.iter().chain(more)), |line| {
            let Some(rest) = line.strip_prefix("routing on ") else {
                return false;
            };
            rest.split_whitespace().next().unwrap().clone_into(&mut url);
            true
        });
        Router { process, url }
    }

    /// The router and a client with the key of the admin, once it knows what all servers can do.
    pub async fn routed(&self) -> (Router, Client) {
        let router = self.route();
        let client = router.client(&self.key);
        router
            .until(|health| {
                health["servers"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|server| server["is_up"] == true)
            })
            .await;
        (router, client)
    }

    /// Jobs of each store, as the tables have them.
    pub fn requests(&self, columns: &str) -> Vec<Json> {
        self.sites
            .iter()
            .map(|site| site.rows(&format!("SELECT {columns} FROM sandbox.requests ORDER BY job_id")))
            .collect()
    }

    /// Number of jobs of each server.
    pub async fn counts(&self) -> Vec<usize> {
        let mut counts = Vec::new();
        for server in &self.servers {
            let listed = server.client(&self.key).get("/api/v1/jobs?limit=500").await.ok();
            counts.push(listed["jobs"].as_array().unwrap().len());
        }
        counts
    }
}

impl Router {
    /// A client with a key.
    pub fn client(&self, key: &str) -> Client {
        Client::at(&self.url, key)
    }

    /// Address without its scheme.
    pub fn address(&self) -> &str {
        self.url.split_once("//").unwrap().1
    }

    /// What it said so far.
    pub fn said(&self) -> String {
        self.process.said()
    }

    /// Waits until its health is as wished.
    pub async fn until(&self, is_so: impl Fn(&Json) -> bool) -> Json {
        let client = self.client("").without_key();
        let begin = Instant::now();
        loop {
            let health = client.get("/api/v1/health").await.json();
            if is_so(&health) {
                return health;
            }
            assert!(begin.elapsed() < LIMIT, "{health}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a server is up, or is not.
    pub async fn until_up(&self, name: &str, is_up: bool) {
        let is_so = |server: &Json| server["name"] == name && server["is_up"] == is_up;
        self.until(|health| health["servers"].as_array().unwrap().iter().any(is_so))
            .await;
    }

    /// SIGHUP.
    pub fn hang_up(&self) {
        self.process.signal(rustix::process::Signal::HUP);
    }

    /// SIGTERM; it must end well. Gives what it said.
    pub fn stop(self) -> String {
        self.process.stop()
    }
}

/// A job with an idempotency key that prints something.
pub fn keyed(key: &str) -> Json {
    let mut body = crate::service::fixture::job(&format!("print('{key}')"));
    body["idempotency_key"] = json!(key);
    body
}

/// An address that nothing listens on.
pub fn dead_url() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
