#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::error::ErrorClass;
use crate::operators::Operator;

#[derive(Debug, Default)]
struct Recording {
    by_hash: HashMap<String, Sample>,
    by_key: HashMap<String, Sample>,
}

#[async_trait]
impl RecordedGenerations for Recording {
    async fn by_request_hash(&self, hash: &str) -> Result<Option<Sample>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.by_hash.get(hash).cloned())
    }

    async fn by_attempt_key(&self, key: &str) -> Result<Option<Sample>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.by_key.get(key).cloned())
    }
}

fn sample(text: &str) -> Sample {
    Sample {
        text: text.to_owned(),
        reasoning: None,
        finish_reason: "stop".to_owned(),
        tokens_prompt: Some(10),
        tokens_completion: Some(20),
        usage: UsageDetails::default(),
        cost_usd: None,
        cached: false,
        latency: Duration::from_secs(3),
    }
}

fn request(attempt_key: &str, request_hash: &str) -> GenerateRequest {
    GenerateRequest {
        operator: Operator::Draft,
        messages: Vec::new(),
        task: Arc::new(TaskContext {
            task_id: "t".to_owned(),
            public_dir: PathBuf::new(),
            description: String::new(),
            metric: "rmse".to_owned(),
            higher_is_better: false,
            modality: "tabular".to_owned(),
            task_type: "regression".to_owned(),
            id_column: None,
            target_columns: Vec::new(),
            time_limit_seconds: 60,
        }),
        nodes: Vec::new(),
        params: SamplingParams::default(),
        seed: 1,
        sample: 0,
        attempt_key: attempt_key.to_owned(),
        request_hash: request_hash.to_owned(),
    }
}

fn replay() -> Replay {
    let mut recording = Recording::default();
    recording.by_hash.insert("h1".to_owned(), sample("by hash"));
    recording.by_key.insert("k1".to_owned(), sample("by key"));
    Replay::new(Arc::new(recording))
}

#[tokio::test]
async fn replay_prefers_the_exact_request_and_falls_back_to_the_attempt() {
    let cancel = CancellationToken::new();
    let exact = replay().generate(&request("k1", "h1"), &cancel).await.unwrap();
    assert_eq!((exact.text.as_str(), exact.cached), ("by hash", true));
    let attempt = replay().generate(&request("k1", "other"), &cancel).await.unwrap();
    assert_eq!((attempt.text.as_str(), attempt.tokens_completion), ("by key", Some(20)));
}

#[tokio::test]
async fn replay_of_something_new_is_a_config_error_that_names_it() {
    let error = replay()
        .generate(&request("k9", "h9"), &CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(error.class(), ErrorClass::Config);
    assert!(error.to_string().contains("'k9'") && error.to_string().contains("h9"));
}

#[tokio::test]
async fn a_cancelled_replay_says_so() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = replay().generate(&request("k1", "h1"), &cancel).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Cancelled);
}

#[tokio::test]
async fn an_unknown_model_error_lists_the_known_ones() {
    let mut registry = ModelRegistry::new(None, ModelAccess::default());
    registry.register(Arc::new(replay()));
    assert!(registry.get("replay").await.is_ok());
    let error = registry.get("gpt").await.unwrap_err();
    assert_eq!(error.to_string(), "unknown model 'gpt': the known models are replay");
}

#[test]
fn rate_limits_carry_the_time_to_wait() {
    let error = ModelError::RateLimited {
        model: "m".to_owned(),
        message: "slow down".to_owned(),
        retry_after: Some(Duration::from_secs(7)),
    };
    assert_eq!(error.class(), ErrorClass::RateLimit);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
}
