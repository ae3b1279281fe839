//! A bounded set of what was asked for lately.

use std::hash::Hash;

use crate::lru::Lru;

/// A bounded set: when it is full, the key that was not asked for longest is forgotten.
///
/// It serves for what cannot become wrong and only costs a request when it is forgotten, such as
/// UIDs that are known to be gone.
///
/// ```
/// use windlass_runtime::Recent;
///
/// let mut gone = Recent::new(2);
/// gone.add(&"a");
/// gone.add(&"b");
/// assert!(gone.contains(&"a"));
/// gone.add(&"c");
/// assert!(gone.contains(&"a") && !gone.contains(&"b"));
/// ```
#[derive(Debug)]
pub struct Recent<K> {
    keys: Lru<K, ()>,
    is_off: bool,
}

impl<K: Clone + Eq + Hash> Recent<K> {
    /// A set that remembers so many keys, or none at all.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            keys: Lru::new(limit),
            is_off: limit == 0,
        }
    }

    /// Remembers a key.
    pub fn add(&mut self, key: &K) {
        if !self.is_off {
            self.keys.place(key, || ());
        }
    }

    /// Returns true if a key is remembered. To ask counts as use.
    pub fn contains(&mut self, key: &K) -> bool {
        let is_known = self.keys.peek(key).is_some();
        if is_known {
            self.keys.place(key, || ());
        }
        is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_that_was_not_asked_for_longest_is_forgotten() {
        let mut recent = Recent::new(2);
        recent.add(&"a");
        recent.add(&"b");
        assert!(recent.contains(&"a"));
        recent.add(&"c");
        let known = ["a", "b", "c"].map(|key| recent.contains(&key));
        assert_eq!(known, [true, false, true]);
    }

    #[test]
    fn a_key_that_is_added_again_counts_as_used() {
        let mut recent = Recent::new(2);
        for key in ["a", "b", "a", "c"] {
            recent.add(&key);
        }
        let known = ["a", "b", "c"].map(|key| recent.contains(&key));
        assert_eq!(known, [true, false, true]);
    }

    #[test]
    fn a_limit_of_zero_remembers_nothing() {
        let mut recent = Recent::new(0);
        recent.add(&"a");
        assert!(!recent.contains(&"a"));
    }
}
