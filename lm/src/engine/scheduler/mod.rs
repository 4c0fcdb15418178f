//! Decides what the next step computes, and keeps account of what each sample has.
//!
//! In each step all running samples decode one token; what is left of the step's tokens goes to prompts that are begun, then to waiting
//! requests, as long as their blocks are there. When a sample finds no block, the youngest one gives all of its blocks back and is
//! computed again later; its tokens stay as they are.

mod admit;
mod advance;
mod check;
mod plan;
mod sample;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

pub(super) use self::plan::Part;
pub(super) use self::sample::Submission;
use self::sample::{Group, GroupKey, Sample, SampleKey};
use super::blocks::Ledger;
use super::event::{End, EndReason, Event, Usage};
use super::options::EngineOptions;
use super::sampler::Sampler;
use super::shared::Shared;
use super::stats::{Counters, Stats};
use crate::error::LmError;
use crate::model::Cache;

/// Requests, samples, the cache and its books.
#[derive(Debug)]
pub(super) struct Scheduler {
    block_tokens: usize,
    step_tokens: usize,
    max_running: usize,
    shares_prefixes: bool,
    vocab_size: usize,
    cache: Box<dyn Cache>,
    ledger: Ledger,
    groups: BTreeMap<GroupKey, Group>,
    samples: BTreeMap<SampleKey, Sample>,
    running: BTreeSet<SampleKey>,
    waiting: BTreeSet<SampleKey>,
    arrivals: u64,
    pub(super) counters: Counters,
    shared: Arc<Shared>,
}

impl Scheduler {
    /// A scheduler without requests over an empty cache.
    pub(super) fn new(options: &EngineOptions, vocab_size: usize, cache: Box<dyn Cache>, shared: Arc<Shared>) -> Self {
        let ledger = Ledger::new(cache.size());
        // A recurrent state that is never kept cannot be found again, so neither can the blocks before it.
        let shares_prefixes = options.prefix_sharing && (!ledger.is_recurrent() || options.state_snapshots > 0);
        Self {
            block_tokens: options.block_tokens,
            step_tokens: options.step_tokens,
            max_running: options.max_running,
            shares_prefixes,
            vocab_size,
            cache,
            ledger,
            groups: BTreeMap::new(),
            samples: BTreeMap::new(),
            running: BTreeSet::new(),
            waiting: BTreeSet::new(),
            arrivals: 0,
            counters: Counters::default(),
            shared,
        }
    }

    /// The cache that the model writes into.
    pub(super) fn cache(&mut self) -> &mut dyn Cache {
        self.cache.as_mut()
    }

    /// Whether there are no requests.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Whether requests have begun and not ended.
    pub(super) fn has_begun(&self) -> bool {
        self.groups.values().any(|group| group.has_begun)
    }

    /// Takes a request. Its first sample waits for a place, the others for the first one's prompt.
    pub(super) fn add(&mut self, submission: Submission) {
        let Submission {
            request,
            texts,
            seed,
            events,
            canceller,
        } = submission;
        self.arrivals += 1;
        let group = GroupKey {
            priority: Reverse(request.priority),
            arrival: self.arrivals,
        };
        let penalised: HashSet<i64> = if request.sampling.has_penalties() {
            request.prompt.iter().copied().collect()
        } else {
            HashSet::new()
        };
        let penalised = Arc::new(penalised);
        let samples = request.samples as u32;
        for (index, text) in (0..samples).zip(texts) {
            let sample = Sample {
                tokens: if index == 0 { request.prompt.clone() } else { Vec::new() },
                computed: 0,
                blocks: Vec::new(),
                slot: None,
                prefixes: Vec::new(),
                expected: 0..0,
                snapshots_at: Vec::new(),
                sampler: Sampler::new(&request.sampling, request.logprobs, seed, index, &penalised),
                text,
                usage: Usage {
                    prompt_tokens: request.prompt.len(),
                    ..Usage::default()
                },
            };
            self.samples.insert(SampleKey { group, index }, sample);
        }
        self.waiting.insert(SampleKey { group, index: 0 });
        self.groups.insert(
            group,
            Group {
                request,
                events,
                canceller,
                open: samples as usize,
                followers: samples - 1,
                has_begun: false,
            },
        );
    }

    /// Ends the requests that were cancelled.
    pub(super) fn end_cancelled(&mut self) {
        let cancelled: Vec<GroupKey> = self
            .groups
            .iter()
            .filter(|(_, group)| group.is_cancelled())
            .map(|(key, _)| *key)
            .collect();
        for group in cancelled {
            self.end_group(group, &EndReason::Cancelled);
        }
    }

    /// Ends all requests.
    pub(super) fn end_all(&mut self, error: LmError) {
        let reason = EndReason::Error(Arc::new(error));
        while let Some(group) = self.groups.keys().next().copied() {
            self.end_group(group, &reason);
        }
    }

    /// Ends the request that is first in order, which finds no place although nothing runs.
    pub(super) fn end_stuck(&mut self) {
        if let Some(key) = self.waiting.first().copied() {
            let places = self.ledger.blocks();
            let error = LmError::Request(format!(
                "the request finds no place: {} of {} blocks of the cache are free or kept, and nothing runs",
                places.free + places.kept,
                places.total
            ));
            self.end_group(key.group, &EndReason::Error(Arc::new(error)));
        }
    }

    /// Forgets what was computed for prompts, because the weights change.
    pub(super) fn forget_prefixes(&mut self) {
        self.ledger.forget_prefixes();
    }

    /// A look at what there is.
    pub(super) fn stats(&self) -> Stats {
        let begun = |key: &&SampleKey| self.groups.get(&key.group).is_some_and(|group| group.has_begun);
        Stats {
            blocks: self.ledger.blocks(),
            states: self.ledger.slots(),
            running: self.running.len(),
            paused: self.waiting.iter().filter(begun).count(),
            waiting: self.shared.waiting(),
            counters: self.counters,
        }
    }

    fn end_group(&mut self, group: GroupKey, reason: &EndReason) {
        let keys: Vec<SampleKey> = self.samples.range(group.samples()).map(|(key, _)| *key).collect();
        for key in keys {
            self.end(key, reason.clone());
        }
    }

    fn end(&mut self, key: SampleKey, reason: EndReason) {
        self.vacate(key);
        self.running.remove(&key);
        self.waiting.remove(&key);
        let (Some(mut sample), Some(group)) = (self.samples.remove(&key), self.groups.get_mut(&key.group)) else {
            return;
        };
        let (text, reason) = match (sample.text.finish(), reason) {
            // What comes after a stop string is not of the answer.
            (_, reason @ EndReason::StopString(_)) => (String::new(), reason),
            (Ok(text), reason) => (text, reason),
            (Err(_), reason @ EndReason::Error(_)) => (String::new(), reason),
            (Err(error), _) => (String::new(), EndReason::Error(Arc::new(error))),
        };
        let end = End {
            sample: key.index as usize,
            reason,
            text,
            usage: sample.usage,
        };
        // Nobody may listen any more.
        let _ = group.events.unbounded_send(Event::End(end));
        group.open -= 1;
        if group.open == 0 {
            if !group.has_begun {
                self.shared.leave_queue();
            }
            self.groups.remove(&key.group);
        }
    }

    /// Puts a running sample back to those that wait.
    fn preempt(&mut self, key: SampleKey) {
        self.vacate(key);
        if self.running.remove(&key) {
            self.waiting.insert(key);
            self.counters.preemptions += 1;
            if let Some(sample) = self.samples.get_mut(&key) {
                sample.usage.preemptions += 1;
            }
        }
    }

    /// Takes all blocks and the slot from a sample.
    fn vacate(&mut self, key: SampleKey) {
        let Some(sample) = self.samples.get_mut(&key) else {
            return;
        };
        self.ledger.release(&sample.blocks);
        sample.blocks.clear();
        if let Some(slot) = sample.slot.take() {
            self.ledger.release_slot(slot);
        }
        self.ledger.settle(&sample.prefixes[sample.expected.clone()]);
        sample.expected = 0..0;
        sample.snapshots_at.clear();
        sample.computed = 0;
    }
}
