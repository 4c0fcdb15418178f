//! The service as a client sees it: one function a route.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use http_body::Frame;
use reqwest::header::HeaderValue;
use reqwest::redirect::Policy;
use reqwest::{Body, Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::answers::{Accepted, Health, Job, Jobs, Request, SubmissionFacts, Upload, WorkerAnswer, Workers};
use super::fault::{Fault, Patience, Refusal};
use super::options::RemoteOptions;
use crate::error::with_causes;
use crate::sandbox::SandboxError;
use crate::sandbox::observe::LogStream;
use crate::sandbox::outcome::Collected;
use crate::service::client_address::base_url;
use crate::service::{Packer, UPLOAD_PREFIX};

/// How long the end of a job is waited for in one request.
const WAIT: Duration = Duration::from_secs(20);
/// Largest part of a log in one request.
const LOG_PART: u64 = 1 << 20;
/// Largest answer in JSON; that about a job has its logs.
const MOST_JSON: u64 = 256 << 20;
/// Most characters of an answer that is no JSON, in an error.
const SHOWN: usize = 200;

/// A job service.
#[derive(Debug)]
pub(super) struct Service {
    http: Client,
    base: String,
    /// Marked as sensitive, so it is never printed.
    key: HeaderValue,
    pub(super) options: RemoteOptions,
}

/// What became of a request for a job.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) accepted: Accepted,
    /// The job is that of an earlier request.
    pub(super) is_replay: bool,
}

/// A part of a log.
#[derive(Debug)]
pub(super) struct LogPart {
    pub(super) bytes: Vec<u8>,
    pub(super) next: u64,
    pub(super) total: u64,
}

impl Service {
    /// The service of some options, with a key of the caller's or that of the environment.
    pub(super) fn new(options: &RemoteOptions, key: Option<&HeaderValue>) -> Result<Self, SandboxError> {
        if options.url.is_empty() {
            return Err(SandboxError::Config(
                "the sandbox remote needs the address of a job service: set sandbox.remote.url".to_owned(),
            ));
        }
        let base = base_url(&options.url, options.insecure, "set sandbox.remote.insecure")
            .map_err(|problem| SandboxError::Config(format!("sandbox.remote.url {}: {problem}", options.url)))?;
        let name = &options.key_env;
        let key = match key {
            Some(key) => key.clone(),
            None => {
                let key = std::env::var(name).unwrap_or_default();
                sensitive(&key).ok_or_else(|| {
                    SandboxError::Config(format!(
                        "the environment variable {name} holds no API key for the job service at {base}: `clade key create NAME` on the \
                         server makes one, and sandbox.remote.key_env names the variable"
                    ))
                })?
            }
        };
        let http = client(&base, options.connect)
            .map_err(|error| SandboxError::Helper(format!("the HTTP client cannot be made: {error}")))?;
        Ok(Self {
            http,
            base,
            key,
            options: RemoteOptions {
                url: options.url.trim_end_matches('/').to_owned(),
                ..options.clone()
            },
        })
    }

    /// The same with connections of its own.
    pub(super) fn anew(&self) -> Result<Self, Fault> {
        Ok(Self {
            http: client(&self.base, self.options.connect).map_err(unreachable_service)?,
            base: self.base.clone(),
            key: self.key.clone(),
            options: self.options.clone(),
        })
    }

    /// Asks until it goes well, is refused, or takes too long. A request that was begun is not broken off by `cancel`.
    pub(super) async fn insist<T, F: Future<Output = Result<T, Fault>>>(
        &self,
        cancel: &CancellationToken,
        ask: impl Fn() -> F,
    ) -> Result<T, SandboxError> {
        let mut patience = Patience::new(self.options.give_up);
        loop {
            if cancel.is_cancelled() {
                return Err(SandboxError::Cancelled);
            }
            let fault = match ask().await {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            patience.after(fault, cancel).await.map_err(|fault| self.error(fault))?;
        }
    }

    pub(super) fn error(&self, fault: Fault) -> SandboxError {
        fault.into_error(&self.options)
    }

    pub(super) async fn health(&self) -> Result<Health, Fault> {
        self.answer(self.request(Method::GET, "/health")).await
    }

    pub(super) async fn workers(&self) -> Result<Vec<WorkerAnswer>, Fault> {
        let workers: Workers = self.answer(self.request(Method::GET, "/workers/status")).await?;
        Ok(workers.workers_show)
    }

    pub(super) async fn has_upload(&self, hash: &str) -> Result<bool, Fault> {
        let path = format!("/uploads/{UPLOAD_PREFIX}{hash}");
        match self.answer::<Upload>(self.request(Method::GET, &path)).await {
            Ok(_) => Ok(true),
            Err(fault) if fault.is("unknown_upload") => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Sends a folder; gives the id of the upload.
    pub(super) async fn upload(&self, folder: &Path) -> Result<String, Fault> {
        let parts = Parts(Packer::archive(folder.to_owned()));
        let request = self
            .request(Method::POST, "/uploads")
            .timeout(self.options.transfer)
            .header("Content-Type", "application/octet-stream")
            .body(Body::wrap(parts));
        Ok(self.answer::<Upload>(request).await?.upload)
    }

    pub(super) async fn submit(&self, request: &Request<'_>) -> Result<Placed, Fault> {
        let response = send(self.with_json(Method::POST, "/jobs", request)?).await?;
        let is_replay = header(&response, "idempotent-replay").is_some();
        Ok(Placed {
            accepted: json(response).await?,
            is_replay,
        })
    }

    /// Waits for the end of a job that was handed in; it need not have come when this returns.
    pub(super) async fn wait(&self, request: &Request<'_>) -> Result<Job, Fault> {
        let path = format!("/jobs/submit_and_wait?timeout_s={}", WAIT.as_secs());
        let request = self.with_json(Method::POST, &path, request)?;
        self.answer(request.timeout(WAIT + self.options.answer)).await
    }

    pub(super) async fn job(&self, job_id: &str) -> Result<Job, Fault> {
        self.answer(self.request(Method::GET, &format!("/jobs/{job_id}"))).await
    }

    /// Jobs of a name that have not ended.
    pub(super) async fn open_jobs(&self, name: &str) -> Result<Vec<Job>, Fault> {
        let mut url = Url::parse(&format!("{}/api/v1/jobs?limit=500", self.base))
            .map_err(|error| Fault::Nonsense(error.to_string()))?;
        url.query_pairs_mut().append_pair("name", name);
        let page: Jobs = self.answer(self.request_to(Method::GET, url.as_str())).await?;
        Ok(page.jobs.into_iter().filter(|job| !job.status.is_end()).collect())
    }

    pub(super) async fn cancel(&self, job_id: &str) -> Result<Accepted, Fault> {
        self.answer(self.request(Method::DELETE, &format!("/jobs/{job_id}")))
            .await
    }

    /// Bytes of a log from a place on.
    pub(super) async fn log(&self, job_id: &str, stream: LogStream, offset: u64, most: u64) -> Result<LogPart, Fault> {
        let limit = most.clamp(1, LOG_PART);
        let path = format!(
            "/jobs/{job_id}/logs?stream={}&offset={offset}&limit={limit}",
            stream.as_str()
        );
        let response = send(self.request(Method::GET, &path)).await?;
        let place = |name: &str| {
            header(&response, name)
                .and_then(|value| value.parse().ok())
                .ok_or_else(|| Fault::Nonsense(format!("the log of a job came without the header {name}")))
        };
        let (next, total) = (place("x-log-next-offset")?, place("x-log-total")?);
        let bytes = body(response, limit).await?;
        Ok(LogPart { bytes, next, total })
    }

    /// Events of a log from a place on.
    pub(super) async fn follow(&self, job_id: &str, stream: LogStream, offset: u64) -> Result<Response, Fault> {
        let path = format!(
            "/jobs/{job_id}/logs?follow=true&stream={}&offset={offset}",
            stream.as_str()
        );
        // It lasts as long as the job: who reads it watches for signs of life.
        let request = self
            .http
            .get(format!("{}/api/v1{path}", self.base))
            .header("X-API-Key", self.key.clone());
        send(request).await
    }

    /// Fetches a submission into a file; it is the one that the service spoke of.
    pub(super) async fn submission(
        &self,
        job_id: &str,
        facts: &SubmissionFacts,
        target: &Path,
    ) -> Result<Collected, Fault> {
        let request = self
            .request(Method::GET, &format!("/jobs/{job_id}/submission"))
            .timeout(self.options.transfer);
        let mut response = send(request).await?;
        let mut file = tokio::fs::File::create(target)
            .await
            .map_err(Fault::local("make", target))?;
        let (mut bytes, mut hash) = (0_u64, Sha256::new());
        while let Some(part) = response.chunk().await.map_err(unreachable_service)? {
            bytes += part.len() as u64;
            if bytes > facts.bytes {
                break;
            }
            hash.update(&part);
            file.write_all(&part).await.map_err(Fault::local("write", target))?;
        }
        file.flush().await.map_err(Fault::local("write", target))?;
        let sha256 = hex::encode(hash.finalize());
        if bytes != facts.bytes || sha256 != facts.sha256 {
            // It may have been spoilt on its way.
            return Err(Fault::Unreachable(format!(
                "the submission of job {job_id} is not the one that the job was said to have: {} bytes with the hash {}",
                facts.bytes, facts.sha256
            )));
        }
        Ok(Collected {
            path: target.to_owned(),
            bytes,
            sha256,
        })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.request_to(method, &format!("{}/api/v1{path}", self.base))
    }

    fn request_to(&self, method: Method, url: &str) -> RequestBuilder {
        self.http
            .request(method, url)
            .timeout(self.options.answer)
            .header("X-API-Key", self.key.clone())
    }

    fn with_json(&self, method: Method, path: &str, body: &Request<'_>) -> Result<RequestBuilder, Fault> {
        let text = serde_json::to_string(body).map_err(|error| Fault::Nonsense(error.to_string()))?;
        Ok(self
            .request(method, path)
            .header("Content-Type", "application/json")
            .body(text))
    }

    async fn answer<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Fault> {
        json(send(request).await?).await
    }
}

/// An archive on its way, part by part.
struct Parts(mpsc::Receiver<io::Result<Bytes>>);

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(cx).map(|part| part.map(|part| part.map(Frame::data)))
    }
}

/// A key as it is sent, which is never printed; none where it cannot be one.
pub(super) fn sensitive(key: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(key.trim())
        .ok()
        .filter(|value| !value.is_empty())?;
    value.set_sensitive(true);
    Some(value)
}

/// A client by which the key goes nowhere else: to no other address, and in the clear to nobody in between.
fn client(base: &str, connect: Duration) -> reqwest::Result<Client> {
    let http = Client::builder().connect_timeout(connect).redirect(Policy::none());
    match base.starts_with("http:") {
        true => http.no_proxy().build(),
        false => http.build(),
    }
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

async fn send(request: RequestBuilder) -> Result<Response, Fault> {
    let response = request.send().await.map_err(unreachable_service)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let retry_after = header(&response, "retry-after")
        .and_then(|seconds| seconds.trim().parse().ok())
        .map(Duration::from_secs);
    let bytes = body(response, MOST_JSON).await?;
    let said: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let field = |name: &str| said["error"][name].as_str().unwrap_or_default().to_owned();
    let mut refusal = Refusal {
        status: status.as_u16(),
        code: field("code"),
        message: field("message"),
        advice: field("advice"),
        retry_after,
    };
    if refusal.code.is_empty() {
        refusal.message = shown(&bytes, status);
    }
    Err(Fault::Refused(refusal))
}

/// The beginning of an answer that is not in the form of a job service, on one line.
fn shown(bytes: &[u8], status: StatusCode) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN)]).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let text: String = words
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .take(SHOWN)
        .collect();
    match text.as_str() {
        "" => status.canonical_reason().unwrap_or("nothing more").to_owned(),
        _ => text,
    }
}

async fn json<T: DeserializeOwned>(response: Response) -> Result<T, Fault> {
    let bytes = body(response, MOST_JSON).await?;
    serde_json::from_slice(&bytes).map_err(|error| Fault::Nonsense(format!("an answer cannot be read: {error}")))
}

/// The body of an answer, if it is no longer than it may be.
async fn body(mut response: Response, most: u64) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    while let Some(part) = response.chunk().await.map_err(unreachable_service)? {
        if bytes.len() as u64 + part.len() as u64 > most {
            return Err(Fault::Nonsense(format!("an answer has more than {most} bytes")));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// There was no answer. The address is left out: whoever reads it knows it.
pub(super) fn unreachable_service(error: reqwest::Error) -> Fault {
    Fault::Unreachable(with_causes(&error.without_url()))
}
