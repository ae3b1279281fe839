//! A bounded map that forgets what was not used for longest.

use std::{
    borrow::Borrow,
    fmt,
    hash::{BuildHasher, Hash},
};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// The link that points nowhere.
const NIL: usize = usize::MAX;

/// A bounded map. The entries are in one slab, which the order of their use is linked through, so
/// that a use moves no entry and allocates nothing.
pub(crate) struct Lru<K, V> {
    slots: Vec<Slot<K, V>>,
    table: HashTable<usize>,
    hasher: RandomState,
    /// The most and the least recently used slot.
    newest: usize,
    oldest: usize,
    limit: usize,
}

struct Slot<K, V> {
    key: K,
    value: V,
    hash: u64,
    newer: usize,
    older: usize,
}

impl<K: Clone + Eq + Hash, V> Lru<K, V> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            slots: Vec::new(),
            table: HashTable::new(),
            hasher: RandomState::default(),
            newest: NIL,
            oldest: NIL,
            limit: limit.max(1),
        }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The value of a key, which is made if it is not there, and is now the most recent.
    pub(crate) fn entry(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        let at = self.place(key, make);
        &mut self.slots[at].value
    }

    /// The place of a key, which is made if it is not there, and is now the most recent.
    pub(crate) fn place(&mut self, key: &K, make: impl FnOnce() -> V) -> usize {
        let hash = self.hasher.hash_one(key);
        match self.find(hash, key) {
            Some(at) => {
                self.unlink(at);
                self.link(at);
                at
            }
            None => {
                let at = self.insert(hash, key.clone(), make());
                self.link(at);
                at
            }
        }
    }

    /// The place of a key that is there, without touching the order.
    pub(crate) fn find_place(&self, key: &K) -> Option<usize> {
        self.find(self.hasher.hash_one(key), key)
    }

    /// The value at a place, if the key is still there.
    pub(crate) fn at(&mut self, place: usize, key: &K) -> Option<&mut V> {
        let slot = self.slots.get_mut(place).filter(|slot| slot.key == *key)?;
        Some(&mut slot.value)
    }

    /// The value of a key, without touching the order.
    pub(crate) fn peek<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let at = self.find(self.hasher.hash_one(key), key)?;
        Some(&self.slots[at].value)
    }

    fn find<Q>(&self, hash: u64, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let is_it = |&at: &usize| self.slots[at].key.borrow() == key;
        self.table.find(hash, is_it).copied()
    }

    /// Puts a key that is not there into a slot, that of the oldest if there are no more.
    fn insert(&mut self, hash: u64, key: K, value: V) -> usize {
        let slot = Slot {
            key,
            value,
            hash,
            newer: NIL,
            older: NIL,
        };
        let at = if self.slots.len() < self.limit {
            self.slots.push(slot);
            self.slots.len() - 1
        } else {
            let at = self.oldest;
            self.unlink(at);
            if let Ok(entry) = self.table.find_entry(self.slots[at].hash, |&it| it == at) {
                entry.remove();
            }
            self.slots[at] = slot;
            at
        };
        let slots = &self.slots;
        self.table.insert_unique(hash, at, |&it| slots[it].hash);
        at
    }

    fn unlink(&mut self, at: usize) {
        let Slot { newer, older, .. } = self.slots[at];
        match newer {
            NIL => self.newest = older,
            newer => self.slots[newer].older = older,
        }
        match older {
            NIL => self.oldest = newer,
            older => self.slots[older].newer = newer,
        }
    }

    fn link(&mut self, at: usize) {
        let second = std::mem::replace(&mut self.newest, at);
        self.slots[at].newer = NIL;
        self.slots[at].older = second;
        match second {
            NIL => self.oldest = at,
            second => self.slots[second].newer = at,
        }
    }
}

impl<K, V> fmt::Debug for Lru<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lru")
            .field("len", &self.slots.len())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
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

    #[test]
    fn it_behaves_like_a_list_that_is_searched() {
        let (mut lru, mut model) = (Lru::new(5), Vec::<(u32, u32)>::new());
        let mut random = 1_u32;
        for step in 0..2_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let key = (random >> 16) % 9;
            let value = match model.iter().position(|&(it, _)| it == key) {
                Some(at) => model.remove(at).1,
                None => step,
            };
            model.push((key, value));
            if model.len() > 5 {
                model.remove(0);
            }
            let place = lru.place(&key, || step);
            assert_eq!(lru.at(place, &key), Some(&mut value.clone()));
            assert_eq!(lru.at(place, &(key + 1)), None);
            assert_eq!(*lru.entry(&key, || step), value);
            for key in 0..9 {
                let expected = model.iter().find(|(it, _)| *it == key);
                assert_eq!(lru.peek(&key), expected.map(|(_, value)| value));
            }
        }
    }
}
