//! The `replay` model: gives the answers of an earlier run again.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::error::ModelError;
use super::generator::{Generator, ModelInfo};
use super::request::{GenerateRequest, Sample};

/// Where recorded answers are looked up.
#[async_trait]
pub trait RecordedGenerations: Send + Sync + Debug {
    /// The answer to exactly this request, by its hash.
    async fn by_request_hash(
        &self,
        request_hash: &str,
    ) -> Result<Option<Sample>, Box<dyn std::error::Error + Send + Sync>>;

    /// The answer to the attempt with this key.
    async fn by_attempt_key(
        &self,
        attempt_key: &str,
    ) -> Result<Option<Sample>, Box<dyn std::error::Error + Send + Sync>>;
}

/// Answers from a recording: first by the hash of the request, then by the key of the attempt. It spends nothing; the
/// tokens and cost of the first time stay on the sample, which is marked as cached.
#[derive(Debug, Clone)]
pub struct Replay {
    recording: Arc<dyn RecordedGenerations>,
}

impl Replay {
    /// Name under which it is registered.
    pub const NAME: &str = "replay";

    /// A replay of this recording.
    pub fn new(recording: Arc<dyn RecordedGenerations>) -> Self {
        Self { recording }
    }

    async fn find(&self, request: &GenerateRequest) -> Result<Option<Sample>, ModelError> {
        let unreadable = |source| ModelError::Recording {
            model: Self::NAME.to_owned(),
            source,
        };
        let by_hash = self.recording.by_request_hash(&request.request_hash);
        if let Some(sample) = by_hash.await.map_err(unreadable)? {
            return Ok(Some(sample));
        }
        let by_key = self.recording.by_attempt_key(&request.attempt_key);
        by_key.await.map_err(unreadable)
    }
}

#[async_trait]
impl Generator for Replay {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn describe(&self) -> ModelInfo {
        ModelInfo::free(Self::NAME)
    }

    async fn generate(&self, request: &GenerateRequest, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        let start = Instant::now();
        let found = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ModelError::Cancelled),
            found = self.find(request) => found?,
        };
        let sample = found.ok_or_else(|| ModelError::NotRecorded {
            model: Self::NAME.to_owned(),
            attempt_key: request.attempt_key.clone(),
            request_hash: request.request_hash.clone(),
        })?;
        Ok(Sample {
            cached: true,
            latency: start.elapsed(),
            ..sample
        })
    }
}
