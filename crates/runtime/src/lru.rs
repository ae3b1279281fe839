//! A bounded map that forgets what was not used for longest.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashMap},
    hash::Hash,
};

#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    entries: HashMap<K, (V, u64)>,
    /// From the least recently used on.
    order: BTreeMap<u64, K>,
    limit: usize,
    clock: u64,
}

impl<K: Clone + Eq + Hash, V> Lru<K, V> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            entries: HashMap::new(),
            order: BTreeMap::new(),
            limit: limit.max(1),
            clock: 0,
        }
    }

    /// The value of a key, which is made if it is not there, and is now the most recent.
    pub(crate) fn entry(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        self.clock += 1;
        let clock = self.clock;
        if !self.entries.contains_key(key) && self.entries.len() >= self.limit {
            self.evict();
        }
        let (value, used) = self
            .entries
            .entry(key.clone())
            .or_insert_with(|| (make(), clock));
        self.order.remove(used);
        self.order.insert(clock, key.clone());
        *used = clock;
        value
    }

    /// The value of a key, without touching the order.
    pub(crate) fn peek<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.entries.get(key).map(|(value, _)| value)
    }

    fn evict(&mut self) {
        if let Some((_, key)) = self.order.pop_first() {
            self.entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_goes() {
        let mut lru = Lru::new(2);
        *lru.entry(&"a", || 0) = 1;
        *lru.entry(&"b", || 0) = 2;
        lru.entry(&"a", || 9);
        lru.entry(&"c", || 3);
        assert_eq!(
            (lru.peek("a"), lru.peek("b"), lru.peek("c")),
            (Some(&1), None, Some(&3))
        );
    }
}
