//! The trait every generator implements, and what a generator says of itself.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::error::ModelError;
use super::gate::Pause;
use super::memory_needs::MemoryNeeds;
use super::request::{GenerateRequest, Sample, TextRequest, UsageDetails};
use super::tokenizer::TokenCounter;

/// What one token costs, in US dollars a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TokenPrice {
    /// Price of a million prompt tokens.
    pub prompt_usd_per_million: f64,
    /// Price of a million completion tokens.
    pub completion_usd_per_million: f64,
    /// Price of a million prompt tokens that the provider had in its cache; `None` = as the others.
    pub cached_prompt_usd_per_million: Option<f64>,
    /// Price of a million reasoning tokens; `None` = as the other completion tokens.
    pub reasoning_usd_per_million: Option<f64>,
}

impl TokenPrice {
    /// One price for all prompt tokens and one for all completion tokens.
    pub fn flat(prompt_usd_per_million: f64, completion_usd_per_million: f64) -> Self {
        Self {
            prompt_usd_per_million,
            completion_usd_per_million,
            cached_prompt_usd_per_million: None,
            reasoning_usd_per_million: None,
        }
    }

    /// Cost of a call in US dollars. Cached tokens are part of the prompt's, reasoning tokens of the completion's.
    pub fn cost(self, tokens_prompt: u64, tokens_completion: u64, usage: &UsageDetails) -> f64 {
        let part = |all: u64, part: Option<u64>, price: f64, own: Option<f64>| {
            let part = part.unwrap_or(0).min(all);
            (all - part) as f64 * price + part as f64 * own.unwrap_or(price)
        };
        let prompt = part(
            tokens_prompt,
            usage.cached_prompt,
            self.prompt_usd_per_million,
            self.cached_prompt_usd_per_million,
        );
        let completion = part(
            tokens_completion,
            usage.reasoning,
            self.completion_usd_per_million,
            self.reasoning_usd_per_million,
        );
        (prompt + completion) / 1e6
    }

    /// The most that so many tokens can cost, in US dollars.
    pub fn highest(self, tokens_prompt: u64, tokens_completion: u64) -> f64 {
        let prompt = self
            .prompt_usd_per_million
            .max(self.cached_prompt_usd_per_million.unwrap_or(0.0));
        let completion = self
            .completion_usd_per_million
            .max(self.reasoning_usd_per_million.unwrap_or(0.0));
        (tokens_prompt as f64 * prompt + tokens_completion as f64 * completion) / 1e6
    }
}

/// How a model samples where a statement does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SamplingDefaults {
    /// Softmax temperature.
    pub temperature: Option<f64>,
    /// Nucleus share.
    pub top_p: Option<f64>,
    /// Longest answer, in tokens.
    pub max_output_tokens: Option<u32>,
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
    /// How it samples where a statement does not say.
    pub sampling: SamplingDefaults,
    /// It answers prompts in words, so it can be a memory model.
    pub writes_texts: bool,
    /// What its answers depend on beside the request: a model of the same name with another definition may answer otherwise.
    pub definition: Option<String>,
}

impl ModelInfo {
    /// A generator that never costs money or tokens.
    pub fn free(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            free: true,
            price: None,
            sampling: SamplingDefaults::default(),
            writes_texts: false,
            definition: None,
        }
    }

    /// A generator whose tokens are counted; without a price its cost is not known.
    pub fn metered(provider: &str, price: Option<TokenPrice>) -> Self {
        Self {
            free: false,
            price,
            writes_texts: true,
            ..Self::free(provider)
        }
    }
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

    /// Answers a prompt that asks for words. A generator of programs alone has none.
    async fn answer(&self, request: &TextRequest, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        let _ = (request, cancel);
        Err(ModelError::Configuration {
            model: self.name().to_owned(),
            reason: "it writes programs only, no texts; a memory model has to be a language model".to_owned(),
        })
    }

    /// Asks for next to nothing, to see whether the model answers; `None` for one that is built in and needs no asking.
    async fn probe(&self, cancel: &CancellationToken) -> Result<Option<Sample>, ModelError> {
        let _ = cancel;
        Ok(None)
    }

    /// What counts the tokens of its prompts; a rough estimate for a model without a tokenizer.
    async fn token_counter(&self) -> Result<TokenCounter, ModelError> {
        Ok(TokenCounter::Bytes)
    }

    /// Memory that it takes in this process; `None` for one whose weights are elsewhere, or that has none.
    async fn memory(&self) -> Result<Option<MemoryNeeds>, ModelError> {
        Ok(None)
    }

    /// Until when and why it sends nothing.
    fn pause(&self) -> Option<Pause> {
        None
    }
}
