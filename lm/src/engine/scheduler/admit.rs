//! Which waiting samples get a place.

use std::sync::Arc;

use super::super::blocks::{Match, extend_prefixes};
use super::super::event::EndReason;
use super::sample::SampleKey;
use super::{Part, Scheduler};

enum Admission {
    /// It has its blocks.
    Begun,
    /// It waits for a prefix that another sample computes at this moment.
    Awaits,
    /// There are too few blocks.
    NoRoom,
    /// It ended with an error.
    Ended,
}

impl Scheduler {
    /// Gives places to waiting samples, in order. One that finds no room keeps those behind it waiting, so that it gets its turn.
    pub(super) fn admit(&mut self, only_begun: bool, budget: &mut usize, parts: &mut Vec<Part>) {
        let waiting: Vec<SampleKey> = self.waiting.iter().copied().collect();
        for key in waiting {
            if *budget == 0 || self.taken_places() >= self.max_running {
                return;
            }
            if only_begun && !self.groups.get(&key.group).is_some_and(|group| group.has_begun) {
                continue;
            }
            match self.try_admit(key) {
                Admission::Begun => self.add_chunk(key, budget, parts),
                Admission::Awaits | Admission::Ended => {}
                Admission::NoRoom => return,
            }
        }
    }

    /// Samples that run, and those that will as soon as their prompt is computed.
    fn taken_places(&self) -> usize {
        let followers = |key: &SampleKey| self.groups.get(&key.group).map_or(0, |group| group.followers as usize);
        self.running.iter().map(|key| 1 + followers(key)).sum()
    }

    fn try_admit(&mut self, key: SampleKey) -> Admission {
        let Some(sample) = self.samples.get_mut(&key) else {
            return Admission::Ended;
        };
        // The last token is always computed: the next one is drawn from its logits.
        let limit = (sample.tokens.len() - 1) / self.block_tokens;
        let mut found = Match { blocks: 0, known: 0 };
        if self.shares_prefixes {
            extend_prefixes(&mut sample.prefixes, &sample.tokens, self.block_tokens);
            found = self.ledger.find(&sample.prefixes, limit);
            // The block after those that are there; or, where only the state is missing, any up to it.
            let next = &sample.prefixes[found.blocks..limit.min(found.known + 1)];
            if next.iter().any(|prefix| self.ledger.is_expected(prefix)) {
                return Admission::Awaits;
            }
        }
        let matched = &sample.prefixes[..found.blocks];
        let wanted = sample.tokens.len().div_ceil(self.block_tokens) - found.blocks;
        // Each running sample may need a block soon.
        if wanted + self.running.len() > self.ledger.available_beside(matched) {
            return Admission::NoRoom;
        }
        if self.ledger.is_recurrent() {
            let snapshot = matched.last().and_then(|prefix| self.ledger.find_snapshot(prefix));
            let Some(slot) = self.ledger.take_slot() else {
                return Admission::NoRoom;
            };
            sample.slot = Some(slot);
            // When the snapshot itself had to give way, its slot holds the state already.
            if let Some(from) = snapshot.filter(|from| *from != slot)
                && let Err(error) = self.cache.copy_state(from, slot)
            {
                self.end_group(key.group, &EndReason::Error(Arc::new(error)));
                return Admission::Ended;
            }
        }
        sample.blocks = self.ledger.hold_matched(matched);
        self.ledger.grow(&mut sample.blocks, wanted);
        sample.computed = found.blocks * self.block_tokens;
        if self.shares_prefixes {
            sample.expected = found.blocks..sample.prefixes.len();
            self.ledger.expect(&sample.prefixes[sample.expected.clone()]);
            if self.ledger.is_recurrent() {
                // Where the prompt went apart from an earlier one, and where it ends.
                sample.snapshots_at = vec![found.known * self.block_tokens, limit * self.block_tokens];
            }
        }
        self.counters.reused_tokens += sample.computed as u64;
        let reused = sample.computed;
        if let Some(group) = self.groups.get_mut(&key.group)
            && !group.has_begun
        {
            group.has_begun = true;
            sample.usage.cached_tokens = reused;
            self.shared.leave_queue();
            self.counters.begun += 1;
            self.counters.prefix_hits += u64::from(reused > 0);
        }
        self.waiting.remove(&key);
        self.running.insert(key);
        Admission::Begun
    }
}
