//! The thread that owns the model and its cache.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Instant;

use futures::channel::oneshot;
use tch::{Device, Kind};

use super::replacement::{Replacement, replace};
use super::scheduler::{Part, Scheduler, Submission};
use super::shared::Shared;
use crate::error::{LmError, Result};
use crate::model::CausalLm;
use crate::weights::Weights;

/// What the thread is told to do.
#[derive(Debug)]
pub(super) enum Command {
    /// Serve a request.
    Submit(Box<Submission>),
    /// Replace the weights once nothing runs.
    ReplaceWeights(Arc<dyn Weights>, oneshot::Sender<Result<()>>),
    /// Check the books.
    Check(oneshot::Sender<Result<()>>),
    /// Look whether it is time to end.
    Wake,
}

/// The thread's state.
#[derive(Debug)]
pub(super) struct Worker {
    model: Box<dyn CausalLm>,
    scheduler: Scheduler,
    commands: Receiver<Command>,
    /// Weights that wait for running requests.
    replacements: VecDeque<Replacement>,
    shared: Arc<Shared>,
    logits: Vec<f32>,
    /// Turns in a row without anything to compute although requests wait.
    empty_turns: u32,
}

impl Worker {
    pub(super) fn new(
        model: Box<dyn CausalLm>,
        scheduler: Scheduler,
        commands: Receiver<Command>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            model,
            scheduler,
            commands,
            replacements: VecDeque::new(),
            shared,
            logits: Vec::new(),
            empty_turns: 0,
        }
    }

    /// Works until it is told to end, or panics. Requests that are still there then see their channel closed, and read the reason from what
    /// is shared.
    pub(super) fn run(mut self) {
        let _no_grad = tch::no_grad_guard();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            while self.turn() {}
            self.shared.end("the engine was shut down".to_owned());
            self.scheduler.end_all(self.shared.stopped());
            self.publish();
        }));
        if let Err(panic) = outcome {
            let reason = format!("the engine failed and runs no more: {}", panic_message(panic.as_ref()));
            tracing::error!("{reason}");
            self.shared.end(reason);
        }
    }

    fn publish(&self) {
        *self.shared.stats.lock() = self.scheduler.stats();
    }

    /// One step, and what comes before it. False when it is time to end.
    fn turn(&mut self) -> bool {
        if self.scheduler.is_empty() && self.replacements.is_empty() {
            match self.commands.recv() {
                Ok(command) => self.obey(command),
                Err(_) => return false,
            }
        }
        loop {
            match self.commands.try_recv() {
                Ok(command) => self.obey(command),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        if self.shared.is_closing() {
            return false;
        }
        self.scheduler.end_cancelled();
        while !self.replacements.is_empty() && !self.scheduler.has_begun() {
            self.replace_weights();
        }
        if let Some(error) = self.shared.mixed() {
            self.scheduler.end_all(error);
        }
        if !self.scheduler.is_empty() {
            let start = Instant::now();
            let parts = self.scheduler.plan(!self.replacements.is_empty());
            self.empty_turns = if parts.is_empty() { self.empty_turns + 1 } else { 0 };
            if self.empty_turns > 1 {
                self.scheduler.end_stuck();
            }
            self.compute(parts);
            self.scheduler.counters.busy += start.elapsed();
        }
        self.publish();
        true
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Submit(submission) => self.scheduler.add(*submission),
            Command::ReplaceWeights(weights, reply) => self.replacements.push_back(Replacement { weights, reply }),
            Command::Check(reply) => {
                self.publish();
                // Nobody may wait for it any more; the same holds for the other reply.
                let _ = reply.send(self.scheduler.check());
            }
            Command::Wake => {}
        }
    }

    fn replace_weights(&mut self) {
        if let Some(Replacement { weights, reply }) = self.replacements.pop_front() {
            self.scheduler.forget_prefixes();
            let outcome = replace(self.model.as_mut(), weights.as_ref());
            match &outcome {
                Ok(()) => self.shared.set_mixed(None),
                Err(LmError::MixedWeights(why)) => self.shared.set_mixed(Some(why.clone())),
                // The old ones are there as before.
                Err(_) => {}
            }
            let _ = reply.send(outcome);
        }
    }

    /// Computes a planned step. When it fails, its newest request ends and the rest is tried again.
    fn compute(&mut self, mut parts: Vec<Part>) {
        while !parts.is_empty() {
            match self.forward(&parts) {
                Ok(()) => return self.scheduler.advance(&parts, &self.logits),
                Err(error) => {
                    tracing::warn!(%error, "a step failed; its newest request ends with the error");
                    self.scheduler.counters.failed_steps += 1;
                    parts = self.scheduler.fail_newest(parts, error);
                }
            }
        }
    }

    /// Runs the model and brings its logits here.
    fn forward(&mut self, parts: &[Part]) -> Result<()> {
        let step = self.scheduler.step(parts);
        let logits = self.model.forward(&step, self.scheduler.cache())?;
        let rows = parts.iter().filter(|part| part.draws()).count();
        let vocab_size = self.model.spec().vocab_size;
        self.logits.clear();
        if rows == 0 {
            return Ok(());
        }
        if logits.size() != [rows as i64, vocab_size] {
            return Err(LmError::Model(format!(
                "it gave logits of the shape {:?} where [{rows}, {vocab_size}] was asked for",
                logits.size()
            )));
        }
        let logits = logits
            .f_to_kind(Kind::Float)?
            .f_to_device(Device::Cpu)?
            .f_contiguous()?;
        self.logits.resize(logits.numel(), 0.0);
        let numel = self.logits.len();
        logits.f_copy_data(&mut self.logits, numel)?;
        Ok(())
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}
