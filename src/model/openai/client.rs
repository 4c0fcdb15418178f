//! One model of one service: sends a request when the gate lets it, and tells the gate what came of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::Utc;
use serde_json::{Map, Value as Json, json};
use tokio::sync::{OnceCell, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::body::{Question, body};
use super::failure::{Speaker, Trouble, no_sample};
use super::profile::Profile;
use super::reading::Reading;
use super::secret::{ApiKey, redact};
use super::transport::{Timeouts, Transport};
use super::usage::Asked;
use crate::error::ErrorClass;
use crate::model::gate::{Gate, GateLimits, Pause};
use crate::model::generator::{Generator, ModelInfo, SamplingDefaults, TokenPrice};
use crate::model::tokenizer::{TokenCounter, Tokenizer};
use crate::model::{
    GenerateRequest, Message, ModelError, ModelOptions, ReplyFault, Role, Sample, SamplingParams, TextRequest,
};

/// Token limit of a probe: enough for a model that reasons a little before it answers.
const PROBE_TOKENS: u32 = 1024;

/// A model of an OpenAI-compatible service.
#[derive(Debug)]
pub struct OpenAi {
    name: String,
    model: String,
    profile: &'static Profile,
    api_key_env: Option<String>,
    extra_body: Option<Map<String, Json>>,
    stream: bool,
    sampling: SamplingDefaults,
    price: Option<TokenPrice>,
    tokenizer: Option<PathBuf>,
    counter: OnceCell<TokenCounter>,
    endpoint: String,
    /// What answers depend on beside the request, as JSON.
    definition: String,
    transport: Transport,
    slots: Semaphore,
    gate: Gate,
}

impl OpenAi {
    /// A model with these options. Nothing is sent and no key is read.
    ///
    /// # Errors
    /// When an option is wrong.
    pub fn new(name: &str, options: &ModelOptions) -> Result<Self, ModelError> {
        let wrong = |error: crate::model::WrongOption| ModelError::Configuration {
            model: name.to_owned(),
            reason: error.to_string(),
        };
        options.check().map_err(wrong)?;
        let profile = options.profile().map_err(wrong)?;
        let endpoint = options.endpoint().map_err(wrong)?;
        let seconds = |value: Option<f64>, default: f64| Duration::from_secs_f64(value.unwrap_or(default));
        let timeouts = Timeouts {
            connect: seconds(options.connect_timeout_seconds, 10.0),
            first_byte: seconds(options.first_byte_timeout_seconds, 600.0),
            idle: seconds(options.idle_timeout_seconds, 120.0),
            total: seconds(options.timeout_seconds, 1800.0),
            total_setting: "timeout_seconds",
        };
        let price = options
            .usd_per_million_prompt_tokens
            .zip(options.usd_per_million_completion_tokens)
            .map(|(prompt, completion)| TokenPrice {
                cached_prompt_usd_per_million: options.usd_per_million_cached_prompt_tokens,
                reasoning_usd_per_million: options.usd_per_million_reasoning_tokens,
                ..TokenPrice::flat(prompt, completion)
            });
        Ok(Self {
            name: name.to_owned(),
            model: options.model.clone().unwrap_or_default(),
            api_key_env: options.key_variable().map(str::to_owned),
            extra_body: options.extra_body.clone(),
            stream: options.stream.unwrap_or(profile.stream),
            sampling: SamplingDefaults {
                temperature: options.temperature,
                top_p: options.top_p,
                max_output_tokens: options.max_output_tokens,
            },
            price,
            tokenizer: options.tokenizer.clone(),
            counter: OnceCell::new(),
            endpoint: endpoint.to_string(),
            definition: json!([
                endpoint.to_string(),
                options.model,
                options.profile,
                options.extra_body,
                options.extra_headers
            ])
            .to_string(),
            transport: Transport::new(
                endpoint,
                &profile.path,
                options.ca_file.clone(),
                options.extra_headers.clone().unwrap_or_default(),
                timeouts,
            ),
            slots: Semaphore::new(options.concurrency.unwrap_or(16) as usize),
            gate: Gate::new(GateLimits {
                breaker_failures: options.breaker_failures.unwrap_or(5),
                breaker_pause: seconds(options.breaker_pause_seconds, 30.0),
                longest_pause: seconds(options.max_retry_after_seconds, 900.0),
                give_up_after: seconds(options.give_up_after_seconds, 86_400.0),
            }),
            profile,
        })
    }

    /// What a request asks of this model.
    fn question<'a>(
        &'a self,
        messages: &'a [Message],
        params: SamplingParams,
        seed: u64,
        time_limit: Option<Duration>,
    ) -> Question<'a> {
        Question {
            model: &self.model,
            messages,
            params,
            seed: Some(seed),
            stream: self.stream,
            time_limit,
        }
    }

    /// Sends one question as soon as there is a free slot and the gate is open.
    async fn ask(&self, question: &Question<'_>, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        let key = match &self.api_key_env {
            Some(variable) => Some(ApiKey::read(&self.name, variable)?),
            None => None,
        };
        let counter = self.counter().await?;
        let _slot = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ModelError::Cancelled),
            slot = self.slots.acquire() => slot.map_err(|_| ModelError::Cancelled)?,
        };
        let pass = self.gate.enter(Utc::now()).map_err(|pause| self.paused(pause, None))?;
        let outcome = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ModelError::Cancelled),
            outcome = self.exchange(question, key.as_ref(), counter) => outcome,
        };
        match outcome.map_err(|trouble| redacted(key.as_ref(), trouble)) {
            Ok(sample) => {
                pass.succeeded();
                Ok(clean_sample(key.as_ref(), sample))
            }
            Err(Trouble::Limited { asked, message }) => {
                let pause = pass.limited(Utc::now(), asked, &message);
                let answer = ModelError::Reply {
                    model: self.name.clone(),
                    fault: ReplyFault::Limited { message },
                    sample: Box::new(no_sample()),
                };
                match pause {
                    Some(pause) => {
                        warn!(model = %self.name, "the model is paused: {pause}");
                        Err(self.paused(pause, Some(answer)))
                    }
                    None => Err(answer),
                }
            }
            Err(Trouble::Failed(error)) => {
                if matches!(error.class(), ErrorClass::Provider | ErrorClass::Infra) {
                    if let Some(pause) = pass.failed(Utc::now(), &error.to_string()) {
                        warn!(model = %self.name, "the model is paused: {pause}");
                    }
                } else {
                    // The service answered, even if not what was hoped for.
                    pass.succeeded();
                }
                Err(error)
            }
        }
    }

    fn paused(&self, pause: Pause, cause: Option<ModelError>) -> ModelError {
        ModelError::Paused {
            model: self.name.clone(),
            pause,
            cause: cause.map(Box::new),
        }
    }

    async fn exchange(
        &self,
        question: &Question<'_>,
        key: Option<&ApiKey>,
        counter: &TokenCounter,
    ) -> Result<Sample, Trouble> {
        let reading = Reading {
            speaker: Speaker {
                model: &self.name,
                endpoint: &self.endpoint,
                api_key_env: self.api_key_env.as_deref(),
                profile: self.profile,
            },
            key,
            asked: Asked::new(question.messages, question.params.max_tokens, counter, self.price),
            started: Instant::now(),
        };
        let body = body(question, self.profile, self.extra_body.as_ref()).to_string();
        let sent = self.transport.post(key, body, question.time_limit).await;
        reading.answer(sent).await
    }

    /// What counts tokens; a tokenizer is read for the first request.
    async fn counter(&self) -> Result<&TokenCounter, ModelError> {
        let Some(path) = &self.tokenizer else {
            return Ok(&TokenCounter::Bytes);
        };
        let read = async {
            let path = path.clone();
            let read = tokio::task::spawn_blocking(move || Tokenizer::read(&path)).await;
            let reason = match read {
                Ok(Ok(tokenizer)) => return Ok(TokenCounter::Tokenizer(Arc::new(tokenizer))),
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            Err(ModelError::Configuration {
                model: self.name.clone(),
                reason,
            })
        };
        self.counter.get_or_try_init(|| read).await
    }
}

/// A trouble whose texts do not hold the key, whatever the provider echoed.
fn redacted(key: Option<&ApiKey>, trouble: Trouble) -> Trouble {
    let clean = |text: String| redact(key, text);
    match trouble {
        Trouble::Limited { asked, message } => Trouble::Limited {
            asked,
            message: clean(message),
        },
        Trouble::Failed(error) => Trouble::Failed(match error {
            ModelError::Configuration { model, reason } => ModelError::Configuration {
                model,
                reason: clean(reason),
            },
            ModelError::Unreachable { model, message } => ModelError::Unreachable {
                model,
                message: clean(message),
            },
            ModelError::Reply { model, fault, sample } => ModelError::Reply {
                model,
                fault: fault.map_texts(clean),
                sample: Box::new(clean_sample(key, *sample)),
            },
            other => other,
        }),
    }
}

/// A sample whose texts do not hold the key.
fn clean_sample(key: Option<&ApiKey>, sample: Sample) -> Sample {
    Sample {
        text: redact(key, sample.text),
        reasoning: sample.reasoning.map(|text| redact(key, text)),
        finish_reason: redact(key, sample.finish_reason),
        ..sample
    }
}

#[async_trait]
impl Generator for OpenAi {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> ModelInfo {
        ModelInfo {
            sampling: self.sampling,
            definition: Some(self.definition.clone()),
            ..ModelInfo::metered("openai", self.price)
        }
    }

    async fn generate(&self, request: &GenerateRequest, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        let question = self.question(&request.messages, request.params, request.seed, request.time_limit);
        self.ask(&question, cancel).await
    }

    async fn answer(&self, request: &TextRequest, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        let question = self.question(&request.messages, request.params, request.seed, request.time_limit);
        self.ask(&question, cancel).await
    }

    async fn probe(&self, cancel: &CancellationToken) -> Result<Option<Sample>, ModelError> {
        let messages = [Message {
            role: Role::User,
            content: "Answer with the one word: ready".to_owned(),
        }];
        let defaults = SamplingParams::default();
        let question = Question {
            model: &self.model,
            messages: &messages,
            params: SamplingParams {
                temperature: self.sampling.temperature.unwrap_or(defaults.temperature),
                top_p: self.sampling.top_p.unwrap_or(defaults.top_p),
                max_tokens: self
                    .sampling
                    .max_output_tokens
                    .unwrap_or(PROBE_TOKENS)
                    .min(PROBE_TOKENS),
            },
            seed: None,
            stream: self.stream,
            time_limit: None,
        };
        self.ask(&question, cancel).await.map(Some)
    }

    async fn token_counter(&self) -> Result<TokenCounter, ModelError> {
        self.counter().await.cloned()
    }

    fn pause(&self) -> Option<Pause> {
        self.gate.pause(Utc::now())
    }
}
