//! Turning rows into objects and events, on two processors: that is most of the time that a start
//! takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use redb::{AccessGuard, ReadOnlyTable, ReadableTable, ReadableTableMetadata, StorageError};
use windlass_core::{InternerUsage, Key, Unpacker, expect_more_nodes, interner_usage};

use super::parts::Uses;
use super::row::{Id, LogRow, ObjectRow};
use super::tables::engine;
use crate::{Entry, OpenError, Resource};

/// Rows that one of two readers takes at a time.
const BATCH_ROWS: u64 = 64;
/// One part in so many of the rows tells how much room the others will need.
const SAMPLE: u64 = 16;

/// A row of the table of objects.
pub(super) struct Object {
    pub(super) resource: Resource,
    pub(super) entry: Arc<Entry>,
    /// The end of its life, in microseconds since 1970.
    pub(super) expiry: Option<i64>,
}

/// All objects, in the order of their ids.
#[derive(Default)]
pub(super) struct Present {
    pub(super) objects: Vec<Object>,
    /// How often they use parts.
    pub(super) uses: Uses,
    /// How long their rows are.
    pub(super) bytes: u64,
    names: Names,
}

type Objects = ReadOnlyTable<&'static str, &'static [u8]>;
type ObjectsRow<'a> = (
    AccessGuard<'a, &'static str>,
    AccessGuard<'a, &'static [u8]>,
);

impl Present {
    /// Reads all of it.
    pub(super) fn read(table: &Objects, unpacker: &Unpacker) -> Result<Self, OpenError> {
        let rows = Rows::of(table)?;
        Self::read_end(table.iter().map_err(engine)?, &rows, unpacker)
    }

    /// Reads all of it, together with another thread that begins at the other end once it has
    /// done something else.
    pub(super) fn read_beside<T: Send>(
        table: &Objects,
        unpacker: &Unpacker,
        other: impl FnOnce() -> Result<T, OpenError> + Send,
    ) -> Result<(Self, T), OpenError> {
        let rows = Rows::of(table)?;
        thread::scope(|scope| {
            let last = scope.spawn(|| {
                let done = other()?;
                let end = table.iter().map_err(engine)?.rev();
                Ok((Self::read_end(end, &rows, unpacker)?, done))
            });
            let mut first = Self::read_end(table.iter().map_err(engine)?, &rows, unpacker)?;
            let failed = |_| Err(OpenError::Damaged("an object cannot be read".to_owned()));
            let (last, done) = last.join().unwrap_or_else(failed)?;
            first.objects.extend(last.objects.into_iter().rev());
            for (number, count) in last.uses {
                *first.uses.entry(number).or_default() += count;
            }
            first.bytes += last.bytes;
            Ok((first, done))
        })
    }

    /// Reads from one end as long as rows are left, which whoever reads from the other end takes
    /// from, too.
    fn read_end<'a>(
        mut end: impl Iterator<Item = Result<ObjectsRow<'a>, StorageError>>,
        rows: &Rows,
        unpacker: &Unpacker,
    ) -> Result<Self, OpenError> {
        let mut read = Self::default();
        loop {
            let count = rows.take();
            if count == 0 {
                return Ok(read);
            }
            for _ in 0..count {
                let missing = || OpenError::Damaged("objects are missing".to_owned());
                let (id, row) = end.next().ok_or_else(missing)?.map_err(engine)?;
                let broken = || OpenError::Damaged(format!("object {:?}", id.value()));
                read.add(id.value(), row.value(), unpacker)
                    .ok_or_else(broken)?;
            }
        }
    }

    /// `None` when the row is damaged.
    fn add(&mut self, id: &str, row: &[u8], unpacker: &Unpacker) -> Option<()> {
        self.bytes += row.len() as u64;
        let row = ObjectRow::decode(id, row)?;
        let (resource, key) = Id::split(id)?;
        let entry = entry(key, row.revision, row.packed, unpacker, &mut self.uses)?;
        self.objects.push(Object {
            resource: self.names.resource(resource),
            entry,
            expiry: row.expiry,
        });
        Some(())
    }
}

/// The rows that nobody has taken yet.
struct Rows {
    left: AtomicU64,
    /// When so few are left, it is known how much room they need.
    sampled: u64,
    before: InternerUsage,
}

impl Rows {
    fn of(table: &Objects) -> Result<Self, OpenError> {
        let count = table.len().map_err(engine)?;
        Ok(Self {
            left: AtomicU64::new(count),
            sampled: count - count / SAMPLE,
            before: interner_usage(),
        })
    }

    /// Takes a batch and returns how many rows it has.
    fn take(&self) -> u64 {
        let less = |left: u64| Some(left.saturating_sub(BATCH_ROWS));
        let had = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .unwrap_or_default();
        let count = had.min(BATCH_ROWS);
        if had > self.sampled && had - count <= self.sampled {
            expect_more_nodes(&self.before, SAMPLE as usize - 1);
        }
        count
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
        unpacker: &Unpacker,
    ) -> Result<Self, OpenError> {
        let mut past = Self::default();
        for row in log.iter().map_err(engine)? {
            let (revision, row) = row.map_err(engine)?;
            let revision = revision.value();
            let broken = || OpenError::Damaged(format!("event {revision}"));
            past.add(revision, row.value(), unpacker)
                .ok_or_else(broken)?;
        }
        Ok(past)
    }

    /// `None` when the row is damaged.
    fn add(&mut self, revision: u64, row: &[u8], unpacker: &Unpacker) -> Option<()> {
        self.bytes += row.len() as u64;
        let row = LogRow::decode(revision, row)?;
        let (resource, key) = Id::split(row.id)?;
        let previous = match row.previous {
            Some((before, packed)) => Some(entry(
                key.clone(),
                before,
                packed,
                unpacker,
                &mut self.uses,
            )?),
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

fn entry(
    key: Key,
    revision: u64,
    packed: &[u8],
    unpacker: &Unpacker,
    uses: &mut Uses,
) -> Option<Arc<Entry>> {
    let count = |number| *uses.entry(number).or_default() += 1;
    let doc = unpacker.doc_and_parts(packed, count).ok()?;
    Some(Arc::new(Entry { key, doc, revision }))
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
