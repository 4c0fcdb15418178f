//! Compares the books of the cache with what samples hold.

use std::collections::HashMap;

use super::Scheduler;
use crate::error::{LmError, Result};

impl Scheduler {
    /// Sees to it that every block and slot is accounted for.
    ///
    /// # Errors
    /// What does not agree; a fault of the engine itself.
    pub(in crate::engine) fn check(&self) -> Result<()> {
        self.compare()
            .map_err(|problem| LmError::Model(format!("the books of the cache are wrong: {problem}")))
    }

    fn compare(&self) -> std::result::Result<(), String> {
        let mut blocks: HashMap<u32, u32> = HashMap::new();
        let mut slots = Vec::new();
        let mut expected = 0;
        for (key, sample) in &self.samples {
            sample
                .blocks
                .iter()
                .for_each(|block| *blocks.entry(*block).or_default() += 1);
            slots.extend(sample.slot);
            expected += sample.expected.len();
            let is_running = self.running.contains(key);
            let holds_nothing = sample.blocks.is_empty() && sample.slot.is_none() && sample.computed == 0;
            if !is_running && !holds_nothing {
                return Err(format!("{key:?} does not run and holds {:?}", sample.blocks));
            }
            let most = sample.tokens.len().div_ceil(self.block_tokens);
            let least = sample.computed.div_ceil(self.block_tokens);
            if is_running && !(least..=most).contains(&sample.blocks.len()) {
                return Err(format!(
                    "{key:?} has {} blocks for {} of {} tokens",
                    sample.blocks.len(),
                    sample.computed,
                    sample.tokens.len()
                ));
            }
            if is_running && sample.slot.is_some() != self.ledger.is_recurrent() {
                return Err(format!("{key:?} runs with the slot {:?}", sample.slot));
            }
            if is_running == self.waiting.contains(key) {
                let followers = self.groups.get(&key.group).map_or(0, |group| group.followers);
                if is_running || key.index == 0 || key.index > followers {
                    return Err(format!("{key:?} runs and waits, or neither"));
                }
            }
        }
        if let Some(key) = self
            .running
            .iter()
            .chain(&self.waiting)
            .find(|key| !self.samples.contains_key(key))
        {
            return Err(format!("{key:?} has ended and has a place"));
        }
        let open: usize = self.groups.values().map(|group| group.open).sum();
        if open != self.samples.len() {
            return Err(format!(
                "requests have {open} open samples, there are {}",
                self.samples.len()
            ));
        }
        self.ledger.check(&blocks, &slots, expected)
    }
}
