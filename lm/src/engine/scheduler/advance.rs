//! What follows from a step that was computed: tokens, ends, and blocks that others may use.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::super::blocks::extend_prefixes;
use super::super::event::{EndReason, Event, Token};
use super::super::sampler::{Drawn, Sampler, Scratch};
use super::super::text::Released;
use super::sample::SampleKey;
use super::{Part, Scheduler};
use crate::error::Result;

thread_local! {
    /// Space of the threads that draw.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Scheduler {
    /// Takes the logits of a step: a row for each part that draws.
    pub(in crate::engine) fn advance(&mut self, parts: &[Part], logits: &[f32]) {
        for part in parts {
            self.settle(part);
        }
        let mut rows = BTreeMap::new();
        let mut leaders = Vec::new();
        for (part, row) in parts
            .iter()
            .filter(|part| part.draws)
            .zip(logits.chunks(self.vocab_size))
        {
            rows.insert(part.key, row);
            // All samples of a prompt draw from its last row.
            let followers = self.groups.get(&part.key.group).map_or(0, |group| group.followers);
            if followers > 0 {
                leaders.push(part.key);
                rows.extend((1..=followers).map(|index| (SampleKey { index, ..part.key }, row)));
            }
        }
        for leader in &leaders {
            self.give_prompt(*leader);
        }
        let mut ends = Vec::new();
        for (key, drawn) in self.draw(&rows) {
            match drawn {
                Ok(drawn) => ends.extend(self.accept(key, drawn).map(|reason| (key, reason))),
                Err(error) => ends.push((key, EndReason::Error(Arc::new(error)))),
            }
        }
        // Those that ended need no place; the first one gives its blocks to the others before it ends.
        for leader in leaders {
            self.start_followers(leader, &ends);
        }
        for (key, reason) in ends {
            self.end(key, reason);
        }
        self.counters.steps += 1;
    }

    /// A part is in the cache now.
    fn settle(&mut self, part: &Part) {
        let Some(sample) = self.samples.get_mut(&part.key) else {
            return;
        };
        self.counters.computed_tokens += part.len as u64;
        let full = sample.computed / self.block_tokens;
        sample.computed += part.len;
        if !self.shares_prefixes {
            return;
        }
        let now_full = sample.computed / self.block_tokens;
        extend_prefixes(&mut sample.prefixes, &sample.tokens, self.block_tokens);
        for block in full..now_full {
            self.ledger.publish(sample.blocks[block], sample.prefixes[block]);
        }
        let settled = sample.expected.start..now_full.clamp(sample.expected.start, sample.expected.end);
        sample.expected.start = settled.end;
        self.ledger.settle(&sample.prefixes[settled]);
        if let (Some(slot), true) = (sample.slot, sample.snapshots_at.contains(&sample.computed))
            && let Some(prefix) = now_full.checked_sub(1).map(|last| sample.prefixes[last])
            && let Some(kept) = self.ledger.keep_snapshot(prefix)
            && let Err(error) = self.cache.copy_state(slot, kept)
        {
            // Nothing is wrong with the sample itself; later prompts just compute more.
            tracing::warn!(%error, "a recurrent state cannot be kept");
            self.ledger.forget_snapshot(&prefix);
        }
    }

    /// Gives the prompt to the followers of a sample that has computed it.
    fn give_prompt(&mut self, leader: SampleKey) {
        let Some(first) = self.samples.get(&leader) else {
            return;
        };
        let (tokens, prefixes) = (first.tokens.clone(), first.prefixes.clone());
        for (_, sample) in self.samples.range_mut(leader.group.samples()).skip(1) {
            sample.tokens.clone_from(&tokens);
            sample.prefixes.clone_from(&prefixes);
            sample.usage.cached_tokens = tokens.len();
        }
    }

    fn draw(&mut self, rows: &BTreeMap<SampleKey, &[f32]>) -> Vec<(SampleKey, Result<Drawn>)> {
        let samplers: Vec<(SampleKey, &mut Sampler, &[f32])> = self
            .samples
            .iter_mut()
            .filter_map(|(key, sample)| rows.get(key).map(|row| (*key, &mut sample.sampler, *row)))
            .collect();
        samplers
            .into_par_iter()
            .map(|(key, sampler, row)| (key, SCRATCH.with_borrow_mut(|scratch| sampler.draw(row, scratch))))
            .collect()
    }

    /// Adds a token to a sample, and tells whether it ends with it.
    fn accept(&mut self, key: SampleKey, drawn: Drawn) -> Option<EndReason> {
        let (sample, group) = (self.samples.get_mut(&key)?, self.groups.get(&key.group)?);
        let Drawn { id, logprobs } = drawn;
        sample.tokens.push(id);
        sample.usage.completion_tokens += 1;
        self.counters.generated_tokens += 1;
        let is_stop = group.request.stop_tokens.contains(&id);
        let read = if is_stop {
            Ok(Released::default())
        } else {
            sample.text.push(id)
        };
        let (Released { text, stop }, fault) = match read {
            Ok(released) => (released, None),
            Err(error) => (Released::default(), Some(error)),
        };
        let token = Token {
            sample: key.index as usize,
            id,
            text,
            logprobs,
        };
        // Nobody may listen any more; the request is then ended before the next step.
        let _ = group.events.unbounded_send(Event::Token(token));
        if let Some(error) = fault {
            Some(EndReason::Error(Arc::new(error)))
        } else if is_stop {
            Some(EndReason::StopToken(id))
        } else if let Some(number) = stop {
            Some(EndReason::StopString(number))
        } else {
            (sample.usage.completion_tokens >= group.request.max_tokens).then_some(EndReason::Length)
        }
    }

    /// The followers of a sample go on from its prompt with the same blocks. Those that find no place wait.
    fn start_followers(&mut self, leader: SampleKey, ends: &[(SampleKey, EndReason)]) {
        let followers = self
            .groups
            .get_mut(&leader.group)
            .map_or(0, |group| std::mem::take(&mut group.followers));
        for index in 1..=followers {
            let key = SampleKey { index, ..leader };
            if ends.iter().any(|(ended, _)| *ended == key) {
                continue;
            }
            if self.running.len() < self.max_running {
                self.fork(leader, key);
            } else {
                self.waiting.insert(key);
            }
        }
    }

    fn fork(&mut self, leader: SampleKey, key: SampleKey) {
        let Some((blocks, computed, slot)) = self
            .samples
            .get(&leader)
            .map(|first| (first.blocks.clone(), first.computed, first.slot))
        else {
            return;
        };
        let mut own = None;
        if let Some(from) = slot {
            own = self.ledger.take_slot();
            let copied = own.map(|to| self.cache.copy_state(from, to));
            if !matches!(copied, Some(Ok(()))) {
                // It computes the prompt by itself when there is a place.
                if let Some(to) = own {
                    self.ledger.release_slot(to);
                }
                self.waiting.insert(key);
                return;
            }
        }
        if let Some(sample) = self.samples.get_mut(&key) {
            self.ledger.hold(&blocks);
            sample.blocks = blocks;
            sample.computed = computed;
            sample.slot = own;
            self.running.insert(key);
        }
    }
}
