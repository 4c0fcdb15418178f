//! What an engine is doing and has done.

use std::time::Duration;

/// Places of a cache: `free + held + kept = total`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Places {
    /// All.
    pub total: usize,
    /// Empty.
    pub free: usize,
    /// In use by samples.
    pub held: usize,
    /// In use by nobody, kept for later requests until they are needed.
    pub kept: usize,
}

impl Places {
    pub(super) fn new(total: usize, free: usize, kept: usize) -> Self {
        Self {
            total,
            free,
            held: total - free - kept,
            kept,
        }
    }
}

/// Counts since the engine started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Passes through the model that succeeded.
    pub steps: u64,
    /// Passes through the model that failed.
    pub failed_steps: u64,
    /// Tokens that went through the model: of prompts, of answers, and those that were computed again.
    pub computed_tokens: u64,
    /// Tokens that samples found in the cache when they began or went on.
    pub reused_tokens: u64,
    /// Tokens that were drawn.
    pub generated_tokens: u64,
    /// Requests that began.
    pub begun: u64,
    /// Requests that found a part of their prompt in the cache.
    pub prefix_hits: u64,
    /// How often a sample lost its blocks, to older samples or because a step failed, and had to be computed again.
    pub preemptions: u64,
    /// Blocks that were copied because samples of a prompt went apart within them.
    pub copied_blocks: u64,
    /// Time spent on steps.
    pub busy: Duration,
}

/// A look at an engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Blocks of keys and values.
    pub blocks: Places,
    /// Slots of recurrent state; what is kept are snapshots.
    pub states: Places,
    /// Samples that run.
    pub running: usize,
    /// Samples of begun requests that wait to go on.
    pub paused: usize,
    /// Requests that wait for their beginning.
    pub waiting: usize,
    /// Counts since the engine started.
    pub counters: Counters,
}

impl Stats {
    /// Tokens drawn in a second of work.
    pub fn generated_per_second(&self) -> f64 {
        rate(self.counters.generated_tokens, self.counters.busy)
    }

    /// Tokens through the model in a second of work.
    pub fn computed_per_second(&self) -> f64 {
        rate(self.counters.computed_tokens, self.counters.busy)
    }
}

fn rate(tokens: u64, time: Duration) -> f64 {
    if time.is_zero() {
        0.0
    } else {
        tokens as f64 / time.as_secs_f64()
    }
}
