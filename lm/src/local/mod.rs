//! A model that was loaded: its weights with an engine round them, its tokenizer, and its way of writing conversations.

mod decode;
mod needs;
mod place;
mod progress;
mod prompt;
mod sampling;

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use clade_lm_api::messages::{Activity, Generate, Load, Loaded, Progress, Prompt, Sampling, Usage};
use tch::Device;

use self::decode::Decoding;
pub use self::needs::needs;
use self::place::{device_name, kind_name, place_of};
use crate::arch;
use crate::engine::{self, CacheMemory, Engine, EngineOptions, Generation};
use crate::error::{LmError, Result};
use crate::load::{self, memory};
use crate::text::{ChatTemplate, Tokenizer};
use crate::weights::Observed;

/// Share of the memory that is free after loading which the cache gets where nobody says.
const CACHE_SHARE: f64 = 1.0 / 3.0;

/// A loaded model.
#[derive(Debug)]
pub struct LocalModel {
    engine: Engine,
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    /// How its authors sample.
    advice: Sampling,
    stop_tokens: Vec<i64>,
    facts: Loaded,
}

impl LocalModel {
    /// Loads a model and starts its engine. `progress` is told of every tensor.
    ///
    /// # Errors
    /// When an option or a file is wrong, or there is too little memory.
    pub fn load(request: &Load, progress: impl Fn(Progress) + Sync) -> Result<Self> {
        let begin = Instant::now();
        let checkpoint = load::open(&request.path)?;
        let (device, kind) = place_of(request, checkpoint.weights().as_ref())?;
        if let Some(threads) = request.threads {
            tch::set_num_threads(i32::try_from(threads).unwrap_or(i32::MAX));
        }
        checkpoint.check_memory(kind, device)?;
        let tokenizer = checkpoint.tokenizer()?;
        let template = checkpoint.chat_template(None)?;
        let stop_tokens = checkpoint.stop_tokens(&tokenizer)?;
        let weights = checkpoint.weights().as_ref();
        let tell = progress::progress(weights, kind, &progress);
        let watched = Observed::new(weights, &tell);
        // OpenMP keeps threads for each thread that computed something, and lets all of them sleep between two products once there are more
        // than cores. Those of loading end with this thread.
        let model = thread::scope(|scope| {
            let build = || arch::build(checkpoint.config(), &watched, kind, device);
            scope.spawn(build).join()
        });
        let model = model.map_err(|_| LmError::Model("reading it panicked".to_owned()))??;
        let spec = model.spec().clone();
        let memory = match request.cache_bytes {
            Some(bytes) => CacheMemory::Bytes(bytes),
            None => CacheMemory::Fraction {
                fraction: CACHE_SHARE,
                free: memory::available(device)?,
            },
        };
        let options = EngineOptions {
            max_positions: request.context_tokens,
            ..EngineOptions::new(memory)
        };
        let engine = Engine::start(model, Arc::new(Decoding::new(tokenizer.clone())), options)?;
        let cache = engine.cache_size();
        let cache_tokens = (cache.blocks * cache.block_tokens) as u64;
        let facts = Loaded {
            model: 0,
            model_type: spec.model_type.clone(),
            parameters: spec.parameters,
            dtype: kind_name(kind).to_owned(),
            device: device_name(device),
            weight_bytes: spec.weight_bytes,
            cache_bytes: cache_tokens * spec.kv_bytes_per_token + cache.states as u64 * spec.state_bytes_per_sequence,
            cache_tokens,
            context_tokens: request.context_tokens.unwrap_or(spec.max_positions) as u64,
            has_chat_template: template.is_some(),
            seconds: begin.elapsed().as_secs_f64(),
        };
        Ok(Self {
            engine,
            tokenizer,
            template,
            advice: sampling::advice(checkpoint.generation_config()),
            stop_tokens: stop_tokens.into_iter().map(i64::from).collect(),
            facts,
        })
    }

    /// What is known of it; its handle is for the caller to set.
    pub fn facts(&self) -> &Loaded {
        &self.facts
    }

    /// How a token reads.
    ///
    /// # Errors
    /// When the tokenizer fails.
    pub fn written(&self, id: i64) -> Result<String> {
        self.tokenizer.decode(&[decode::token(id)?], true)
    }

    /// Tokens of a prompt.
    ///
    /// # Errors
    /// When a conversation cannot be written by the model's template, or there is none.
    pub fn tokens(&self, prompt: &Prompt) -> Result<Vec<i64>> {
        prompt::tokens(&self.tokenizer, self.template.as_ref(), prompt)
    }

    /// Begins a request. Also gives the number of its prompt's tokens.
    ///
    /// # Errors
    /// When it cannot be served.
    pub fn generate(&self, request: &Generate) -> Result<(Generation, usize)> {
        let prompt = self.tokens(&request.prompt)?;
        let prompt_tokens = prompt.len();
        // What fits: the context of the model, and for one answer alone the cache.
        let fits = self.facts.context_tokens.min(self.facts.cache_tokens);
        let fits = usize::try_from(fits).unwrap_or(usize::MAX);
        let left = fits.saturating_sub(prompt_tokens);
        if left == 0 {
            return Err(LmError::TooLong(format!(
                "the prompt has {prompt_tokens} tokens, which leaves no room for an answer: prompt and answer together may have \
                 {} tokens by the context of the model and {} by its cache",
                self.facts.context_tokens, self.facts.cache_tokens
            )));
        }
        let generation = self.engine.submit(engine::Request {
            samples: request.samples,
            // An answer ends where the context is full, whatever it was allowed.
            max_tokens: request.max_tokens.unwrap_or(left).min(left),
            sampling: request.sampling.clone().or(self.advice.clone()),
            stop_tokens: self.stop_tokens.clone(),
            stop_strings: request.stop.clone(),
            logprobs: request.logprobs,
            priority: request.priority,
            prompt,
        })?;
        Ok((generation, prompt_tokens))
    }

    /// What it is doing.
    pub fn activity(&self) -> Activity {
        let stats = self.engine.stats();
        Activity {
            running: stats.running + stats.paused,
            waiting: stats.waiting,
            generated_tokens: stats.counters.generated_tokens,
            computed_tokens: stats.counters.computed_tokens,
            reused_tokens: stats.counters.reused_tokens,
            generated_per_second: stats.generated_per_second(),
            cache_in_use: stats.blocks.held as f64 / stats.blocks.total.max(1) as f64,
        }
    }

    /// Takes the weights of another checkpoint of the same shape, once what runs has ended.
    ///
    /// # Errors
    /// When they cannot be opened or are of another shape; the old ones stay. When reading fails in the middle; nothing is generated then
    /// until a replacement succeeds.
    pub fn replace(&self, path: &Path) -> Result<()> {
        let checkpoint = load::open(path)?;
        self.engine.replace_weights(checkpoint.weights().clone())?.wait()
    }
}

/// Whether a GPU can be used.
pub fn has_gpu() -> bool {
    tch::Cuda::is_available()
}

/// What an answer used, as it is told.
pub fn usage(usage: engine::Usage) -> Usage {
    Usage {
        prompt_tokens: usage.prompt_tokens,
        cached_tokens: usage.cached_tokens,
        completion_tokens: usage.completion_tokens,
    }
}

impl Drop for LocalModel {
    fn drop(&mut self) {
        self.engine.shutdown();
    }
}

/// The usual device where nobody says.
fn usual_device() -> Device {
    Device::cuda_if_available()
}
