//! Which server has what: bounded, and lost at a restart, after which the servers are asked.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// Names of servers by what they have. When it is full, the half that was used longest ago is forgotten.
#[derive(Debug)]
pub(super) struct Memory<K> {
    half: usize,
    generations: Mutex<Generations<K>>,
}

#[derive(Debug)]
struct Generations<K> {
    new: HashMap<K, Arc<str>>,
    old: HashMap<K, Arc<str>>,
}

impl<K: Eq + Hash + Clone> Memory<K> {
    /// A memory for so many.
    pub(super) fn new(most: usize) -> Self {
        Self {
            half: most.div_ceil(2).max(1),
            generations: Mutex::new(Generations {
                new: HashMap::new(),
                old: HashMap::new(),
            }),
        }
    }

    /// The server that has it.
    pub(super) fn get(&self, key: &K) -> Option<Arc<str>> {
        let mut generations = self.generations.lock();
        if let Some(name) = generations.new.get(key) {
            return Some(Arc::clone(name));
        }
        let name = generations.old.get(key).cloned()?;
        generations.put(key.clone(), Arc::clone(&name), self.half);
        Some(name)
    }

    /// Notes which server has it.
    pub(super) fn put(&self, key: K, name: &Arc<str>) {
        self.generations.lock().put(key, Arc::clone(name), self.half);
    }

    /// Forgets it, if it is that server's.
    pub(super) fn forget(&self, key: &K, name: &str) {
        let mut generations = self.generations.lock();
        let Generations { new, old } = &mut *generations;
        for generation in [new, old] {
            if generation.get(key).is_some_and(|known| **known == *name) {
                generation.remove(key);
            }
        }
    }
}

impl<K: Eq + Hash> Generations<K> {
    fn put(&mut self, key: K, name: Arc<str>, half: usize) {
        if self.new.len() >= half && !self.new.contains_key(&key) {
            self.old = std::mem::take(&mut self.new);
        }
        // A name that is out of date must not come back when the new one is forgotten.
        self.old.remove(&key);
        self.new.insert(key, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let memory = Memory::new(10);
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        memory.put(0, &a);
        for key in 1..100 {
            memory.put(key, &b);
            assert_eq!(memory.get(&0).as_deref(), Some("a"), "it was used just now");
        }
        let known = (1..100).filter(|key| memory.get(key).is_some()).count();
        assert!((4..=10).contains(&known), "{known}");
        assert_eq!(memory.get(&99).as_deref(), Some("b"));
    }

    #[test]
    fn only_what_is_said_is_forgotten() {
        let memory = Memory::new(2);
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        memory.put("k", &a);
        memory.put("other", &a);
        memory.put("k", &b);
        memory.forget(&"k", "a");
        assert_eq!(memory.get(&"k").as_deref(), Some("b"), "it is another's by now");
        memory.forget(&"k", "b");
        assert_eq!(memory.get(&"k"), None);
    }
}
