//! What a server answered, and passing it on.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::error::with_causes;

/// Headers that are between two neighbours only, and those that the router writes itself.
const OWN_HEADERS: [HeaderName; 8] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::DATE,
];

/// Largest answer that is read whole; one about a job has its logs.
const MOST_BYTES: usize = 256 << 20;

/// An answer that is here.
#[derive(Debug, Clone)]
pub(in crate::router) struct Reply {
    pub(in crate::router) status: StatusCode,
    pub(in crate::router) headers: HeaderMap,
    pub(in crate::router) body: Bytes,
}

impl Reply {
    /// Reads an answer to its end.
    ///
    /// # Errors
    /// When it breaks off, or does not end; in words.
    pub(super) async fn read(mut response: reqwest::Response) -> Result<Self, String> {
        let (status, headers) = (response.status(), passed_headers(response.headers()));
        let mut body = Vec::new();
        let broken = |error: reqwest::Error| with_causes(&error.without_url());
        while let Some(part) = response.chunk().await.map_err(broken)? {
            if body.len() + part.len() > MOST_BYTES {
                return Err(format!("an answer has more than {MOST_BYTES} bytes"));
            }
            body.extend_from_slice(&part);
        }
        Ok(Self {
            status,
            headers,
            body: Bytes::from(body),
        })
    }

    /// What it says, if it is JSON of that kind.
    pub(in crate::router) fn json<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Short name of the error that it tells.
    pub(in crate::router) fn code(&self) -> Option<String> {
        let body: Value = self.json()?;
        Some(body["error"]["code"].as_str()?.to_owned())
    }

    /// Seconds after which to come again.
    pub(in crate::router) fn retry_after(&self) -> Option<u64> {
        self.headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()
    }

    /// Whether it says that there is no such thing.
    pub(in crate::router) fn is_missing(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let mut response = Body::from(self.body).into_response();
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

fn passed_headers(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    for name in &OWN_HEADERS {
        passed.remove(name);
    }
    passed
}

/// Passes an answer on as it comes, until it ends, is silent for `silence`, or the router stops.
pub(in crate::router) fn pass_on(response: reqwest::Response, silence: Duration, stop: CancellationToken) -> Response {
    let (status, headers) = (response.status(), passed_headers(response.headers()));
    let parts = stream::unfold(Some(response), move |response| {
        let stop = stop.clone();
        async move {
            let mut response = response?;
            let part = tokio::select! {
                part = timeout(silence, response.chunk()) => part,
                () = stop.cancelled() => return None,
            };
            // The rest of a broken answer is missing, and the client must see that: its connection is broken off as well.
            let broken = |what: String| {
                warn!(what, "an answer of a server broke off");
                Some((Err(std::io::Error::other(what)), None))
            };
            match part {
                Ok(Ok(Some(bytes))) => Some((Ok(bytes), Some(response))),
                Ok(Ok(None)) => None,
                Ok(Err(error)) => broken(error.without_url().to_string()),
                Err(_) => broken(format!("nothing came for {silence:?}")),
            }
        }
    });
    let mut passed = Body::from_stream(parts).into_response();
    *passed.status_mut() = status;
    *passed.headers_mut() = headers;
    passed
}
