//! Free blocks as runs of consecutive numbers.
//!
//! A model reads consecutive blocks of a sequence as one piece of memory, so a sequence gets the block after its last one where that is
//! free, and otherwise the middle of the longest run, which leaves room to grow for the sequence before it.

use std::collections::{BTreeMap, BTreeSet};

/// The free blocks.
#[derive(Debug, Default)]
pub(super) struct FreeRuns {
    /// First block of a run, and its length.
    lengths: BTreeMap<u32, u32>,
    /// Length of a run, and its first block.
    by_length: BTreeSet<(u32, u32)>,
    count: usize,
}

impl FreeRuns {
    /// All of so many blocks.
    pub(super) fn all(blocks: u32) -> Self {
        let mut runs = Self::default();
        if blocks > 0 {
            runs.add(0, blocks);
            runs.count = blocks as usize;
        }
        runs
    }

    /// Number of free blocks.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Whether a block is free.
    pub(super) fn contains(&self, block: u32) -> bool {
        self.run_of(block).is_some()
    }

    /// Takes a block for a sequence that ends with the block `after` and wants `wanted` blocks now.
    pub(super) fn take(&mut self, after: Option<u32>, wanted: usize) -> Option<u32> {
        let next = after.map(|block| block + 1).filter(|block| self.contains(*block));
        let block = match next {
            Some(block) => block,
            None => {
                let (length, start) = *self.by_length.last()?;
                if length as usize >= 2 * wanted {
                    start + length / 2
                } else {
                    start
                }
            }
        };
        self.remove(block);
        Some(block)
    }

    /// Gives a block back.
    pub(super) fn put(&mut self, block: u32) {
        let mut start = block;
        let mut length = 1;
        if let Some((&before, &before_length)) = self.lengths.range(..block).next_back()
            && before + before_length == block
        {
            self.drop_run(before, before_length);
            start = before;
            length += before_length;
        }
        if let Some(&after_length) = self.lengths.get(&(block + 1)) {
            self.drop_run(block + 1, after_length);
            length += after_length;
        }
        self.add(start, length);
        self.count += 1;
    }

    fn run_of(&self, block: u32) -> Option<(u32, u32)> {
        let (&start, &length) = self.lengths.range(..=block).next_back()?;
        (block < start + length).then_some((start, length))
    }

    fn remove(&mut self, block: u32) {
        if let Some((start, length)) = self.run_of(block) {
            self.drop_run(start, length);
            if block > start {
                self.add(start, block - start);
            }
            if block + 1 < start + length {
                self.add(block + 1, start + length - block - 1);
            }
            self.count -= 1;
        }
    }

    fn add(&mut self, start: u32, length: u32) {
        self.lengths.insert(start, length);
        self.by_length.insert((length, start));
    }

    fn drop_run(&mut self, start: u32, length: u32) {
        self.lengths.remove(&start);
        self.by_length.remove(&(length, start));
    }
}
