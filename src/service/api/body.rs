//! Reading bodies: no longer and no larger than allowed.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, StatusCode, header};
use futures::StreamExt;
use tokio::time::{Instant, timeout_at};

use super::error::ApiError;

/// Bytes and time for the rest of a body that is refused: a client that only then looks for the answer would not see it otherwise.
const DRAIN_BYTES: u64 = 64 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// A body that is read part by part.
#[derive(Debug)]
pub struct LimitedBody {
    stream: BodyDataStream,
    limit: u64,
    read: u64,
    deadline: Instant,
}

impl LimitedBody {
    /// A body of at most `limit` bytes, which is all there after `time`.
    ///
    /// # Errors
    /// When its length is said to be larger.
    pub async fn new(headers: &HeaderMap, body: Body, limit: u64, time: Duration) -> Result<Self, ApiError> {
        let mut body = Self {
            stream: body.into_data_stream(),
            limit,
            read: 0,
            deadline: Instant::now() + time,
        };
        let length = headers
            .get(header::CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > limit) {
            body.drain().await;
            return Err(ApiError::too_large(limit));
        }
        Ok(body)
    }

    /// The next part; none at the end.
    ///
    /// # Errors
    /// When it is too large, too slow, or broken off.
    pub async fn part(&mut self) -> Result<Option<axum::body::Bytes>, ApiError> {
        let part = match timeout_at(self.deadline, self.stream.next()).await {
            Ok(Some(Ok(part))) => part,
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => {
                return Err(ApiError::new(
                    StatusCode::BAD_REQUEST,
                    "broken_body",
                    format!("the body could not be read: {error}"),
                    "send it again",
                ));
            }
            Err(_) => {
                return Err(ApiError::new(
                    StatusCode::REQUEST_TIMEOUT,
                    "slow_body",
                    "the body did not come in time",
                    "send it faster; body_seconds and upload_seconds of the configuration are the limits",
                ));
            }
        };
        self.read += part.len() as u64;
        if self.read > self.limit {
            self.drain().await;
            return Err(ApiError::too_large(self.limit));
        }
        Ok(Some(part))
    }

    /// The whole body.
    ///
    /// # Errors
    /// As [`LimitedBody::part`].
    pub async fn whole(mut self) -> Result<Vec<u8>, ApiError> {
        let mut bytes = Vec::new();
        while let Some(part) = self.part().await? {
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    /// What came out of something that is done for the body. Where it went wrong, what is left of the body is read first.
    ///
    /// # Errors
    /// When it went wrong.
    pub async fn checked<T, E: Into<ApiError>>(&mut self, done: Result<T, E>) -> Result<T, ApiError> {
        match done {
            Ok(value) => Ok(value),
            Err(error) => {
                self.drain().await;
                Err(error.into())
            }
        }
    }

    async fn drain(&mut self) {
        let end = Instant::now() + DRAIN_TIME;
        let mut left = DRAIN_BYTES;
        while let Ok(Some(Ok(part))) = timeout_at(end, self.stream.next()).await {
            left = left.saturating_sub(part.len() as u64);
            if left == 0 {
                return;
            }
        }
    }
}

/// Reads a JSON body.
///
/// # Errors
/// When it is not JSON, or not as large or as fast as allowed.
pub async fn json(headers: &HeaderMap, body: Body, limit: u64, time: Duration) -> Result<serde_json::Value, ApiError> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let body = LimitedBody::new(headers, body, limit, time).await?;
    if essence != "application/json" && !(essence.starts_with("application/") && essence.ends_with("+json")) {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "not_json",
            format!("the body is '{kind}', not application/json"),
            "send JSON with the header Content-Type: application/json",
        ));
    }
    let bytes = body.whole().await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        ApiError::new(
            StatusCode::BAD_REQUEST,
            "malformed_json",
            format!("the body is not JSON: {error}"),
            "send one JSON object",
        )
    })
}
