//! What the next step computes.

use std::sync::Arc;

use super::super::event::EndReason;
use super::Scheduler;
use super::sample::{GroupKey, SampleKey};
use crate::error::LmError;
use crate::model::{LogitRows, Step, StepSequence};

/// The part of one sample in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Part {
    pub(super) key: SampleKey,
    pub(super) start: usize,
    pub(super) len: usize,
    /// Whether all known tokens are then in the cache, so that the next one can be drawn.
    pub(super) draws: bool,
}

impl Part {
    /// Whether its last row of logits is wanted.
    pub(in crate::engine) fn draws(&self) -> bool {
        self.draws
    }
}

impl Scheduler {
    /// Plans a step; an empty one when there is nothing to do. With `only_begun`, no further request begins.
    pub(in crate::engine) fn plan(&mut self, only_begun: bool) -> Vec<Part> {
        let preemptions = self.counters.preemptions;
        let mut budget = self.step_tokens;
        let mut parts = Vec::new();
        let running: Vec<SampleKey> = self.running.iter().copied().collect();
        let (decoding, prefilling): (Vec<SampleKey>, Vec<SampleKey>) = running
            .into_iter()
            .partition(|key| self.samples.get(key).is_some_and(|sample| sample.remaining() == 1));
        for key in decoding {
            // It may have lost its place to an older one just now.
            if self.running.contains(&key) && self.make_room(key) {
                parts.extend(self.part(key, 1));
                budget -= 1;
            }
        }
        for key in prefilling {
            if self.running.contains(&key) {
                self.add_chunk(key, &mut budget, &mut parts);
            }
        }
        // Whoever lost its place would take it right back.
        if self.counters.preemptions == preemptions {
            self.admit(only_begun, &mut budget, &mut parts);
        }
        parts.retain(|part| self.running.contains(&part.key));
        parts
    }

    /// Plans as much of a sample's tokens as the step has room for.
    pub(super) fn add_chunk(&self, key: SampleKey, budget: &mut usize, parts: &mut Vec<Part>) {
        if let Some(part) = self.part(key, *budget).filter(|part| part.len > 0) {
            *budget -= part.len;
            parts.push(part);
        }
    }

    fn part(&self, key: SampleKey, most: usize) -> Option<Part> {
        let sample = self.samples.get(&key)?;
        let start = sample.computed;
        let mut len = sample.remaining().min(most);
        if let Some(border) = sample.snapshots_at.iter().filter(|border| **border > start).min() {
            len = len.min(border - start);
        }
        Some(Part {
            key,
            start,
            len,
            draws: len == sample.remaining(),
        })
    }

    /// Sees to it that the next token of a sample can be written. The youngest samples give way, at last the sample itself: then false.
    fn make_room(&mut self, key: SampleKey) -> bool {
        loop {
            let Some(sample) = self.samples.get_mut(&key) else {
                return false;
            };
            let index = sample.computed / self.block_tokens;
            let current = sample.blocks.get(index).copied();
            if current.is_some_and(|block| !self.ledger.is_shared(block)) {
                return true;
            }
            let before = index
                .checked_sub(1)
                .and_then(|before| sample.blocks.get(before).copied());
            if let Some(block) = self.ledger.take(before, 1) {
                let Some(shared) = current else {
                    sample.blocks.push(block);
                    return true;
                };
                sample.blocks[index] = block;
                self.ledger.release(&[shared]);
                self.counters.copied_blocks += 1;
                return match self.cache.copy_block(shared, block) {
                    Ok(()) => true,
                    Err(error) => {
                        self.end_group(key.group, &EndReason::Error(Arc::new(error)));
                        false
                    }
                };
            }
            let Some(youngest) = self.running.last().copied() else {
                return false;
            };
            self.preempt(youngest);
            if youngest == key {
                return false;
            }
        }
    }

    /// The step of a plan, as the model reads it.
    pub(in crate::engine) fn step(&self, parts: &[Part]) -> Step {
        let mut step = Step::default();
        for part in parts {
            let Some(sample) = self.samples.get(&part.key) else {
                continue;
            };
            let end = part.start + part.len;
            step.tokens.extend_from_slice(&sample.tokens[part.start..end]);
            step.sequences.push(StepSequence {
                start: part.start,
                len: part.len,
                blocks: sample.blocks[..end.div_ceil(self.block_tokens)].to_vec(),
                state: sample.slot.unwrap_or(0),
                logits: if part.draws { LogitRows::Last } else { LogitRows::None },
            });
        }
        step
    }

    /// Ends the newest request of a step that failed. The rest is to be tried again.
    pub(in crate::engine) fn fail_newest(&mut self, parts: Vec<Part>, error: LmError) -> Vec<Part> {
        let newest: Option<GroupKey> = parts
            .iter()
            .map(|part| part.key.group)
            .max_by_key(|group| group.arrival);
        let Some(newest) = newest else {
            return Vec::new();
        };
        self.end_group(newest, &EndReason::Error(Arc::new(error)));
        let rest: Vec<Part> = parts.into_iter().filter(|part| part.key.group != newest).collect();
        if self.ledger.is_recurrent() {
            // Some layers may have moved their states on already, so these are of no use. Keys and values are just written again.
            for part in &rest {
                self.preempt(part.key);
            }
            return Vec::new();
        }
        rest
    }
}
