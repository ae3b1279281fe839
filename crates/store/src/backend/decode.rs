//! Turning rows into objects and events, on two processors: that is most of the time that a start
//! takes.
//!
//! Every row is checked from its first to its last byte. The documents themselves are put together
//! when they are needed, which takes several times as long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use redb::{AccessGuard, ReadOnlyTable, ReadableTable, ReadableTableMetadata, StorageError};
use windlass_core::{Checker, Key, Unpacker};

use super::parts::Uses;
use super::row::{Id, LogRow, ObjectRow};
use super::tables::engine;
use crate::{Entry, OpenError, Resource};

/// Rows that one of two readers takes at a time.
const BATCH_ROWS: u64 = 64;

/// What rows are read with.
pub(super) struct Source {
    /// Knows all parts.
    pub(super) checker: Checker,
    /// Set before any document is asked for.
    pub(super) unpacker: Arc<OnceLock<Unpacker>>,
    /// Events above this revision are in the log.
    pub(super) floor: u64,
    /// The newest revision.
    pub(super) revision: u64,
}

impl Source {
    /// `None` when the object is damaged.
    fn entry(&self, key: Key, revision: u64, packed: &[u8], uses: &mut Uses) -> Option<Arc<Entry>> {
        let count = |number| *uses.entry(number).or_default() += 1;
        self.checker.doc(packed, count).ok()?;
        let (unpacker, packed) = (self.unpacker.clone(), Box::<[u8]>::from(packed));
        Some(Entry::unread(key, revision, packed.len(), move || {
            let unpacker = unpacker.get();
            let unpacker = unpacker.expect("invariant: parts are read before the store is open");
            unpacker
                .doc(&packed)
                .expect("invariant: rows are checked before they become entries")
        }))
    }
}

/// Objects of one resource, in the order of their keys.
type Run = (Resource, Vec<Arc<Entry>>);

/// All objects, in the order of their ids.
#[derive(Default)]
pub(super) struct Present {
    /// One for each resource.
    pub(super) runs: Vec<Run>,
    /// Objects that changed lately.
    pub(super) recent: Vec<Arc<Entry>>,
    /// Objects whose lives end, in microseconds since 1970.
    pub(super) mortal: Vec<(Resource, Arc<Entry>, i64)>,
    /// How often they use parts.
    pub(super) uses: Uses,
    /// How long their rows are.
    pub(super) bytes: u64,
}

type Objects = ReadOnlyTable<&'static str, &'static [u8]>;
type ObjectsRow<'a> = (
    AccessGuard<'a, &'static str>,
    AccessGuard<'a, &'static [u8]>,
);

impl Present {
    /// Reads all of it.
    pub(super) fn read(table: &Objects, source: &Source) -> Result<Self, OpenError> {
        let rows = Rows::of(table)?;
        Self::read_end(table.iter().map_err(engine)?, &rows, source)
    }

    /// Reads all of it, together with another thread that begins at the other end once it has
    /// done something else.
    pub(super) fn read_beside<T: Send>(
        table: &Objects,
        source: &Source,
        other: impl FnOnce() -> Result<T, OpenError> + Send,
    ) -> Result<(Self, T), OpenError> {
        let rows = Rows::of(table)?;
        thread::scope(|scope| {
            let last = scope.spawn(|| {
                let done = other()?;
                let end = table.iter().map_err(engine)?.rev();
                let mut last = Self::read_end(end, &rows, source)?;
                last.reverse();
                Ok((last, done))
            });
            let mut first = Self::read_end(table.iter().map_err(engine)?, &rows, source)?;
            let failed = |_| Err(damaged("an object cannot be read"));
            let (last, done) = last.join().unwrap_or_else(failed)?;
            first.append(last);
            Ok((first, done))
        })
    }

    /// Reads from one end as long as rows are left, which whoever reads from the other end takes
    /// from, too.
    fn read_end<'a>(
        mut end: impl Iterator<Item = Result<ObjectsRow<'a>, StorageError>>,
        rows: &Rows,
        source: &Source,
    ) -> Result<Self, OpenError> {
        let mut read = Self::default();
        loop {
            let count = rows.take();
            if count == 0 {
                return Ok(read);
            }
            for _ in 0..count {
                let missing = || damaged("objects are missing");
                let (id, row) = end.next().ok_or_else(missing)?.map_err(engine)?;
                let (id, row) = (id.value(), row.value());
                let broken = || damaged(&format!("object {id:?}"));
                let revision = read.add(id, row, source).ok_or_else(broken)?;
                if revision > source.revision {
                    return Err(damaged(&format!("object {id:?} is from the future")));
                }
            }
        }
    }

    /// Takes up a row and returns its revision; `None` when it is damaged.
    fn add(&mut self, id: &str, row: &[u8], source: &Source) -> Option<u64> {
        self.bytes += (id.len() + row.len()) as u64;
        let row = ObjectRow::decode(id, row)?;
        let (name, key) = Id::split(id)?;
        let entry = source.entry(key, row.revision, row.packed, &mut self.uses)?;
        let (resource, run) = self.run(name);
        run.push(entry.clone());
        if let Some(end) = row.expiry {
            let resource = resource.clone();
            self.mortal.push((resource, entry.clone(), end));
        }
        if row.revision > source.floor {
            self.recent.push(entry);
        }
        Some(row.revision)
    }

    /// The run of a resource, which is mostly that of the row before.
    fn run(&mut self, name: &str) -> &mut Run {
        let is_same = |(resource, _): &Run| resource.as_str() == name;
        if !self.runs.last().is_some_and(is_same) {
            self.runs.push((Resource::from_text(name), Vec::new()));
        }
        self.runs.last_mut().expect("invariant: one was pushed")
    }

    /// Puts the objects in order that were read from the last to the first.
    fn reverse(&mut self) {
        self.runs.reverse();
        for (_, run) in &mut self.runs {
            run.reverse();
        }
    }

    /// Adds what comes after.
    fn append(&mut self, later: Self) {
        for (resource, entries) in later.runs {
            self.run(resource.as_str()).1.extend(entries);
        }
        self.recent.extend(later.recent);
        self.mortal.extend(later.mortal);
        for (number, count) in later.uses {
            *self.uses.entry(number).or_default() += count;
        }
        self.bytes += later.bytes;
    }
}

/// The rows that nobody has taken yet.
struct Rows {
    left: AtomicU64,
}

impl Rows {
    fn of(table: &Objects) -> Result<Self, OpenError> {
        let left = AtomicU64::new(table.len().map_err(engine)?);
        Ok(Self { left })
    }

    /// Takes a batch and returns how many rows it has.
    fn take(&self) -> u64 {
        let less = |left: u64| Some(left.saturating_sub(BATCH_ROWS));
        let had = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .unwrap_or_default();
        had.min(BATCH_ROWS)
    }
}

/// What happened lately, oldest first.
#[derive(Default)]
pub(super) struct Past {
    pub(super) events: Vec<PastEvent>,
    /// How often the objects before the events use parts.
    pub(super) uses: Uses,
    /// How long the rows are.
    pub(super) bytes: u64,
    names: Names,
}

/// A row of the log.
pub(super) struct PastEvent {
    pub(super) revision: u64,
    pub(super) resource: Resource,
    pub(super) key: Key,
    pub(super) is_delete: bool,
    /// The object before the event.
    pub(super) previous: Option<Arc<Entry>>,
}

impl Past {
    /// Reads all of it.
    pub(super) fn read(
        log: &ReadOnlyTable<u64, &'static [u8]>,
        source: &Source,
    ) -> Result<Self, OpenError> {
        let mut past = Self::default();
        for row in log.iter().map_err(engine)? {
            let (revision, row) = row.map_err(engine)?;
            let revision = revision.value();
            let broken = || damaged(&format!("event {revision}"));
            past.add(revision, row.value(), source).ok_or_else(broken)?;
        }
        Ok(past)
    }

    /// `None` when the row is damaged.
    fn add(&mut self, revision: u64, row: &[u8], source: &Source) -> Option<()> {
        self.bytes += row.len() as u64;
        let row = LogRow::decode(revision, row)?;
        let (resource, key) = Id::split(row.id)?;
        let previous = match row.previous {
            Some((before, packed)) => {
                Some(source.entry(key.clone(), before, packed, &mut self.uses)?)
            }
            None => None,
        };
        self.events.push(PastEvent {
            revision,
            resource: self.names.resource(resource),
            key,
            is_delete: row.is_delete,
            previous,
        });
        Some(())
    }
}

/// The resource of the row before, which the next one mostly has, too.
#[derive(Default)]
struct Names(Option<Resource>);

impl Names {
    fn resource(&mut self, name: &str) -> Resource {
        match &self.0 {
            Some(last) if last.as_str() == name => last.clone(),
            _ => self.0.insert(Resource::from_text(name)).clone(),
        }
    }
}

pub(super) fn damaged(what: &str) -> OpenError {
    OpenError::Damaged(what.to_owned())
}
