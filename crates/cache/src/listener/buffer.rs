//! What one handler has not been told yet.

use std::collections::BTreeMap;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use windlass_core::Key;

use crate::{
    indexer::Snapshot,
    object::{Deleted, Obj},
};

/// How many objects of a sweep are taken from its snapshot at a time.
const SWEEP_PAGE: usize = 256;

/// One thing to tell a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Add { object: Obj, is_initial: bool },
    Update { old: Obj, new: Obj },
    Delete(Deleted),
}

impl Note {
    fn key(&self) -> Key {
        match self {
            Self::Add { object, .. } | Self::Update { new: object, .. } => object.key(),
            Self::Delete(deleted) => deleted.key(),
        }
    }
}

/// Something that waits to be told.
#[derive(Debug)]
enum Item {
    Note(Note),
    Sweep(Sweep),
}

/// All objects of a snapshot, told one by one. It takes no memory of its own.
#[derive(Debug)]
struct Sweep {
    snapshot: Snapshot,
    purpose: Purpose,
    page: std::vec::IntoIter<Obj>,
    last: Option<Obj>,
}

/// Why all objects are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The handler hears of them for the first time.
    Initial,
    /// The handler asked to be reminded of them now and then.
    Resync,
}

impl Sweep {
    fn new(snapshot: Snapshot, purpose: Purpose) -> Self {
        Self {
            snapshot,
            purpose,
            page: Vec::new().into_iter(),
            last: None,
        }
    }

    fn next(&mut self) -> Option<Note> {
        if self.page.len() == 0 {
            self.page = self
                .snapshot
                .page_after(self.last.as_ref(), SWEEP_PAGE)
                .into_iter();
        }
        let object = self.page.next()?;
        self.last = Some(object.clone());
        Some(match self.purpose {
            Purpose::Initial => Note::Add {
                object,
                is_initial: true,
            },
            Purpose::Resync => Note::Update {
                old: object.clone(),
                new: object,
            },
        })
    }
}

/// Whether a handler has been told of the objects that existed when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// There is no complete state yet.
    Awaited,
    /// They are being told.
    Sweeping,
    /// It has handled the last of them.
    Done,
}

/// Notes in the order in which they are told.
///
/// Up to a limit each note stands for itself. Above it, a note is merged with the one that waits
/// for the same object, so that the buffer never holds much more than there are objects: what a
/// handler is told then skips states, but is never out of order and never ends on an old one.
#[derive(Debug)]
pub(crate) struct Buffer {
    items: BTreeMap<u64, Item>,
    next: u64,
    limit: usize,
    start: Start,
    is_closed: bool,
    /// Whether the handler was given a note and has not asked for the next.
    is_handling: bool,
    /// While notes are merged: the last note of each object, since the last sweep. A note before a
    /// sweep cannot be changed, because the sweep tells a state in between.
    last: Option<HashMap<Key, u64, RandomState>>,
    /// How many notes have been merged into others.
    coalesced: u64,
}

/// What two notes on one object become.
enum Merged {
    One(Note),
    /// An object that came and went.
    Nothing,
    Both,
}

impl Buffer {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            items: BTreeMap::new(),
            next: 0,
            limit,
            start: Start::Awaited,
            is_closed: false,
            is_handling: false,
            last: None,
            coalesced: 0,
        }
    }

    /// Whether the handler has handled every object that existed when it came.
    pub(crate) fn has_synced(&self) -> bool {
        self.start == Start::Done
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(crate) fn coalesced(&self) -> u64 {
        self.coalesced
    }

    /// Whether no note waits or is being handled.
    pub(crate) fn is_idle(&self) -> bool {
        self.items.is_empty() && !self.is_handling
    }

    /// How many notes wait, each sweep counted as one.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Takes no more, and forgets what was not told.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.items.clear();
        self.last = None;
    }

    /// Tells of every object of a snapshot. A reminder is pointless while another sweep waits.
    pub(crate) fn sweep(&mut self, snapshot: Snapshot, purpose: Purpose) {
        if self.is_closed {
            return;
        }
        match purpose {
            Purpose::Initial => self.start = Start::Sweeping,
            Purpose::Resync
                if self
                    .items
                    .values()
                    .any(|item| matches!(item, Item::Sweep(_))) =>
            {
                self.coalesced += 1;
                return;
            }
            Purpose::Resync => {}
        }
        self.append(Item::Sweep(Sweep::new(snapshot, purpose)));
        self.last = None;
    }

    pub(crate) fn push(&mut self, note: Note) {
        if self.is_closed {
            return;
        }
        if self.items.len() < self.limit {
            let key = self.last.is_some().then(|| note.key());
            let at = self.append(Item::Note(note));
            if let (Some(last), Some(key)) = (&mut self.last, key) {
                last.insert(key, at);
            }
            return;
        }
        self.push_merging(note);
    }

    /// The next thing to tell. Asking says that the one before has been handled.
    pub(crate) fn pop(&mut self) -> Option<Note> {
        let note = self.pop_first();
        self.is_handling = note.is_some();
        note
    }

    fn pop_first(&mut self) -> Option<Note> {
        loop {
            let mut first = self.items.first_entry()?;
            let Item::Sweep(sweep) = first.get_mut() else {
                break;
            };
            if let Some(note) = sweep.next() {
                return Some(note);
            }
            if sweep.purpose == Purpose::Initial {
                self.start = Start::Done;
            }
            first.remove();
        }
        let (at, item) = self.items.pop_first()?;
        let Item::Note(note) = item else { return None };
        self.forget(at, &note);
        Some(note)
    }

    fn append(&mut self, item: Item) -> u64 {
        let at = self.next;
        self.next += 1;
        self.items.insert(at, item);
        at
    }

    /// Keeps `last` true after the first note was taken, and drops it once there is room again.
    fn forget(&mut self, at: u64, note: &Note) {
        if self.items.len() < self.limit / 2 {
            self.last = None;
        }
        if let Some(last) = &mut self.last {
            let key = note.key();
            if last.get(&key) == Some(&at) {
                last.remove(&key);
            }
        }
    }

    fn push_merging(&mut self, note: Note) {
        let mut last = self.last.take().unwrap_or_else(|| self.last_notes());
        let key = note.key();
        let waiting = last.get(&key).and_then(|at| match self.items.get(at) {
            Some(Item::Note(waiting)) => Some((*at, waiting)),
            _ => None,
        });
        match waiting.map(|(at, waiting)| (at, merge(waiting, &note))) {
            Some((at, Merged::One(merged))) => {
                self.items.insert(at, Item::Note(merged));
                self.coalesced += 1;
            }
            Some((at, Merged::Nothing)) => {
                self.items.remove(&at);
                last.remove(&key);
                self.coalesced += 2;
            }
            Some((_, Merged::Both)) | None => {
                let at = self.append(Item::Note(note));
                last.insert(key, at);
            }
        }
        self.last = Some(last);
    }

    fn last_notes(&self) -> HashMap<Key, u64, RandomState> {
        let since_sweep = self.items.iter().rev().map_while(|(at, item)| match item {
            Item::Note(note) => Some((note.key(), *at)),
            Item::Sweep(_) => None,
        });
        let mut last = HashMap::default();
        since_sweep.for_each(|(key, at)| {
            last.entry(key).or_insert(at);
        });
        last
    }
}

fn merge(waiting: &Note, note: &Note) -> Merged {
    match (waiting, note) {
        (Note::Add { is_initial, .. }, Note::Update { new, .. }) => Merged::One(Note::Add {
            object: new.clone(),
            is_initial: *is_initial,
        }),
        (Note::Update { old, .. }, Note::Update { new, .. }) => Merged::One(Note::Update {
            old: old.clone(),
            new: new.clone(),
        }),
        (Note::Update { .. }, Note::Delete(deleted)) => Merged::One(Note::Delete(deleted.clone())),
        (Note::Add { .. }, Note::Delete(_)) => Merged::Nothing,
        // A deletion and what comes after it concern two lives of one name.
        (Note::Delete(_), _) | (_, Note::Add { .. }) => Merged::Both,
    }
}
