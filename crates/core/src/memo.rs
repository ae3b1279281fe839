//! A bounded memoization cache.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// Memoizes the results of a pure function, up to a number of entries.
///
/// Made for keys with a [`Doc`](crate::Doc) in them: those are hashed and compared in constant
/// time, and many objects have parts in common. When it is full it drops all entries, which is
/// cheaper than to keep track of their use.
pub struct Memo<K, V> {
    known: HashMap<K, V, RandomState>,
    limit: usize,
}

impl<K: Eq + Hash, V: Clone> Memo<K, V> {
    /// A cache of at most `limit` entries.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            known: HashMap::default(),
            limit,
        }
    }

    /// The result for a key, if it is there.
    #[must_use]
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.known.get(key).cloned()
    }

    /// Drops all entries.
    pub fn clear(&mut self) {
        self.known.clear();
    }

    /// Stores the result for a key.
    pub fn put(&mut self, key: K, value: V) {
        if self.known.len() >= self.limit {
            self.known.clear();
        }
        self.known.insert(key, value);
    }
}

impl<K, V> fmt::Debug for Memo<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo")
            .field("known", &self.known.len())
            .field("limit", &self.limit)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded() {
        let mut memo = Memo::new(2);
        memo.put("a", 1);
        memo.put("b", 2);
        assert_eq!((memo.get(&"a"), memo.get(&"b")), (Some(1), Some(2)));
        memo.put("c", 3);
        assert_eq!((memo.get(&"a"), memo.get(&"c")), (None, Some(3)));
    }
}
