//! The slab of known keys: one slot per key that is queued, running or delayed.

use hashbrown::HashTable;

/// Index of a slot. Four bytes keep the links of a list and the hash table small.
pub(crate) type SlotId = u32;

/// The link that points nowhere.
pub(crate) const NIL: SlotId = u32::MAX;

/// When the last slot is freed, a slab larger than this is given back to the allocator, so that
/// the burst of a first list does not stay in memory for the life of the process.
const SLOTS_KEPT_WHEN_EMPTY: usize = 65_536;

/// The phase of a key between `add` and `done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Neither queued nor with a worker; only a timer keeps the slot alive.
    Idle,
    /// In the ready list of its priority.
    Queued,
    /// With a worker.
    Running,
    /// With a worker, and added again meanwhile: `done` queues it.
    RunningDirty,
}

/// The meaning of the pending timer of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// No timer.
    Off,
    /// A delay that the caller asked for.
    After,
    /// A retry whose delay the rate limiter chose.
    Retry,
    /// A delay and a retry; the earlier of the two times counts for both.
    AfterAndRetry,
}

impl Timer {
    pub(crate) fn is_retry(self) -> bool {
        matches!(self, Self::Retry | Self::AfterAndRetry)
    }

    /// The meaning of a timer that serves this purpose and another.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Off, one) | (one, Self::Off) => one,
            (one, same) if one == same => one,
            _ => Self::AfterAndRetry,
        }
    }
}

/// Everything the queue knows of one key.
#[derive(Debug)]
pub(crate) struct Slot<K> {
    /// The key; `None` only while the slot is on the free list.
    pub(crate) key: Option<K>,
    /// Folded hash of the key, so that a key is hashed once per call and never when it leaves.
    hash: u32,
    /// Neighbours in the one list the slot is on: ready, running or (`next` only) free.
    pub(crate) prev: SlotId,
    pub(crate) next: SlotId,
    /// Priority of the pending or current hand-out.
    pub(crate) priority: i32,
    pub(crate) phase: Phase,
    pub(crate) timer: Timer,
    /// Order of entry into the ready lists, across priorities.
    pub(crate) queued_seq: u64,
}

impl<K> Slot<K> {
    const EMPTY: Self = Self {
        key: None,
        hash: 0,
        prev: NIL,
        next: NIL,
        priority: 0,
        phase: Phase::Idle,
        timer: Timer::Off,
        queued_seq: 0,
    };
}

/// The times of a key. They are apart from the slots because a hand-out of a queue that has no
/// timers and does not count needs none of them, and goes without touching their memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// Priority with which the timer will queue the key.
    pub(crate) timer_priority: i32,
    /// When the timer fires, and its order among timers of the same instant.
    pub(crate) due: u64,
    pub(crate) timer_seq: u64,
    /// When the pending add was accepted, and when the current hand-out began.
    pub(crate) added_at: u64,
    pub(crate) started_at: u64,
}

/// Slots, the free list through them, and the table that finds a slot by key.
#[derive(Debug)]
pub(crate) struct Slots<K> {
    slots: Vec<Slot<K>>,
    /// As many as there are slots. What is in them counts only after it was set for the timer, the
    /// add or the hand-out that it belongs to.
    times: Vec<Times>,
    table: HashTable<SlotId>,
    free: SlotId,
}

/// Spreads a folded hash over 64 bits: the table takes its bucket from the low and its tag from
/// the high ones.
fn unfold(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

/// Halves a hash; both halves of it are of full quality.
pub(crate) fn fold(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

impl<K: Eq> Slots<K> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            times: Vec::new(),
            table: HashTable::new(),
            free: NIL,
        }
    }

    pub(crate) fn find(&self, hash: u32, key: &K) -> Option<SlotId> {
        let slots = &self.slots;
        self.table
            .find(unfold(hash), |&id| {
                slots[id as usize].key.as_ref() == Some(key)
            })
            .copied()
    }

    /// Finds the slot of `key`, or makes an idle one and moves the key into it. A key that was
    /// not needed stays with the caller, who drops it outside of the lock.
    pub(crate) fn find_or_insert(&mut self, hash: u32, key: &mut Option<K>) -> SlotId {
        let wanted = key.as_ref().expect("invariant: an add carries its key");
        if let Some(id) = self.find(hash, wanted) {
            return id;
        }
        let id = self.allocate();
        let slot = &mut self.slots[id as usize];
        debug_assert!(slot.phase == Phase::Idle && slot.timer == Timer::Off);
        slot.key = key.take();
        slot.hash = hash;
        let slots = &self.slots;
        self.table.insert_unique(unfold(hash), id, |&other| {
            unfold(slots[other as usize].hash)
        });
        id
    }

    /// An idle slot without a key.
    fn allocate(&mut self) -> SlotId {
        let id = self.free;
        if id != NIL {
            self.free = self.slots[id as usize].next;
            return id;
        }
        let id = SlotId::try_from(self.slots.len())
            .ok()
            .filter(|&id| id != NIL);
        self.slots.push(Slot::EMPTY);
        self.times.push(Times::default());
        id.expect("invariant: fewer than 2^32 keys fit in memory")
    }

    /// Forgets a key. It is returned so that the caller can drop it outside of the lock.
    pub(crate) fn free(&mut self, id: SlotId) -> Option<K> {
        let slot = &mut self.slots[id as usize];
        debug_assert!(slot.phase == Phase::Idle && slot.timer == Timer::Off);
        let key = slot.key.take();
        slot.next = self.free;
        self.free = id;
        match self
            .table
            .find_entry(unfold(slot.hash), |&other| other == id)
        {
            Ok(entry) => drop(entry.remove()),
            Err(_) => unreachable!("a used slot is in the table"),
        }
        if self.table.is_empty() && self.slots.len() > SLOTS_KEPT_WHEN_EMPTY {
            *self = Self::new();
        }
        key
    }
}

impl<K> Slots<K> {
    pub(crate) fn times(&self, id: SlotId) -> &Times {
        &self.times[id as usize]
    }

    pub(crate) fn times_mut(&mut self, id: SlotId) -> &mut Times {
        &mut self.times[id as usize]
    }
}

impl<K> std::ops::Index<SlotId> for Slots<K> {
    type Output = Slot<K>;

    fn index(&self, id: SlotId) -> &Slot<K> {
        &self.slots[id as usize]
    }
}

impl<K> std::ops::IndexMut<SlotId> for Slots<K> {
    fn index_mut(&mut self, id: SlotId) -> &mut Slot<K> {
        &mut self.slots[id as usize]
    }
}

/// A first-in-first-out list linked through the slots: no allocation, removal from the middle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: SlotId,
    tail: SlotId,
}

impl List {
    pub(crate) const EMPTY: Self = Self {
        head: NIL,
        tail: NIL,
    };

    pub(crate) fn front(self) -> Option<SlotId> {
        (self.head != NIL).then_some(self.head)
    }

    pub(crate) fn push<K>(&mut self, slots: &mut Slots<K>, id: SlotId) {
        let slot = &mut slots[id];
        slot.prev = self.tail;
        slot.next = NIL;
        match self.tail {
            NIL => self.head = id,
            tail => slots[tail].next = id,
        }
        self.tail = id;
    }

    pub(crate) fn remove<K>(&mut self, slots: &mut Slots<K>, id: SlotId) {
        let Slot { prev, next, .. } = slots[id];
        match prev {
            NIL => self.head = next,
            prev => slots[prev].next = next,
        }
        match next {
            NIL => self.tail = prev,
            next => slots[next].prev = prev,
        }
    }
}
