//! One after the other: what has the same key waits for each other, and nothing is left of a key that nobody has.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

type Lock = Arc<tokio::sync::Mutex<()>>;

/// Who has a turn, by key; a key is in it as long as somebody has or waits for its turn.
#[derive(Debug)]
pub(crate) struct Turns<K: Eq + Hash + Clone>(Mutex<HashMap<K, Lock>>);

/// A turn, which ends when this is dropped, or the wait for one.
#[derive(Debug)]
pub(crate) struct Turn<'a, K: Eq + Hash + Clone> {
    turns: &'a Turns<K>,
    key: K,
    held: Option<OwnedMutexGuard<()>>,
}

impl<K: Eq + Hash + Clone> Default for Turns<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone> Turns<K> {
    /// Waits for the turn of a key.
    pub(crate) async fn take(&self, key: K) -> Turn<'_, K> {
        let lock = Arc::clone(self.0.lock().entry(key.clone()).or_default());
        // Made before the wait, so that one that is given up is tidied, too.
        let mut turn = Turn {
            turns: self,
            key,
            held: None,
        };
        turn.held = Some(lock.lock_owned().await);
        turn
    }
}

impl<K: Eq + Hash + Clone> Drop for Turn<'_, K> {
    fn drop(&mut self) {
        self.held = None;
        let mut turns = self.turns.0.lock();
        if turns.get(&self.key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            turns.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_same_key_waits_and_nothing_is_left() {
        let turns = Turns::default();
        let first = turns.take("k").await;
        let other = turns.take("other").await;
        let mut second = Box::pin(turns.take("k"));
        assert!(futures::poll!(&mut second).is_pending());
        drop(first);
        drop(second.await);
        // One that is given up while it waits.
        let first = turns.take("k").await;
        let mut given_up = Box::pin(turns.take("k"));
        assert!(futures::poll!(&mut given_up).is_pending());
        drop(first);
        drop(given_up);
        drop(other);
        assert!(turns.0.lock().is_empty());
    }
}
