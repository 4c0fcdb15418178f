//! The trait every generator implements, and what a generator says of itself.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::error::ModelError;
use super::request::{GenerateRequest, Sample};

/// What one token costs, in US dollars a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TokenPrice {
    /// Price of a million prompt tokens.
    pub prompt_usd_per_million: f64,
    /// Price of a million completion tokens.
    pub completion_usd_per_million: f64,
}

impl TokenPrice {
    /// Cost of a call in US dollars.
    pub fn cost(self, tokens_prompt: u64, tokens_completion: u64) -> f64 {
        (tokens_prompt as f64 * self.prompt_usd_per_million
            + tokens_completion as f64 * self.completion_usd_per_million)
            / 1e6
    }
}

/// What a generator says of itself, for `system.models` and for budgets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Kind of generator: `evolver`, `replay`, `openai`, …
    pub provider: String,
    /// True when a call never costs money or tokens.
    pub free: bool,
    /// Token price, when it is known. A generator that is neither free nor priced has an unknown cost.
    pub price: Option<TokenPrice>,
}

/// Makes programs from prompts.
#[async_trait]
pub trait Generator: Send + Sync + Debug {
    /// Name under which the generator is registered and stored on every row it makes.
    fn name(&self) -> &str;

    /// Provider and price.
    fn describe(&self) -> ModelInfo;

    /// Answers one request. Returns [`ModelError::Cancelled`] soon after `cancel` is triggered.
    async fn generate(&self, request: &GenerateRequest, cancel: &CancellationToken) -> Result<Sample, ModelError>;
}
