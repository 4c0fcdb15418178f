//! The server as a worker sees it: one function a route.

use std::path::Path;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::error::{Fault, WorkerError};
use crate::error::with_causes;
use crate::sandbox::LogStream;
use crate::service::Class;
use crate::service::client_address::base_url;
use crate::service::fleet::wire::{
    Attempt, ClaimRequest, Claimed, Finish, Heartbeat, Join, Joined, Orders, PART_BYTES, Probed,
};

/// Time for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// How long a free slot waits for a job in one request.
const CLAIM_TIME: Duration = Duration::from_secs(20);
/// Time for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// A server.
#[derive(Debug)]
pub(super) struct Server {
    http: Client,
    /// Where the routes of workers lie.
    url: String,
    key: String,
    worker_id: String,
}

impl Server {
    /// A server at an address. Its key is not sent in the clear to other machines, unless that is asked for.
    pub(super) fn new(address: &str, key: String, worker_id: String, insecure: bool) -> Result<Self, WorkerError> {
        let base = base_url(address, insecure, "say --insecure").map_err(|problem| WorkerError::Address {
            url: address.to_owned(),
            problem,
        })?;
        let http = Client::builder()
            .connect_timeout(CONNECT_TIME)
            // The key goes nowhere else.
            .redirect(Policy::none())
            .read_timeout(ANSWER_TIME + CLAIM_TIME)
            .build()
            .map_err(WorkerError::Client)?;
        Ok(Self {
            http,
            url: format!("{base}/api/v1/workers"),
            key,
            worker_id,
        })
    }

    pub(super) async fn join(&self, join: &Join) -> Result<Joined, Fault> {
        let request = self.request(Method::POST, "/join").timeout(ANSWER_TIME);
        answer(send(with_json(request, join)?).await?).await
    }

    pub(super) async fn heartbeat(&self, jobs: Vec<Attempt>) -> Result<Orders, Fault> {
        let request = self.own(Method::POST, "heartbeat").timeout(ANSWER_TIME);
        answer(send(with_json(request, &Heartbeat { jobs })?).await?).await
    }

    pub(super) async fn claim(&self, class: Class) -> Result<Claimed, Fault> {
        let asked = ClaimRequest {
            class,
            wait_seconds: CLAIM_TIME.as_secs_f64(),
        };
        let request = self.own(Method::POST, "claim").timeout(CLAIM_TIME + ANSWER_TIME);
        answer(send(with_json(request, &asked)?).await?).await
    }

    pub(super) async fn probed(&self, probed: &Probed) -> Result<(), Fault> {
        let request = self.own(Method::POST, "probe").timeout(ANSWER_TIME);
        send(with_json(request, probed)?).await.map(drop)
    }

    pub(super) async fn leave(&self) -> Result<(), Fault> {
        send(self.own(Method::POST, "leave").timeout(ANSWER_TIME))
            .await
            .map(drop)
    }

    /// Writes the data of a job into a file, as an archive.
    pub(super) async fn data(&self, job_id: &str, hash: &str, target: &Path) -> Result<(), Fault> {
        let broken = |error: std::io::Error| Fault::Local(format!("{} cannot be written: {error}", target.display()));
        let request = self.own(Method::GET, &format!("jobs/{job_id}/data/{hash}"));
        let mut response = send(request).await?;
        let mut file = File::create(target).await.map_err(broken)?;
        while let Some(part) = response.chunk().await.map_err(unreachable_server)? {
            file.write_all(&part).await.map_err(broken)?;
        }
        file.flush().await.map_err(broken)
    }

    pub(super) async fn output(
        &self,
        attempt: &Attempt,
        stream: LogStream,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Result<(), Fault> {
        let Attempt { job_id, attempt } = attempt;
        let stream = stream.as_str();
        let path = format!("jobs/{job_id}/output?attempt={attempt}&stream={stream}&offset={offset}");
        let request = self.own(Method::POST, &path).timeout(ANSWER_TIME).body(bytes);
        send(request).await.map(drop)
    }

    /// Sends a submission part by part.
    pub(super) async fn submission(&self, attempt: &Attempt, file: &Path) -> Result<(), Fault> {
        let broken = |error: std::io::Error| Fault::Local(format!("{} cannot be read: {error}", file.display()));
        let Attempt { job_id, attempt } = attempt;
        let mut opened = File::open(file).await.map_err(broken)?;
        let mut offset = 0;
        loop {
            let mut part = Vec::new();
            let mut limited = (&mut opened).take(PART_BYTES as u64);
            limited.read_to_end(&mut part).await.map_err(broken)?;
            // An empty one is sent, too: there is a file.
            if part.is_empty() && offset > 0 {
                return Ok(());
            }
            let length = part.len() as u64;
            let path = format!("jobs/{job_id}/submission?attempt={attempt}&offset={offset}");
            send(self.own(Method::POST, &path).timeout(ANSWER_TIME).body(part)).await?;
            if length < PART_BYTES as u64 {
                return Ok(());
            }
            offset += length;
        }
    }

    pub(super) async fn finish(&self, job_id: &str, finish: &Finish) -> Result<(), Fault> {
        let request = self
            .own(Method::POST, &format!("jobs/{job_id}/finish"))
            .timeout(ANSWER_TIME);
        send(with_json(request, finish)?).await.map(drop)
    }

    pub(super) async fn give_back(&self, attempt: &Attempt) -> Result<(), Fault> {
        let path = format!("jobs/{}/give_back", attempt.job_id);
        let request = self.own(Method::POST, &path).timeout(ANSWER_TIME);
        send(with_json(request, attempt)?).await.map(drop)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.url))
            .header("X-API-Key", &self.key)
    }

    fn own(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, &format!("/{}/{path}", self.worker_id))
    }
}

fn with_json(request: RequestBuilder, body: &impl Serialize) -> Result<RequestBuilder, Fault> {
    let text = serde_json::to_string(body).map_err(|error| Fault::Nonsense(error.to_string()))?;
    Ok(request.header("Content-Type", "application/json").body(text))
}

async fn send(request: RequestBuilder) -> Result<Response, Fault> {
    let response = request.send().await.map_err(unreachable_server)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let text = response.text().await.map_err(unreachable_server)?;
    let body: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let said = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
    Err(Fault::Refused {
        status: status.as_u16(),
        code: said("code"),
        message: said("message"),
        advice: said("advice"),
    })
}

async fn answer<T: DeserializeOwned>(response: Response) -> Result<T, Fault> {
    let bytes = response.bytes().await.map_err(unreachable_server)?;
    serde_json::from_slice(&bytes).map_err(|error| Fault::Nonsense(error.to_string()))
}

/// There was no answer. The address is left out: whoever reads it knows it.
fn unreachable_server(error: reqwest::Error) -> Fault {
    Fault::Unreachable(with_causes(&error.without_url()))
}
