//! A model of provider `torch` as a generator.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use clade_lm_api::messages::{Event, Generate, Load, Message as LmMessage, Prompt, Sampling, Usage};
use clade_lm_api::{ApiError, Fault, FaultKind};
use clade_udfs::text::split_thinking;
use serde_json::json;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::loaded::{Answers, LoadError, LoadedModel, load};
use super::needs::needs;
use super::tokenizer::LocalTokenizer;
use crate::model::generator::{Generator, ModelInfo, SamplingDefaults, TokenPrice};
use crate::model::tokenizer::TokenCounter;
use crate::model::{
    GenerateRequest, MemoryNeeds, Message, ModelError, ModelOptions, ReplyFault, Role, Sample, SamplingParams,
    TextRequest, UsageDetails,
};

/// Token limit of a probe.
const PROBE_TOKENS: u32 = 64;

/// A model whose weights run in this process. They are loaded for the first request.
#[derive(Debug)]
pub struct Torch {
    name: String,
    load: Load,
    sampling: Sampling,
    max_output_tokens: Option<u32>,
    definition: String,
    model: OnceCell<Arc<LoadedModel>>,
    tokenizer: OnceCell<Arc<LocalTokenizer>>,
}

/// One question.
struct Question<'a> {
    messages: &'a [Message],
    params: SamplingParams,
    seed: Option<u64>,
    time_limit: Option<Duration>,
}

impl Torch {
    /// A model with these options. Nothing is read yet.
    ///
    /// # Errors
    /// When an option is wrong.
    pub fn new(name: &str, options: &ModelOptions) -> Result<Self, ModelError> {
        options.check().map_err(|error| ModelError::Configuration {
            model: name.to_owned(),
            reason: error.to_string(),
        })?;
        let load = options.load();
        Ok(Self {
            name: name.to_owned(),
            sampling: options.sampling(),
            max_output_tokens: options.max_output_tokens,
            // Threads and the size of the cache change nothing in an answer.
            definition: json!([
                load.path,
                load.device,
                load.dtype,
                load.context_tokens,
                options.top_k,
                options.min_p,
                options.repetition_penalty
            ])
            .to_string(),
            load,
            model: OnceCell::new(),
            tokenizer: OnceCell::new(),
        })
    }

    /// The weights, which are loaded when they are not there.
    ///
    /// # Errors
    /// When there is no libtorch, or they cannot be loaded.
    pub async fn loaded(&self) -> Result<&Arc<LoadedModel>, ModelError> {
        let loading = async {
            let model = load(&self.load, |_| {})
                .await
                .map_err(|error| self.not_loaded(&error))?;
            let facts = model.facts();
            info!(
                model = self.name,
                device = facts.device,
                dtype = facts.dtype,
                bytes = facts.weight_bytes,
                seconds = facts.seconds,
                "the model is loaded"
            );
            Ok(model)
        };
        self.model.get_or_try_init(|| loading).await
    }

    fn not_loaded(&self, error: &LoadError) -> ModelError {
        ModelError::Configuration {
            model: self.name.clone(),
            reason: error.to_string(),
        }
    }

    async fn ask(&self, question: Question<'_>, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        let model = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ModelError::Cancelled),
            model = self.loaded() => model?,
        };
        let request = self.request(model.handle(), &question);
        let started = Instant::now();
        let mut answers = model.generate(&request).map_err(|error| self.refused(error, started))?;
        let mut answer = Answer::default();
        let limit = async {
            match question.time_limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ModelError::Cancelled),
            ended = answer.gather(&mut answers) => ended,
            () = limit => None,
        };
        let sample = answer.sample(answers.begun().prompt_tokens, started.elapsed());
        match ended {
            Some(Ended::Well) => self.judged(sample, question.params.max_tokens),
            Some(Ended::Fault(fault)) => Err(self.failed(fault, sample)),
            None => {
                let fault = ReplyFault::Stalled {
                    setting: "the time that the budget leaves",
                    seconds: question.time_limit.unwrap_or_default().as_secs_f64(),
                    bytes: sample.text.len(),
                };
                Err(self.reply(fault, sample))
            }
        }
    }

    fn request(&self, model: u64, question: &Question<'_>) -> Generate {
        let messages = question.messages.iter().map(|message| LmMessage {
            role: message.role.as_str().to_owned(),
            content: message.content.clone(),
        });
        Generate {
            model,
            prompt: Prompt::Chat {
                messages: messages.collect(),
                variables: BTreeMap::new(),
            },
            samples: 1,
            max_tokens: Some(question.params.max_tokens as usize),
            sampling: Sampling {
                temperature: Some(question.params.temperature),
                top_p: Some(question.params.top_p),
                seed: question.seed,
                ..self.sampling.clone()
            },
            stop: Vec::new(),
            logprobs: None,
            priority: 0,
        }
    }

    /// An answer that ended by itself. One of a few spaces is one without a program, and asking again would give it again.
    fn judged(&self, sample: Sample, max_tokens: u32) -> Result<Sample, ModelError> {
        let is_empty = sample.text.trim().is_empty();
        if is_empty && sample.finish_reason == "length" {
            return Err(self.reply(ReplyFault::EmptyLength { max_tokens }, sample));
        }
        if is_empty && sample.reasoning.is_some() {
            return Err(self.reply(ReplyFault::ReasoningOnly, sample));
        }
        Ok(sample)
    }

    fn refused(&self, error: ApiError, started: Instant) -> ModelError {
        let sample = Answer::default().sample(0, started.elapsed());
        match error {
            ApiError::Fault(fault) => self.failed(fault, sample),
            other => ModelError::Provider {
                model: self.name.clone(),
                message: other.to_string(),
            },
        }
    }

    fn failed(&self, fault: Fault, sample: Sample) -> ModelError {
        match fault.kind {
            FaultKind::TooLong => self.reply(ReplyFault::PromptTooLong { message: fault.message }, sample),
            FaultKind::Request | FaultKind::Model => ModelError::Configuration {
                model: self.name.clone(),
                reason: fault.message,
            },
            FaultKind::Memory | FaultKind::Internal => ModelError::Provider {
                model: self.name.clone(),
                message: fault.message,
            },
        }
    }

    fn reply(&self, fault: ReplyFault, sample: Sample) -> ModelError {
        ModelError::Reply {
            model: self.name.clone(),
            fault,
            sample: Box::new(sample),
        }
    }
}

/// An answer as far as it came.
#[derive(Default)]
struct Answer {
    text: String,
    reason: Option<String>,
    usage: Option<Usage>,
    tokens: u64,
}

enum Ended {
    Well,
    Fault(Fault),
}

impl Answer {
    /// Gathers the one answer until it ends; none where the library went away.
    async fn gather(&mut self, answers: &mut Answers) -> Option<Ended> {
        while let Some(event) = answers.next().await {
            match event {
                Event::Token { text, .. } => {
                    self.text.push_str(&text);
                    self.tokens += 1;
                }
                Event::End {
                    reason,
                    fault,
                    text,
                    usage,
                    ..
                } => {
                    self.text.push_str(&text);
                    self.reason = Some(reason);
                    self.usage = Some(usage);
                    return Some(fault.map_or(Ended::Well, Ended::Fault));
                }
            }
        }
        Some(Ended::Fault(Fault {
            kind: FaultKind::Internal,
            message: "the engine of the model ended".to_owned(),
        }))
    }

    fn sample(self, prompt_tokens: usize, latency: Duration) -> Sample {
        let (text, reasoning) = split_thinking(&self.text);
        let completion = self.usage.map_or(self.tokens, |usage| usage.completion_tokens as u64);
        Sample {
            text,
            reasoning,
            finish_reason: self.reason.unwrap_or_else(|| "unknown".to_owned()),
            tokens_prompt: Some(prompt_tokens as u64),
            tokens_completion: Some(completion),
            usage: UsageDetails {
                cached_prompt: self.usage.map(|usage| usage.cached_tokens as u64),
                ..UsageDetails::default()
            },
            cost_usd: Some(0.0),
            cached: false,
            latency,
        }
    }
}

#[async_trait]
impl Generator for Torch {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> ModelInfo {
        ModelInfo {
            sampling: SamplingDefaults {
                temperature: self.sampling.temperature,
                top_p: self.sampling.top_p,
                max_output_tokens: self.max_output_tokens,
            },
            definition: Some(self.definition.clone()),
            ..ModelInfo::metered("torch", Some(TokenPrice::flat(0.0, 0.0)))
        }
    }

    async fn generate(&self, request: &GenerateRequest, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        let question = Question {
            messages: &request.messages,
            params: request.params,
            seed: Some(request.seed),
            time_limit: request.time_limit,
        };
        self.ask(question, cancel).await
    }

    async fn answer(&self, request: &TextRequest, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        let question = Question {
            messages: &request.messages,
            params: request.params,
            seed: Some(request.seed),
            time_limit: request.time_limit,
        };
        self.ask(question, cancel).await
    }

    async fn probe(&self, cancel: &CancellationToken) -> Result<Option<Sample>, ModelError> {
        let messages = [Message {
            role: Role::User,
            content: "Answer with the one word: ready".to_owned(),
        }];
        let defaults = SamplingParams::default();
        let question = Question {
            messages: &messages,
            params: SamplingParams {
                temperature: self.sampling.temperature.unwrap_or(defaults.temperature),
                top_p: self.sampling.top_p.unwrap_or(defaults.top_p),
                max_tokens: PROBE_TOKENS,
            },
            seed: None,
            time_limit: None,
        };
        self.ask(question, cancel).await.map(Some)
    }

    async fn token_counter(&self) -> Result<TokenCounter, ModelError> {
        let opening = async {
            let opened = LocalTokenizer::open(&self.load.path).await;
            opened.map(Arc::new).map_err(|error| self.not_loaded(&error))
        };
        let tokenizer = self.tokenizer.get_or_try_init(|| opening).await?;
        Ok(TokenCounter::Local(Arc::clone(tokenizer)))
    }

    async fn memory(&self) -> Result<Option<MemoryNeeds>, ModelError> {
        let needs = match self.model.get() {
            Some(model) => MemoryNeeds {
                weight_bytes: model.facts().weight_bytes,
                cache_bytes: Some(model.facts().cache_bytes),
                free_bytes: None,
            },
            None => needs(&self.load).await.map_err(|error| self.not_loaded(&error))?,
        };
        Ok(Some(needs))
    }
}
