//! The pending notifications of one handler.

use std::collections::BTreeMap;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use windlass_core::Key;

use crate::{
    indexer::Snapshot,
    object::{Deleted, Obj},
};

/// The number of objects that a sweep takes from its snapshot at a time.
const SWEEP_PAGE: usize = 256;

/// A notification for a handler.
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
    Life(Life),
    Sweep(Sweep),
}

impl Item {
    /// The object that it is about, if it is about one.
    fn key(&self) -> Option<Key> {
        match self {
            Self::Note(note) => Some(note.key()),
            Self::Life(life) => Some(life.end.key()),
            Self::Sweep(_) => None,
        }
    }

    fn is_whole_life(&self) -> bool {
        matches!(
            self,
            Self::Life(Life {
                end: Note::Delete(_),
                ..
            })
        )
    }
}

/// An object whose coming was not told before its end began. The two are not merged: a handler
/// that counts what it has asked for has to hear of both.
#[derive(Clone, Debug)]
struct Life {
    object: Obj,
    is_initial: bool,
    /// The update that marks it for deletion, or its deletion.
    end: Note,
}

/// All objects of a snapshot, told one by one. It takes no memory of its own.
#[derive(Debug)]
struct Sweep {
    snapshot: Snapshot,
    purpose: Purpose,
    page: std::vec::IntoIter<Obj>,
    last: Option<Obj>,
}

/// The purpose of a sweep, which notifies of all objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The initial objects of a new handler.
    Initial,
    /// A resync.
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

/// The progress of the initial notifications of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// There is no complete state yet.
    Awaited,
    /// They are being told.
    Sweeping,
    /// It has handled the last of them.
    Done,
}

/// Notifications in the order of delivery.
///
/// Up to a limit each notification stands for itself. Above it, one is merged with the one that
/// waits for the same object, so that the buffer never holds much more than there are objects. A
/// handler then misses intermediate states, but notifications are never out of order and the last
/// state is never missed.
///
/// Objects that came and went meanwhile are notified too, up to the limit once more. Only objects
/// that come and go after that are left out.
#[derive(Debug)]
pub(crate) struct Buffer {
    items: BTreeMap<u64, Item>,
    next: u64,
    limit: usize,
    start: Start,
    is_closed: bool,
    /// True if the handler works on a notification and has not asked for the next.
    is_handling: bool,
    /// While notes are merged: the last note of each object, since the last sweep. A note before a
    /// sweep cannot be changed, because the sweep tells a state in between.
    last: Option<HashMap<Key, u64, RandomState>>,
    /// The number of waiting objects that came and went; no more than the limit.
    whole_lives: usize,
    /// The number of notifications that have been merged into others.
    coalesced: u64,
}

/// The result of merging two notifications on one object.
enum Merged {
    /// One notification, with this many less in the buffer.
    One(Item, u64),
    /// None: this many notifications on an object that came and went are left out.
    Nothing(u64),
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
            whole_lives: 0,
            coalesced: 0,
        }
    }

    /// Returns true if the handler has handled every object that existed when it was added.
    pub(crate) fn has_synced(&self) -> bool {
        self.start == Start::Done
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(crate) fn coalesced(&self) -> u64 {
        self.coalesced
    }

    /// Returns true if no notification waits or is being handled.
    pub(crate) fn is_idle(&self) -> bool {
        self.items.is_empty() && !self.is_handling
    }

    /// The number of waiting notifications, each sweep and each life of an object counted as one.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Closes the buffer and drops pending notifications.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.items.clear();
        self.last = None;
        self.whole_lives = 0;
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

    /// The next notification. The call says that the one before has been handled.
    pub(crate) fn pop(&mut self) -> Option<Note> {
        let note = self.pop_first();
        self.is_handling = note.is_some();
        note
    }

    fn pop_first(&mut self) -> Option<Note> {
        loop {
            let mut first = self.items.first_entry()?;
            match first.get_mut() {
                Item::Note(_) => break,
                Item::Life(life) => {
                    let Life {
                        object,
                        is_initial,
                        end,
                    } = life.clone();
                    let was_whole = first.get().is_whole_life();
                    self.whole_lives -= usize::from(was_whole);
                    first.insert(Item::Note(end));
                    return Some(Note::Add { object, is_initial });
                }
                Item::Sweep(sweep) => {
                    if let Some(note) = sweep.next() {
                        return Some(note);
                    }
                    if sweep.purpose == Purpose::Initial {
                        self.start = Start::Done;
                    }
                    first.remove();
                }
            }
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

    /// Keeps `last` true after the first notification was taken, and drops it once the buffer is
    /// half empty.
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
        let waiting = last
            .get(&key)
            .and_then(|at| self.items.get(at).map(|waiting| (*at, waiting)));
        let has_room = self.whole_lives < self.limit;
        match waiting.map(|(at, waiting)| (at, merge(waiting, &note, has_room))) {
            Some((at, Merged::One(merged, fewer))) => {
                self.whole_lives += usize::from(merged.is_whole_life());
                self.items.insert(at, merged);
                self.coalesced += fewer;
            }
            Some((at, Merged::Nothing(fewer))) => {
                self.items.remove(&at);
                last.remove(&key);
                self.coalesced += fewer;
            }
            Some((_, Merged::Both)) | None => {
                let at = self.append(Item::Note(note));
                last.insert(key, at);
            }
        }
        self.last = Some(last);
    }

    fn last_notes(&self) -> HashMap<Key, u64, RandomState> {
        let since_sweep = self
            .items
            .iter()
            .rev()
            .map_while(|(at, item)| item.key().map(|key| (key, *at)));
        let mut last = HashMap::default();
        since_sweep.for_each(|(key, at)| {
            last.entry(key).or_insert(at);
        });
        last
    }
}

/// Merges a note with what waits for the same object. `has_room` says whether one more object may
/// wait that came and went.
fn merge(waiting: &Item, note: &Note, has_room: bool) -> Merged {
    match waiting {
        Item::Note(waiting) => merge_notes(waiting, note, has_room),
        Item::Life(life) => merge_life(life, note, has_room),
        Item::Sweep(_) => Merged::Both,
    }
}

fn merge_notes(waiting: &Note, note: &Note, has_room: bool) -> Merged {
    match (waiting, note) {
        (Note::Add { object, is_initial }, Note::Update { new, .. }) => {
            let (object, is_initial) = (object.clone(), *is_initial);
            if new.meta().is_deleting() && !object.meta().is_deleting() {
                let (old, new) = (object.clone(), new.clone());
                let end = Note::Update { old, new };
                return Merged::One(life(object, is_initial, end), 0);
            }
            let object = new.clone();
            Merged::One(Item::Note(Note::Add { object, is_initial }), 1)
        }
        (Note::Update { old, .. }, Note::Update { new, .. }) => {
            let (old, new) = (old.clone(), new.clone());
            Merged::One(Item::Note(Note::Update { old, new }), 1)
        }
        (Note::Update { .. }, Note::Delete(_)) => Merged::One(Item::Note(note.clone()), 1),
        (Note::Add { object, is_initial }, Note::Delete(_)) if has_room => {
            Merged::One(life(object.clone(), *is_initial, note.clone()), 0)
        }
        (Note::Add { .. }, Note::Delete(_)) => Merged::Nothing(2),
        // The deletion ends one object; what follows is about another one of the same name.
        (Note::Delete(_), _) | (_, Note::Add { .. }) => Merged::Both,
    }
}

fn merge_life(waiting: &Life, note: &Note, has_room: bool) -> Merged {
    let (object, is_initial) = (waiting.object.clone(), waiting.is_initial);
    match (&waiting.end, note) {
        (Note::Update { old, .. }, Note::Update { new, .. }) => {
            let (old, new) = (old.clone(), new.clone());
            Merged::One(life(object, is_initial, Note::Update { old, new }), 1)
        }
        (Note::Update { .. }, Note::Delete(_)) if has_room => {
            Merged::One(life(object, is_initial, note.clone()), 1)
        }
        (Note::Update { .. }, Note::Delete(_)) => Merged::Nothing(3),
        (Note::Delete(_) | Note::Add { .. }, _) | (_, Note::Add { .. }) => Merged::Both,
    }
}

fn life(object: Obj, is_initial: bool, end: Note) -> Item {
    Item::Life(Life {
        object,
        is_initial,
        end,
    })
}

#[cfg(test)]
mod tests;
