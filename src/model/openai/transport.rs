//! HTTP: a client with verified TLS, and the time limits of a request.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Certificate, Client, Response, redirect};
use tokio::time::{Instant, timeout_at};

use super::endpoint::Endpoint;
use super::secret::ApiKey;
use crate::error::with_causes;
use crate::named_file;

/// Largest file of certificates.
const MOST_CERTIFICATE_BYTES: u64 = 16 << 20;

/// Time limits of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Timeouts {
    /// Until a connection stands.
    pub connect: Duration,
    /// Until the first byte of the answer.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
    /// Of the whole request.
    pub total: Duration,
    /// Setting that holds `total`.
    pub total_setting: &'static str,
}

/// Why a request has no answer, or no whole one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TransportError {
    /// A time limit was reached.
    Timeout {
        /// Setting that holds the limit.
        setting: &'static str,
        /// The limit in seconds.
        seconds: f64,
    },
    /// No connection.
    Connect(String),
    /// The service's certificate is not trusted.
    Untrusted(String),
    /// The client cannot be set up.
    Setup(String),
    /// The connection broke.
    Broken(String),
}

/// Sends requests to one service.
#[derive(Debug)]
pub(super) struct Transport {
    endpoint: Endpoint,
    address: String,
    ca_file: Option<PathBuf>,
    headers: BTreeMap<String, String>,
    timeouts: Timeouts,
    /// Made for the first request: a model that is only listed needs no certificates.
    client: Mutex<Option<Client>>,
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub(super) struct Answer {
    response: Response,
    timeouts: Timeouts,
    first_byte_by: Instant,
    ends_by: Instant,
    has_begun: bool,
}

impl Transport {
    /// A transport to a path below an endpoint.
    pub(super) fn new(
        endpoint: Endpoint,
        path: &str,
        ca_file: Option<PathBuf>,
        headers: BTreeMap<String, String>,
        timeouts: Timeouts,
    ) -> Self {
        Self {
            address: endpoint.join(path),
            endpoint,
            ca_file,
            headers,
            timeouts,
            client: Mutex::default(),
        }
    }

    /// Sends a body; returns when the head of the answer has come. Dropping the future closes the connection.
    pub(super) async fn post(
        &self,
        key: Option<&ApiKey>,
        body: String,
        time_limit: Option<Duration>,
    ) -> Result<Answer, TransportError> {
        let timeouts = self.timeouts.within(time_limit);
        let client = self.client()?;
        let mut request = client.post(&self.address).header(CONTENT_TYPE, "application/json");
        if let Some(key) = key {
            request = request.header(AUTHORIZATION, key.bearer());
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let now = Instant::now();
        let (first_byte_by, ends_by) = (now + timeouts.first_byte, now + timeouts.total);
        let sent = timeout_at(first_byte_by.min(ends_by), request.body(body).send()).await;
        match sent {
            Ok(Ok(response)) => Ok(Answer {
                response,
                timeouts,
                first_byte_by,
                ends_by,
                has_begun: false,
            }),
            Ok(Err(error)) => Err(self.failed(error)),
            Err(_) if first_byte_by <= ends_by => Err(timeouts.first_byte_error()),
            Err(_) => Err(timeouts.total_error()),
        }
    }

    fn client(&self) -> Result<Client, TransportError> {
        let mut client = self.client.lock();
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        Ok(client.insert(self.build()?).clone())
    }

    fn build(&self) -> Result<Client, TransportError> {
        let mut builder = Client::builder()
            .user_agent(concat!("clade/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.timeouts.connect)
            // A redirect would carry the key to wherever it points.
            .redirect(redirect::Policy::none());
        if self.endpoint.is_loopback() {
            builder = builder.no_proxy();
        }
        if let Some(path) = &self.ca_file {
            let unreadable = |cause: String| TransportError::Setup(format!("ca_file {}: {cause}", path.display()));
            let pem = named_file::read(path, MOST_CERTIFICATE_BYTES).map_err(unreadable)?;
            let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| unreadable(with_causes(&error)))?;
            if certificates.is_empty() {
                return Err(unreadable("it holds no certificate in PEM form".to_owned()));
            }
            builder = builder.tls_certs_merge(certificates);
        } else if !self.endpoint.is_https() {
            // No certificate is looked at, so a machine without any will do.
            builder = builder.tls_certs_only([]);
        }
        builder
            .build()
            .map_err(|error| TransportError::Setup(with_causes(&error)))
    }

    fn failed(&self, error: reqwest::Error) -> TransportError {
        // The endpoint is known; what matters is the cause.
        let error = error.without_url();
        if error.is_connect() && error.is_timeout() {
            return TransportError::Timeout {
                setting: "connect_timeout_seconds",
                seconds: self.timeouts.connect.as_secs_f64(),
            };
        }
        let cause = with_causes(&error);
        if error.is_builder() {
            TransportError::Setup(cause)
        } else if error.is_connect() && cause.contains("certificate") {
            TransportError::Untrusted(cause)
        } else if error.is_connect() {
            TransportError::Connect(cause)
        } else {
            TransportError::Broken(cause)
        }
    }
}

impl Timeouts {
    /// The same, and the whole request within what a budget has left.
    fn within(self, time_limit: Option<Duration>) -> Self {
        match time_limit.filter(|limit| *limit < self.total) {
            Some(total) => Self {
                total,
                total_setting: "what is left of max_model_sandbox",
                ..self
            },
            None => self,
        }
    }

    fn first_byte_error(self) -> TransportError {
        TransportError::Timeout {
            setting: "first_byte_timeout_seconds",
            seconds: self.first_byte.as_secs_f64(),
        }
    }

    fn total_error(self) -> TransportError {
        TransportError::Timeout {
            setting: self.total_setting,
            seconds: self.total.as_secs_f64(),
        }
    }
}

impl Answer {
    /// HTTP status.
    pub(super) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// A header, when it is text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The next piece of the body; none at its end.
    pub(super) async fn piece(&mut self) -> Result<Option<Vec<u8>>, TransportError> {
        let idle_by = Instant::now() + self.timeouts.idle;
        let by = if self.has_begun { idle_by } else { self.first_byte_by };
        match timeout_at(by.min(self.ends_by), self.response.chunk()).await {
            Ok(Ok(piece)) => {
                self.has_begun = true;
                Ok(piece.map(|bytes| bytes.to_vec()))
            }
            Ok(Err(error)) => Err(TransportError::Broken(with_causes(&error.without_url()))),
            Err(_) if self.ends_by <= by => Err(self.timeouts.total_error()),
            Err(_) if self.has_begun => Err(TransportError::Timeout {
                setting: "idle_timeout_seconds",
                seconds: self.timeouts.idle.as_secs_f64(),
            }),
            Err(_) => Err(self.timeouts.first_byte_error()),
        }
    }

    /// The body up to `limit` bytes, and why it is not whole if it is not.
    pub(super) async fn body(&mut self, limit: usize) -> (Vec<u8>, Option<TransportError>) {
        let mut body = Vec::new();
        loop {
            match self.piece().await {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Ok(None) => return (body, None),
                Err(error) => return (body, Some(error)),
            }
            if body.len() > limit {
                body.truncate(limit);
                return (
                    body,
                    Some(TransportError::Broken(format!("it is longer than {limit} bytes"))),
                );
            }
        }
    }
}
