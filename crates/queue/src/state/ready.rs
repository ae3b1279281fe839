//! The ready keys: one list per priority, served from the highest.

use crate::slots::{List, SlotId, Slots};

/// After this many hand-outs in a row that passed over a key of lower priority, the key that has
/// waited longest is next. Strict priorities would let a busy controller starve its background
/// work for ever, which users of controller-runtime's queue have met.
const PASSED_OVER_MAX: u32 = 8;

/// One priority and its keys.
#[derive(Debug)]
struct Level {
    priority: i32,
    list: List,
    len: usize,
}

/// All ready keys.
#[derive(Debug)]
pub(crate) struct Ready {
    /// Sorted from the highest priority down. Levels other than the first made are dropped when
    /// they empty, so that the number of levels is bounded by the number of ready keys.
    levels: Vec<Level>,
    /// Number of ready keys.
    len: usize,
    /// Order of entry of the next key.
    seq: u64,
    /// Hand-outs in a row that passed over a lower priority.
    passed_over: u32,
}

impl Ready {
    pub(crate) const fn new() -> Self {
        Self {
            levels: Vec::new(),
            len: 0,
            seq: 0,
            passed_over: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Queues a slot at the tail of its priority.
    pub(crate) fn push<K>(&mut self, slots: &mut Slots<K>, id: SlotId) {
        let slot = &mut slots[id];
        slot.queued_seq = self.seq;
        self.seq += 1;
        let level = self.level(slot.priority);
        self.levels[level].list.push(slots, id);
        self.levels[level].len += 1;
        self.len += 1;
    }

    pub(crate) fn remove<K>(&mut self, slots: &mut Slots<K>, id: SlotId) {
        let level = self.level(slots[id].priority);
        self.take(slots, level, id);
    }

    /// Takes the first key of the highest priority, or the one that has waited longest when its
    /// turn has come.
    pub(crate) fn pop<K>(&mut self, slots: &mut Slots<K>) -> Option<SlotId> {
        let top = self.levels.iter().position(|level| level.len > 0)?;
        let level = if self.levels[top].len == self.len {
            self.passed_over = 0;
            top
        } else if self.passed_over == PASSED_OVER_MAX {
            self.passed_over = 0;
            self.longest_waiting(slots)
        } else {
            self.passed_over += 1;
            top
        };
        let id = self.levels[level]
            .list
            .front()
            .expect("invariant: the level has a key");
        self.take(slots, level, id);
        Some(id)
    }

    fn longest_waiting<K>(&self, slots: &Slots<K>) -> usize {
        let waiting = self.levels.iter().enumerate();
        waiting
            .filter_map(|(at, level)| level.list.front().map(|id| (slots[id].queued_seq, at)))
            .min()
            .map(|(_, at)| at)
            .expect("invariant: some level has a key")
    }

    fn take<K>(&mut self, slots: &mut Slots<K>, level: usize, id: SlotId) {
        self.levels[level].list.remove(slots, id);
        self.levels[level].len -= 1;
        self.len -= 1;
        if self.levels.len() > 1 && self.levels[level].len == 0 {
            self.levels.remove(level);
        }
    }

    /// The position of a priority's level, which is made if it does not exist.
    fn level(&mut self, priority: i32) -> usize {
        if let [only] = self.levels.as_slice()
            && only.priority == priority
        {
            return 0;
        }
        match self
            .levels
            .binary_search_by(|level| priority.cmp(&level.priority))
        {
            Ok(at) => at,
            Err(at) => {
                self.levels.insert(
                    at,
                    Level {
                        priority,
                        list: List::EMPTY,
                        len: 0,
                    },
                );
                at
            }
        }
    }

    /// Number of ready keys per priority, from the highest down.
    pub(crate) fn depths(&self) -> Vec<(i32, usize)> {
        let used = self.levels.iter().filter(|level| level.len > 0);
        used.map(|level| (level.priority, level.len)).collect()
    }
}
