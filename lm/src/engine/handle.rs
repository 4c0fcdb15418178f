//! The engine as its callers see it.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use futures::channel::{mpsc, oneshot};
use parking_lot::Mutex;

use super::generation::{Canceller, Generation};
use super::options::EngineOptions;
use super::reply::{Reply, block_on};
use super::request::Request;
use super::scheduler::{Scheduler, Submission};
use super::shared::Shared;
use super::stats::Stats;
use super::text::{Detokenizer, SampleText};
use super::worker::{Command, Worker};
use crate::error::{LmError, Result};
use crate::model::{CacheSize, CausalLm, ModelSpec};
use crate::weights::Weights;

/// Runs many requests through one model at once, on a thread of its own. Callers may be threads or tasks of any async runtime. Dropping it
/// shuts it down.
#[derive(Debug)]
pub struct Engine {
    spec: ModelSpec,
    options: EngineOptions,
    cache_size: CacheSize,
    text: Arc<dyn Detokenizer>,
    shared: Arc<Shared>,
    commands: Sender<Command>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    /// Starts an engine.
    ///
    /// # Errors
    /// When an option cannot be, or there is too little memory for the cache.
    pub fn start(model: Box<dyn CausalLm>, text: Arc<dyn Detokenizer>, options: EngineOptions) -> Result<Self> {
        let spec = model.spec().clone();
        let vocab_size = usize::try_from(spec.vocab_size)
            .ok()
            .filter(|size| *size > 0 && u32::try_from(*size).is_ok())
            .ok_or_else(|| LmError::Unsupported(format!("a vocabulary of {} tokens", spec.vocab_size)))?;
        let cache_size = options.cache_size(&spec)?;
        let cache = tch::no_grad(|| model.new_cache(cache_size))?;
        let shared = Arc::new(Shared::default());
        let scheduler = Scheduler::new(&options, vocab_size, cache, Arc::clone(&shared));
        *shared.stats.lock() = scheduler.stats();
        let (commands, receiver) = channel();
        let worker = Worker::new(model, scheduler, receiver, Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("clade-lm".to_owned())
            .spawn(move || worker.run())
            .map_err(|error| LmError::Stopped(format!("the thread of the engine cannot be started: {error}")))?;
        Ok(Self {
            spec,
            options,
            cache_size,
            text,
            shared,
            commands,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// The model.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// Size of the cache.
    pub fn cache_size(&self) -> CacheSize {
        self.cache_size
    }

    /// Most tokens that a prompt and its answer may have together.
    pub fn longest(&self) -> usize {
        self.options
            .positions(&self.spec)
            .min(self.cache_size.blocks * self.cache_size.block_tokens + 1)
    }

    /// Takes a request. It begins when there is a place for it.
    ///
    /// # Errors
    /// [`LmError::Request`] when it can never be served, [`LmError::Tokenizer`] when its prompt cannot be read, [`LmError::Busy`] when too
    /// many wait already, [`LmError::MixedWeights`] after a replacement of weights that failed in the middle, [`LmError::Stopped`] when the
    /// engine runs no more.
    pub fn submit(&self, request: Request) -> Result<Generation> {
        if self.shared.has_ended() {
            return Err(self.shared.stopped());
        }
        if let Some(mixed) = self.shared.mixed() {
            return Err(mixed);
        }
        request.check(self.spec.vocab_size)?;
        self.check_length(&request)?;
        let texts = (0..request.samples)
            .map(|_| {
                Ok(SampleText::new(
                    self.text.decoder(&request.prompt)?,
                    &request.stop_strings,
                ))
            })
            .collect::<Result<Vec<_>>>()?;
        if !self.shared.enter_queue(self.options.max_waiting) {
            return Err(LmError::Busy(format!(
                "{} requests wait already, which is the most that max_waiting allows; try again later",
                self.options.max_waiting
            )));
        }
        let seed = request.sampling.seed.unwrap_or_else(rand::random);
        let samples = request.samples;
        let (events, receiver) = mpsc::unbounded();
        let canceller = Canceller::default();
        let submission = Box::new(Submission {
            request,
            texts,
            seed,
            events,
            canceller: canceller.clone(),
        });
        if self.commands.send(Command::Submit(submission)).is_err() {
            self.shared.leave_queue();
            return Err(self.shared.stopped());
        }
        Ok(Generation::new(
            receiver,
            canceller,
            samples,
            seed,
            Arc::clone(&self.shared),
        ))
    }

    fn check_length(&self, request: &Request) -> Result<()> {
        let (prompt, answer) = (request.prompt.len(), request.max_tokens);
        let positions = self.options.positions(&self.spec);
        if prompt.saturating_add(answer) > positions {
            return Err(LmError::Request(format!(
                "a prompt of {prompt} tokens and an answer of up to {answer} are more than the {positions} positions of the model; \
                 ask for at most {} tokens",
                positions.saturating_sub(prompt)
            )));
        }
        let CacheSize {
            block_tokens, blocks, ..
        } = self.cache_size;
        let needed = request.longest().div_ceil(block_tokens);
        if needed > blocks {
            return Err(LmError::Request(format!(
                "a prompt of {prompt} tokens and an answer of up to {answer} need {needed} blocks of {block_tokens} tokens, the cache has \
                 {blocks}; give the cache more memory, or ask for less"
            )));
        }
        Ok(())
    }

    /// What the engine was doing after the last step.
    pub fn stats(&self) -> Stats {
        let mut stats = *self.shared.stats.lock();
        stats.waiting = self.shared.waiting();
        stats
    }

    /// Counts all blocks and slots and compares them with what samples hold; [`Self::stats`] is then up to date.
    ///
    /// # Errors
    /// What does not agree, or that the engine runs no more.
    pub fn check(&self) -> Result<()> {
        let (sender, receiver) = oneshot::channel();
        self.commands
            .send(Command::Check(sender))
            .map_err(|_| self.shared.stopped())?;
        block_on(receiver).unwrap_or_else(|_| Err(self.shared.stopped()))
    }

    /// Replaces the weights in place. Requests that have begun end with the old ones first, those that have not begun wait and get the new
    /// ones. What is kept of earlier prompts is forgotten. The reply fails when the new weights do not fit; the old ones are then still there.
    /// It is [`LmError::MixedWeights`] when some were read and the next could not be: all requests then fail with it until a replacement
    /// succeeds.
    ///
    /// # Errors
    /// When the engine runs no more.
    pub fn replace_weights(&self, weights: Arc<dyn Weights>) -> Result<Reply> {
        let (sender, receiver) = oneshot::channel();
        self.commands
            .send(Command::ReplaceWeights(weights, sender))
            .map_err(|_| self.shared.stopped())?;
        Ok(Reply::new(receiver, Arc::clone(&self.shared)))
    }

    /// Ends all requests with an error after the current step, and waits for the thread. Model and cache are then freed.
    pub fn shutdown(&self) {
        self.shared.close();
        // A thread that is gone needs no waking.
        let _ = self.commands.send(Command::Wake);
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shutdown();
    }
}
