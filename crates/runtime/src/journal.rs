//! The journal: why a key was reconciled, and what came of it.
//!
//! For each key the last few reconciles are kept: the events that caused them, how long the key
//! waited, what was written, how it ended and when it is due again. Keys that were not touched for
//! longest are forgotten first. Nothing is formatted before somebody asks.

mod aging;
mod render;

use std::{borrow::Cow, collections::VecDeque, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_core::{Doc, GroupResource, Key};

use crate::{lru::Lru, writes::Write};
pub use aging::JOURNAL_DOCUMENTS_LIMIT;
use aging::Order;

/// The most keys of one controller that are remembered, unless it says otherwise.
pub const JOURNAL_KEYS_LIMIT: usize = 1024;

/// The most reconciles of one key that are remembered.
pub const JOURNAL_ENTRIES_LIMIT: usize = 8;

/// The most causes of one reconcile that are told apart; further ones are counted.
pub const JOURNAL_CAUSES_LIMIT: usize = 4;

/// The journal of one controller.
pub(crate) struct Journal {
    /// `None` if nothing is to be remembered.
    trails: Option<Mutex<Lru<Key, Trail>>>,
    /// Locked for a moment after the trails, and never while they are waited for.
    order: Mutex<Order>,
}

/// The history of one key.
#[derive(Default)]
pub(crate) struct Trail {
    /// The causes since the last reconcile began.
    pending: Pending,
    /// The last reconciles, the most recent last.
    entries: VecDeque<Entry>,
}

/// The causes of a reconcile that has not begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    /// Mostly there is one, which is kept without a list.
    first: Option<Cause>,
    more: Vec<Cause>,
    /// The number of causes in all.
    count: usize,
    since: Option<Instant>,
}

/// The causes of a reconcile that has begun, and the place for its result.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    pub(crate) pending: Pending,
    place: usize,
}

/// The cause of an add to the queue.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// An object was added, changed or deleted: what it was before, and after.
    Event {
        resource: Arc<GroupResource>,
        old: Option<Doc>,
        new: Option<Doc>,
        is_initial: bool,
    },
    /// The same, when it is long ago: the key and the revision of the object, and what happened.
    Past {
        resource: Arc<GroupResource>,
        object: Box<str>,
        what: &'static str,
    },
    /// The reconcile before asked for it, or failed.
    Again,
    /// The caches have caught up.
    Fresh,
}

/// One reconcile.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) pending: Pending,
    pub(crate) started: Instant,
    pub(crate) took: Duration,
    pub(crate) writes: Vec<Write>,
    pub(crate) write_count: usize,
    pub(crate) outcome: Cow<'static, str>,
    /// The number of failures of the key in a row.
    pub(crate) failures: u32,
    pub(crate) next_due: Option<Instant>,
    /// True for one that has given up its documents.
    pub(crate) is_aged: bool,
}

impl Journal {
    /// A journal of so many keys. That of no keys costs nothing.
    pub(crate) fn new(keys_limit: usize) -> Self {
        Self {
            trails: (keys_limit > 0).then(|| Mutex::new(Lru::new(keys_limit))),
            order: Mutex::default(),
        }
    }

    /// The number of keys that are remembered.
    pub(crate) fn len(&self) -> usize {
        self.trails.as_ref().map_or(0, |trails| trails.lock().len())
    }

    /// A key is queued.
    pub(crate) fn caused(&self, key: &Key, cause: impl FnOnce() -> Cause) {
        let Some(trails) = &self.trails else { return };
        let mut trails = trails.lock();
        let pending = &mut trails.entry(key, Trail::default).pending;
        pending.count += 1;
        pending.since.get_or_insert_with(Instant::now);
        if pending.first.is_none() {
            pending.first = Some(cause());
        } else if pending.more.len() + 1 < JOURNAL_CAUSES_LIMIT {
            pending.more.push(cause());
        }
    }

    /// A reconcile begins: what led to it.
    pub(crate) fn begin(&self, key: &Key) -> Begun {
        let Some(trails) = &self.trails else {
            return Begun::default();
        };
        let mut trails = trails.lock();
        // What led here has made the key one of the most recent already.
        let known = trails.find_place(key);
        let place = known.unwrap_or_else(|| trails.place(key, Trail::default));
        let trail = trails.at(place, key).map(|trail| &mut trail.pending);
        Begun {
            pending: trail.map(std::mem::take).unwrap_or_default(),
            place,
        }
    }

    /// A reconcile has ended.
    pub(crate) fn end(&self, key: &Key, begun: Begun, entry: impl FnOnce(Pending) -> Entry) {
        let Some(trails) = &self.trails else { return };
        let Begun { pending, place } = begun;
        let entry = entry(pending);
        let mut trails = trails.lock();
        // A key that was forgotten meanwhile is not worth a place of its own.
        let Some(trail) = trails.at(place, key) else {
            return;
        };
        let is_full = trail.entries.len() >= JOURNAL_ENTRIES_LIMIT;
        let gone = is_full.then(|| trail.entries.pop_front());
        trail.entries.push_back(entry);
        let late = self.order.lock().push(key, place);
        let late = late.and_then(|(key, place)| Some(trails.at(place, &key)?.age()));
        drop(trails);
        drop((gone, late));
    }

    /// The story of a key, as text; `None` if nothing is known of it.
    pub(crate) fn why(&self, key: &Key) -> Option<String> {
        let now = Instant::now();
        let trails = self.trails.as_ref()?.lock();
        let trail = trails.peek(key)?;
        let (pending, entries) = (trail.pending.clone(), trail.entries.clone());
        drop(trails);
        Some(render::story(&pending, entries.iter().rev(), now))
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Journal(..)")
    }
}
