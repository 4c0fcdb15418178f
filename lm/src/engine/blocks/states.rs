//! Slots of recurrent state: one for each running sample, and snapshots at borders of blocks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::prefix::Prefix;

#[derive(Debug, Clone, Copy)]
struct Snapshot {
    slot: u32,
    age: u64,
}

/// Slots. A snapshot gives way when a sample needs its slot, the one that was used longest ago first.
#[derive(Debug)]
pub(super) struct StateSlots {
    total: usize,
    free: Vec<u32>,
    held: BTreeSet<u32>,
    snapshots: HashMap<Prefix, Snapshot>,
    ages: BTreeMap<u64, Prefix>,
    clock: u64,
}

impl StateSlots {
    /// So many free slots.
    pub(super) fn new(slots: u32) -> Self {
        Self {
            total: slots as usize,
            free: (0..slots).rev().collect(),
            held: BTreeSet::new(),
            snapshots: HashMap::new(),
            ages: BTreeMap::new(),
            clock: 0,
        }
    }

    /// Number of slots.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Slots without content that counts.
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// Number of snapshots.
    pub(super) fn kept(&self) -> usize {
        self.snapshots.len()
    }

    /// A slot for a running sample.
    pub(super) fn take(&mut self) -> Option<u32> {
        let slot = self.any()?;
        self.held.insert(slot);
        Some(slot)
    }

    /// Gives the slot of a sample back.
    pub(super) fn release(&mut self, slot: u32) {
        if self.held.remove(&slot) {
            self.free.push(slot);
        }
    }

    /// Slot of the snapshot after a prefix, which counts as used now.
    pub(super) fn find(&mut self, prefix: &Prefix) -> Option<u32> {
        let snapshot = self.snapshots.get_mut(prefix)?;
        self.ages.remove(&snapshot.age);
        self.clock += 1;
        snapshot.age = self.clock;
        self.ages.insert(self.clock, *prefix);
        Some(snapshot.slot)
    }

    /// Whether there is a snapshot after a prefix.
    pub(super) fn has(&self, prefix: &Prefix) -> bool {
        self.snapshots.contains_key(prefix)
    }

    /// A slot for a snapshot after a prefix; `None` where there is one already, or all slots belong to running samples.
    pub(super) fn keep(&mut self, prefix: Prefix) -> Option<u32> {
        if self.has(&prefix) {
            return None;
        }
        let slot = self.any()?;
        self.clock += 1;
        self.ages.insert(self.clock, prefix);
        self.snapshots.insert(prefix, Snapshot { slot, age: self.clock });
        Some(slot)
    }

    /// Forgets the snapshot after a prefix.
    pub(super) fn forget(&mut self, prefix: &Prefix) {
        if let Some(snapshot) = self.snapshots.remove(prefix) {
            self.ages.remove(&snapshot.age);
            self.free.push(snapshot.slot);
        }
    }

    /// Forgets all snapshots.
    pub(super) fn forget_all(&mut self) {
        self.free
            .extend(self.snapshots.drain().map(|(_, snapshot)| snapshot.slot));
        self.ages.clear();
    }

    fn any(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            let prefix = *self.ages.first_key_value()?.1;
            self.forget(&prefix);
        }
        self.free.pop()
    }

    /// Compares the books with the slots that samples hold.
    pub(super) fn check(&self, held: &[u32]) -> Result<(), String> {
        let claimed: BTreeSet<u32> = held.iter().copied().collect();
        if claimed.len() != held.len() || claimed != self.held {
            return Err(format!(
                "samples hold the slots {held:?}, the books say {:?}",
                self.held
            ));
        }
        let mut all = claimed;
        all.extend(&self.free);
        all.extend(self.snapshots.values().map(|snapshot| snapshot.slot));
        let parts = self.held.len() + self.free.len() + self.snapshots.len();
        if all.len() != self.total || parts != self.total || self.ages.len() != self.snapshots.len() {
            return Err(format!(
                "of {} slots {} are held, {} free and {} snapshots ({} in the queue)",
                self.total,
                self.held.len(),
                self.free.len(),
                self.snapshots.len(),
                self.ages.len()
            ));
        }
        Ok(())
    }
}
