//! The books of the cache: which sample holds which block and slot, and which prefixes are there to be used again.

mod pool;
mod prefix;
mod runs;
mod states;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use self::pool::BlockPool;
pub(super) use self::prefix::{Prefix, extend_prefixes};
use self::states::StateSlots;
use super::stats::Places;
use crate::model::CacheSize;

/// How much of a sequence is in the cache already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    /// Blocks to begin with.
    pub(super) blocks: usize,
    /// Blocks whose keys and values are there; more than `blocks` where the recurrent state after them is missing.
    pub(super) known: usize,
}

/// Blocks and slots.
#[derive(Debug)]
pub(super) struct Ledger {
    pool: BlockPool,
    states: StateSlots,
    /// Whether sequences have a recurrent state.
    is_recurrent: bool,
    /// Prefixes that running samples are about to compute, and how many do.
    expected: HashMap<Prefix, usize>,
}

impl Ledger {
    /// The books of an empty cache. A cache has slots exactly where the model has a recurrent state.
    pub(super) fn new(size: CacheSize) -> Self {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            pool: BlockPool::new(number(size.blocks)),
            states: StateSlots::new(number(size.states)),
            is_recurrent: size.states > 0,
            expected: HashMap::new(),
        }
    }

    /// Whether sequences have a recurrent state.
    pub(super) fn is_recurrent(&self) -> bool {
        self.is_recurrent
    }

    /// Blocks, by what they are.
    pub(super) fn blocks(&self) -> Places {
        Places::new(self.pool.total(), self.pool.free(), self.pool.kept())
    }

    /// Slots, by what they are.
    pub(super) fn slots(&self) -> Places {
        Places::new(self.states.total(), self.states.free(), self.states.kept())
    }

    /// How many of the first `limit` blocks of a sequence are there.
    pub(super) fn find(&self, prefixes: &[Prefix], limit: usize) -> Match {
        let prefixes = &prefixes[..limit.min(prefixes.len())];
        let known = prefixes
            .iter()
            .take_while(|prefix| self.pool.find(prefix).is_some())
            .count();
        let blocks = if self.is_recurrent {
            let state = prefixes[..known].iter().rposition(|prefix| self.states.has(prefix));
            state.map_or(0, |last| last + 1)
        } else {
            known
        };
        Match { blocks, known }
    }

    /// Blocks that can be taken beside those of a match.
    pub(super) fn available_beside(&self, matched: &[Prefix]) -> usize {
        let kept = matched
            .iter()
            .filter_map(|prefix| self.pool.find(prefix))
            .filter(|block| self.pool.holders(*block) == 0)
            .count();
        self.pool.available() - kept
    }

    /// Holds the blocks of a match.
    pub(super) fn hold_matched(&mut self, matched: &[Prefix]) -> Vec<u32> {
        let blocks: Vec<u32> = matched.iter().filter_map(|prefix| self.pool.find(prefix)).collect();
        blocks.iter().for_each(|block| self.pool.hold(*block));
        blocks
    }

    /// Holds the blocks of another sample too.
    pub(super) fn hold(&mut self, blocks: &[u32]) {
        blocks.iter().for_each(|block| self.pool.hold(*block));
    }

    /// Adds blocks to a sequence; false, and nothing is changed, where there are too few.
    pub(super) fn grow(&mut self, blocks: &mut Vec<u32>, count: usize) -> bool {
        if self.pool.available() < count {
            return false;
        }
        for wanted in (1..=count).rev() {
            match self.take(blocks.last().copied(), wanted) {
                Some(block) => blocks.push(block),
                None => return false,
            }
        }
        true
    }

    /// One block, near the one that it shall follow.
    pub(super) fn take(&mut self, after: Option<u32>, wanted: usize) -> Option<u32> {
        let (block, lost) = self.pool.take(after, wanted)?;
        if let Some(prefix) = lost {
            // A state is of no use without the keys and values before it.
            self.states.forget(&prefix);
        }
        Some(block)
    }

    /// Releases blocks of a sequence, the last one first: it is of use to the fewest.
    pub(super) fn release(&mut self, blocks: &[u32]) {
        blocks.iter().rev().for_each(|block| self.pool.release(*block));
    }

    /// Whether others hold a block too.
    pub(super) fn is_shared(&self, block: u32) -> bool {
        self.pool.holders(block) > 1
    }

    /// Makes a full block known to others.
    pub(super) fn publish(&mut self, block: u32, prefix: Prefix) {
        self.pool.publish(block, prefix);
    }

    /// A slot for a sample.
    pub(super) fn take_slot(&mut self) -> Option<u32> {
        self.states.take()
    }

    /// Gives the slot of a sample back.
    pub(super) fn release_slot(&mut self, slot: u32) {
        self.states.release(slot);
    }

    /// Slot of the snapshot after a prefix.
    pub(super) fn find_snapshot(&mut self, prefix: &Prefix) -> Option<u32> {
        self.states.find(prefix)
    }

    /// A slot for a snapshot after a prefix that is known, where one is missing and can be had.
    pub(super) fn keep_snapshot(&mut self, prefix: Prefix) -> Option<u32> {
        self.pool.find(&prefix)?;
        self.states.keep(prefix)
    }

    /// Forgets a snapshot that could not be made.
    pub(super) fn forget_snapshot(&mut self, prefix: &Prefix) {
        self.states.forget(prefix);
    }

    /// Somebody is about to compute a block.
    pub(super) fn expect(&mut self, prefixes: &[Prefix]) {
        for prefix in prefixes {
            *self.expected.entry(*prefix).or_default() += 1;
        }
    }

    /// It is computed, or will not be.
    pub(super) fn settle(&mut self, prefixes: &[Prefix]) {
        for prefix in prefixes {
            if let Some(count) = self.expected.get_mut(prefix) {
                *count -= 1;
                if *count == 0 {
                    self.expected.remove(prefix);
                }
            }
        }
    }

    /// Whether somebody is about to compute a block.
    pub(super) fn is_expected(&self, prefix: &Prefix) -> bool {
        self.expected.contains_key(prefix)
    }

    /// Forgets all prefixes and snapshots.
    pub(super) fn forget_prefixes(&mut self) {
        self.pool.forget_prefixes();
        self.states.forget_all();
    }

    /// Compares the books with what samples hold: their blocks, slots and expected prefixes.
    pub(super) fn check(&self, blocks: &HashMap<u32, u32>, slots: &[u32], expected: usize) -> Result<(), String> {
        self.pool.check(blocks)?;
        self.states.check(slots)?;
        let counted: usize = self.expected.values().sum();
        if counted != expected {
            return Err(format!("samples expect {expected} prefixes, the books say {counted}"));
        }
        Ok(())
    }
}
