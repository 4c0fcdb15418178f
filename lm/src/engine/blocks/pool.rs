//! The blocks of the cache: who holds them, and what those that nobody holds still contain.

use std::collections::{BTreeMap, HashMap};

use super::prefix::Prefix;
use super::runs::FreeRuns;

#[derive(Debug, Default, Clone)]
struct Block {
    holders: u32,
    /// The prefix that ends with this block, when others may find it.
    prefix: Option<Prefix>,
    /// When it was last held; its place in the queue of kept blocks.
    age: u64,
}

/// Blocks with counts of their holders. A block that nobody holds is free, or kept for the prefix that it ends until its place is needed;
/// the one that was held longest ago goes first.
#[derive(Debug)]
pub(super) struct BlockPool {
    blocks: Vec<Block>,
    free: FreeRuns,
    kept: BTreeMap<u64, u32>,
    by_prefix: HashMap<Prefix, u32>,
    clock: u64,
}

impl BlockPool {
    /// So many free blocks.
    pub(super) fn new(blocks: u32) -> Self {
        Self {
            blocks: vec![Block::default(); blocks as usize],
            free: FreeRuns::all(blocks),
            kept: BTreeMap::new(),
            by_prefix: HashMap::new(),
            clock: 0,
        }
    }

    /// Number of blocks.
    pub(super) fn total(&self) -> usize {
        self.blocks.len()
    }

    /// Blocks without content that counts.
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// Blocks that nobody holds but that are kept for their prefix.
    pub(super) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Blocks that can be taken.
    pub(super) fn available(&self) -> usize {
        self.free() + self.kept()
    }

    /// Takes a block for a sequence that ends with `after` and wants `wanted` blocks now. The second value is the prefix that is lost by it.
    pub(super) fn take(&mut self, after: Option<u32>, wanted: usize) -> Option<(u32, Option<Prefix>)> {
        let (block, lost) = match self.free.take(after, wanted) {
            Some(block) => (block, None),
            None => {
                let (_, block) = self.kept.pop_first()?;
                (block, self.forget(block))
            }
        };
        self.blocks[block as usize].holders = 1;
        Some((block, lost))
    }

    /// One more holder of a block.
    pub(super) fn hold(&mut self, block: u32) {
        let entry = &mut self.blocks[block as usize];
        if entry.holders == 0 {
            self.kept.remove(&entry.age);
        }
        entry.holders += 1;
    }

    /// One holder less.
    pub(super) fn release(&mut self, block: u32) {
        let entry = &mut self.blocks[block as usize];
        entry.holders -= 1;
        if entry.holders > 0 {
            return;
        }
        if entry.prefix.is_some() {
            self.clock += 1;
            entry.age = self.clock;
            self.kept.insert(entry.age, block);
        } else {
            self.free.put(block);
        }
    }

    /// Number of holders of a block.
    pub(super) fn holders(&self, block: u32) -> u32 {
        self.blocks[block as usize].holders
    }

    /// Makes a held, full block known by its prefix. Where another block is known by it already, nothing changes.
    pub(super) fn publish(&mut self, block: u32, prefix: Prefix) {
        if !self.by_prefix.contains_key(&prefix) {
            self.forget(block);
            self.by_prefix.insert(prefix, block);
            self.blocks[block as usize].prefix = Some(prefix);
        }
    }

    /// The block that ends a prefix.
    pub(super) fn find(&self, prefix: &Prefix) -> Option<u32> {
        self.by_prefix.get(prefix).copied()
    }

    /// Forgets all prefixes: kept blocks are free, held ones are not found again.
    pub(super) fn forget_prefixes(&mut self) {
        for block in std::mem::take(&mut self.kept).into_values() {
            self.free.put(block);
        }
        self.by_prefix.clear();
        for block in &mut self.blocks {
            block.prefix = None;
        }
    }

    fn forget(&mut self, block: u32) -> Option<Prefix> {
        let prefix = self.blocks[block as usize].prefix.take()?;
        self.by_prefix.remove(&prefix);
        Some(prefix)
    }

    /// Compares the books with the holders that there are: how often each block is held.
    pub(super) fn check(&self, held: &HashMap<u32, u32>) -> Result<(), String> {
        let mut counts = [0, 0, 0];
        for (number, block) in (0..).zip(&self.blocks) {
            let holders = held.get(&number).copied().unwrap_or(0);
            if block.holders != holders {
                return Err(format!(
                    "block {number} has {holders} holders, the pool says {}",
                    block.holders
                ));
            }
            let is_kept = self.kept.get(&block.age) == Some(&number);
            let is_free = self.free.contains(number);
            let place = match (holders > 0, is_kept, is_free) {
                (true, false, false) => 0,
                (false, true, false) => 1,
                (false, false, true) => 2,
                state => return Err(format!("block {number} is (held, kept, free) = {state:?}")),
            };
            counts[place] += 1;
            if (is_kept && block.prefix.is_none()) || (is_free && block.prefix.is_some()) {
                return Err(format!(
                    "block {number} is kept {is_kept} with the prefix {:?}",
                    block.prefix
                ));
            }
            if let Some(prefix) = block.prefix
                && self.by_prefix.get(&prefix) != Some(&number)
            {
                return Err(format!("block {number} is not found by its prefix"));
            }
        }
        let published = self.blocks.iter().filter(|block| block.prefix.is_some()).count();
        if published != self.by_prefix.len() {
            return Err(format!(
                "{} prefixes are known of {published} blocks",
                self.by_prefix.len()
            ));
        }
        if counts[1] != self.kept.len() || counts[2] != self.free.len() {
            return Err(format!(
                "{} blocks are kept and {} free, the pool says {} and {}",
                counts[1],
                counts[2],
                self.kept.len(),
                self.free.len()
            ));
        }
        Ok(())
    }
}
