//! A server of our own, and a client that sees what a user would see.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::process::Process;
use crate::cli::fixture::Place;
use crate::cli::tasks::python;

/// Longest wait for anything; the machine may be busy.
pub const LIMIT: Duration = Duration::from_secs(180);

/// A folder with a store and data, on which servers are started.
pub struct Site {
    pub place: Place,
    settings: Vec<String>,
}

/// A running server.
pub struct Server {
    process: Process,
    pub url: String,
    /// Key that the first start printed.
    pub first_key: Option<String>,
}

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: BTreeMap<String, String>,
    pub text: String,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Json {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The answer to a request that must be taken.
    #[track_caller]
    pub fn ok(&self) -> Json {
        assert!(self.status.is_success(), "{self:?}");
        self.json()
    }

    /// Code and message of a request that must be refused.
    #[track_caller]
    pub fn refused(&self, status: u16) -> (String, String) {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        let body = self.json();
        let error = &body["error"];
        assert!(!error["advice"].as_str().unwrap().is_empty(), "{body}");
        let text = |name: &str| error[name].as_str().unwrap().to_owned();
        (text("code"), text("message"))
    }
}

/// A client with a key.
#[derive(Clone)]
pub struct Client {
    url: String,
    key: Option<String>,
    http: reqwest::Client,
}

impl Site {
    /// A store, and below it a folder `d` that jobs may name as their data.
    pub fn new() -> Self {
        let place = Place::with_store();
        std::fs::create_dir_all(place.path().join("roots/d")).unwrap();
        std::fs::write(place.path().join("roots/d/train.csv"), "id,y\n1,2\n").unwrap();
        Self {
            settings: vec![
                format!("service.data_roots={}", place.path().join("roots").display()),
                "sandbox.warm=false".to_owned(),
            ],
            place,
        }
    }

    /// The same with a setting.
    pub fn set(mut self, setting: &str) -> Self {
        self.settings.push(setting.to_owned());
        self
    }

    /// Starts a server with an executor and so many workers.
    pub fn serve(&self, executor: &str, workers: u32) -> Server {
        self.serve_with(executor, workers, &[])
    }

    /// The same with more arguments.
    pub fn serve_with(&self, executor: &str, workers: u32, more: &[&str]) -> Server {
        self.serve_at("127.0.0.1:0", executor, workers, more)
    }

    /// The same at an address.
    pub fn serve_at(&self, address: &str, executor: &str, workers: u32, more: &[&str]) -> Server {
        let workers = workers.to_string();
        let mut arguments = vec![
            "serve",
            "--address",
            address,
            "--executor",
            executor,
            "--workers",
            &workers,
        ];
        arguments.extend(more);
        for setting in &self.settings {
            arguments.extend(["--set", setting]);
        }
        let mut command = self.place.command(arguments);
        let (mut url, mut first_key) = (String::new(), None);
        let process = Process::start(command.env("CLADE_PYTHON", python()), |line| {
            if line.starts_with("clade_") {
                first_key = Some(line.trim().to_owned());
            }
            let Some(rest) = line.strip_prefix("serving on ") else {
                return false;
            };
            rest.split_whitespace().next().unwrap().clone_into(&mut url);
            true
        });
        Server {
            process,
            url,
            first_key,
        }
    }

    /// A new key for a user.
    pub fn key(&self, user: &str, arguments: &[&str]) -> String {
        let created = self.place.run(
            ["key", "create", user, "--format", "json"]
                .into_iter()
                .chain(arguments.iter().copied()),
        );
        let rows: Json = serde_json::from_str(&created.ok()).unwrap();
        rows[0]["key"].as_str().unwrap().to_owned()
    }

    /// Takes a key that another server has made.
    pub fn adopt(&self, user: &str, role: &str, key: &str) {
        let arguments = ["key", "create", user, "--role", role, "--key-env", "GIVEN_KEY"];
        let mut command = self.place.command(arguments);
        crate::cli::fixture::finish(command.env("GIVEN_KEY", key), "").ok();
    }

    /// Rows of a query on the store.
    pub fn rows(&self, sql: &str) -> Json {
        let text = self.place.run(["sql", "-c", sql, "--format", "json"]).ok();
        serde_json::from_str(&text).unwrap()
    }

    /// The control database of the store.
    pub fn database(&self) -> rusqlite::Connection {
        let path = self.place.path().join("clade-store/clade.sqlite");
        let database = rusqlite::Connection::open(path).unwrap();
        database.busy_timeout(LIMIT).unwrap();
        database
    }

    /// Files below the folder of uploads.
    pub fn uploads(&self) -> Vec<PathBuf> {
        let folder = self.place.path().join("clade-store/uploads");
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}

impl Server {
    /// A client with a key.
    pub fn client(&self, key: &str) -> Client {
        Client::at(&self.url, key)
    }

    /// A client without a key.
    pub fn stranger(&self) -> Client {
        Client::at(&self.url, "").without_key()
    }

    /// Address without its scheme.
    pub fn address(&self) -> &str {
        self.url.split_once("//").unwrap().1
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.process.kill();
    }

    /// SIGTERM; it must end well. Gives what it said.
    pub fn stop(self) -> String {
        self.process.stop()
    }
}

impl Client {
    /// A client of a server at an address, with a key.
    pub fn at(url: &str, key: &str) -> Self {
        Self {
            url: url.to_owned(),
            key: Some(key.to_owned()),
            // A connection on which a body was refused unread is closed, of which a pool may not know yet.
            http: reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap(),
        }
    }

    /// The same without its key.
    pub fn without_key(self) -> Self {
        Self { key: None, ..self }
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url)).timeout(LIMIT);
        match &self.key {
            Some(key) => request.header("X-API-Key", key),
            None => request,
        }
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        self.try_send(request).await.unwrap()
    }

    /// The answer, or nothing when the server is gone.
    pub async fn try_send(&self, request: reqwest::RequestBuilder) -> Result<Answer, reqwest::Error> {
        let response = request.send().await?;
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        Ok(Answer {
            status: response.status(),
            headers,
            text: response.text().await?,
        })
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }

    pub fn post_json(&self, path: &str, body: &Json) -> reqwest::RequestBuilder {
        self.request(Method::POST, path)
            .header("Content-Type", "application/json")
            .body(body.to_string())
    }

    pub async fn post(&self, path: &str, body: &Json) -> Answer {
        self.send(self.post_json(path, body)).await
    }

    /// Hands a job in; gives its id.
    pub async fn submit(&self, body: &Json) -> String {
        let answer = self.post("/api/v1/jobs", body).await;
        answer.ok()["job_id"].as_str().unwrap().to_owned()
    }

    pub async fn job(&self, job_id: &str) -> Json {
        self.get(&format!("/api/v1/jobs/{job_id}")).await.ok()
    }

    /// Waits until a job has a state of some.
    pub async fn wait_for(&self, job_id: &str, states: &[&str]) -> Json {
        let begin = Instant::now();
        loop {
            let job = self.job(job_id).await;
            if states.contains(&job["status"].as_str().unwrap()) {
                return job;
            }
            assert!(begin.elapsed() < LIMIT, "{job}");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    /// Waits until a job has ended.
    pub async fn wait(&self, job_id: &str) -> Json {
        self.wait_for(job_id, &["completed", "failed", "cancelled"]).await
    }

    /// Runs a job to its end.
    pub async fn run(&self, body: &Json) -> Json {
        let job_id = self.submit(body).await;
        self.wait(&job_id).await
    }
}

/// A job on the folder `d`.
pub fn job(code: &str) -> Json {
    json!({"name": "d", "code": code, "data_dir": "d", "timeout": 60})
}

/// A tar file of entries: name and content; a type other than that of a regular file can be given.
pub fn tar(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        if *kind == tar::EntryType::Symlink {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

/// An upload that is begun and goes no further: the server reads its body when this returns.
pub async fn begin_upload(url: &str, key: &str) -> TcpStream {
    let (_, address) = url.split_once("//").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /api/v1/uploads HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 25];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"begin").await.unwrap();
    stream
}

/// The interpreter of the clients in Python.
pub fn test_python() -> PathBuf {
    std::env::var_os("CLADE_TEST_PYTHON").map(PathBuf::from).expect(
        "set CLADE_TEST_PYTHON to a Python interpreter with the packages of configs/python/requirements-test.lock",
    )
}

/// A file of these tests.
pub fn own_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service").join(name)
}
