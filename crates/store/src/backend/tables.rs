//! The tables: all objects and their recent history, in one file of the embedded engine.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use redb::{Database, ReadableTable, Table, TableDefinition, WriteTransaction};

use super::log::Frame;
use super::parts::{PartTables, Parts};
use super::record::{self, Logged};
use super::row::{LogRow, ObjectRow, PartRow};
use crate::{DiskError, OpenError};

/// The format that this program writes, and the newest that it reads.
pub(super) const FORMAT: u64 = 4;
/// The oldest format that this program reads. It had no log beside the tables; the one after it
/// had a log, but no state file that tells when one is missing.
pub(super) const OLDEST_FORMAT: u64 = 2;

/// Id of an object to its row.
pub(super) const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
/// Number of a part that objects share to its row.
pub(super) const PARTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("parts");
/// A second copy of the parts that are short enough: many objects use one, and damage to a page
/// must not cost all of them. Read by repairs alone.
pub(super) const PARTS_COPY: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("parts-copy");
/// Revision of an event to its row.
pub(super) const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
/// Numbers about the whole store.
pub(super) const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
/// Texts about the whole store.
pub(super) const TEXTS: TableDefinition<'_, &str, &str> = TableDefinition::new("texts");

/// Names in [`NUMBERS`] and [`TEXTS`].
pub(super) mod field {
    /// The format of everything else.
    pub(crate) const FORMAT: &str = "format";
    /// The revision of the last commit.
    pub(crate) const REVISION: &str = "revision";
    /// The log is complete above this revision.
    pub(crate) const FLOOR: &str = "floor";
    /// How many objects there are, to notice one that is missing.
    pub(crate) const OBJECTS: &str = "objects";
    /// Set while a store runs that does not wait for the disk: no revision above was given out.
    pub(crate) const RESERVED: &str = "reserved";
    /// The mark of the frames in the log. Older stores have none.
    pub(crate) const MARK: &str = "mark";
    /// The identity of the store.
    pub(crate) const UID: &str = "uid";
}

/// Figures that the commits carry on.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) revision: u64,
    pub(super) floor: u64,
    pub(super) objects: u64,
    /// What frames of the log are known by.
    pub(super) mark: u32,
    /// Rows of objects with their ids, and of the parts that they share. Known once all was read.
    pub(super) object_bytes: u64,
    pub(super) log_rows: u64,
    pub(super) log_bytes: u64,
    /// Zero unless revisions are reserved ahead.
    pub(super) reserved: u64,
}

/// How much history the tables keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) log_rows: u64,
    pub(super) log_bytes: u64,
}

impl Limits {
    fn are_passed_by(self, counts: &Counts) -> bool {
        counts.log_rows > self.log_rows || counts.log_bytes > self.log_bytes
    }
}

/// The engine and what it has to keep count of.
pub(super) struct Tables {
    database: Database,
    counts: Counts,
    limits: Limits,
    /// The writer of the log counts new uses, this one those that end.
    parts: Arc<Mutex<Parts>>,
    /// Whether the pages of the file were verified.
    is_checked: bool,
    /// Bytes of all rows.
    used: Arc<AtomicU64>,
}

/// What moves into the tables in one transaction.
#[derive(Debug, Default)]
pub(super) struct Move {
    /// Commits in their order.
    pub(super) frames: Vec<Frame>,
    /// History up to this revision may be forgotten.
    pub(super) floor: u64,
    /// Revisions that may be given out before the tables hear of them; zero if none may.
    pub(super) reserved: u64,
}

impl Tables {
    pub(super) fn new(
        database: Database,
        counts: Counts,
        limits: Limits,
        parts: Arc<Mutex<Parts>>,
        is_checked: bool,
    ) -> Self {
        Self {
            database,
            counts,
            limits,
            parts,
            is_checked,
            used: Arc::default(),
        }
    }

    /// Bytes of all rows, kept up to date for whoever asks from another thread.
    pub(super) fn used(&self) -> Arc<AtomicU64> {
        self.note_used();
        self.used.clone()
    }

    fn note_used(&self) {
        let used = self.counts.object_bytes + self.counts.log_bytes;
        self.used.store(used, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether there is more history than there should be.
    pub(super) fn has_too_much(&self) -> bool {
        self.limits.are_passed_by(&self.counts)
    }

    /// Makes all of this durable, or nothing.
    pub(super) fn apply(&mut self, changes: &Move) -> Result<(), DiskError> {
        if !self.is_checked {
            check(&mut self.database).map_err(|error| DiskError::new(&error))?;
            self.is_checked = true;
        }
        let mut counts = self.counts.clone();
        let (database, limits, parts) = (&self.database, self.limits, &self.parts);
        let commit = || {
            let transaction = database.begin_write()?;
            put_frames(&transaction, &changes.frames, &mut counts)?;
            forget(&transaction, limits, changes.floor, &mut counts, parts)?;
            counts.reserved = changes.reserved;
            counts.save(&transaction)?;
            transaction.commit()?;
            Ok(())
        };
        guarded(commit)?;
        self.counts = counts;
        self.note_used();
        Ok(())
    }
}

/// Moves commits into the tables before anything else is read from them. What history is too much
/// then goes with the next move.
pub(super) fn replay(database: &Database, frames: &[Frame]) -> Result<(), DiskError> {
    guarded(|| {
        let transaction = database.begin_write()?;
        let mut counts = Counts::read(&transaction.open_table(NUMBERS)?)?;
        put_frames(&transaction, frames, &mut counts)?;
        counts.save(&transaction)?;
        transaction.commit()?;
        Ok(())
    })
}

/// The engine may panic on a damaged file, which is no reason to take the process down.
fn guarded(work: impl FnOnce() -> Result<(), redb::Error>) -> Result<(), DiskError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(engine::<redb::Error>),
        Err(_) => Err(DiskError::from_text("the engine panicked")),
    }
}

/// Verifies every page: what is not noticed now would be noticed by overwriting something else.
pub(super) fn check(database: &mut Database) -> Result<(), OpenError> {
    match database.check_integrity() {
        Ok(true) => Ok(()),
        Ok(false) => Err(OpenError::Damaged("pages do not fit together".to_owned())),
        Err(error) => Err(OpenError::Damaged(error.to_string())),
    }
}

impl Counts {
    /// The figures that are in the tables; the others are zero.
    pub(super) fn read(
        numbers: &impl ReadableTable<&'static str, u64>,
    ) -> Result<Self, redb::Error> {
        let number = |name: &str| {
            let number = numbers.get(name)?;
            number
                .map(|number| number.value())
                .ok_or_else(|| redb::Error::Corrupted(name.to_owned()))
        };
        Ok(Self {
            revision: number(field::REVISION)?,
            floor: number(field::FLOOR)?,
            objects: number(field::OBJECTS)?,
            reserved: number(field::RESERVED)?,
            mark: numbers
                .get(field::MARK)?
                .map_or(0, |mark| mark.value() as u32),
            ..Self::default()
        })
    }

    pub(super) fn save(&self, transaction: &WriteTransaction) -> Result<(), redb::Error> {
        let mut numbers = transaction.open_table(NUMBERS)?;
        numbers.insert(field::REVISION, self.revision)?;
        numbers.insert(field::FLOOR, self.floor)?;
        numbers.insert(field::OBJECTS, self.objects)?;
        numbers.insert(field::RESERVED, self.reserved)?;
        Ok(())
    }
}

/// The tables that writes change, open in one transaction.
struct Open<'a> {
    objects: Table<'a, &'static str, &'static [u8]>,
    log: Table<'a, u64, &'static [u8]>,
    parts: PartTables<'a>,
}

impl<'a> Open<'a> {
    fn new(transaction: &'a WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            objects: transaction.open_table(OBJECTS)?,
            log: transaction.open_table(LOG)?,
            parts: PartTables::open(transaction)?,
        })
    }
}

fn put_frames(
    transaction: &WriteTransaction,
    frames: &[Frame],
    counts: &mut Counts,
) -> Result<(), redb::Error> {
    if frames.is_empty() {
        return Ok(());
    }
    let mut tables = Open::new(transaction)?;
    let mut row = Vec::new();
    for frame in frames {
        let senseless = || redb::Error::Corrupted("a commit in the log".to_owned());
        let writes = record::decode(frame.content()).ok_or_else(senseless)?;
        for write in &writes {
            put_write(write, &mut tables, counts, &mut row)?;
        }
    }
    Ok(())
}

/// Writes an object, or removes it, and moves what was there to the log.
fn put_write(
    write: &Logged<'_>,
    tables: &mut Open<'_>,
    counts: &mut Counts,
    scratch: &mut Vec<u8>,
) -> Result<(), redb::Error> {
    for (number, part) in &write.parts {
        PartRow::encode(scratch, *number, part);
        counts.object_bytes += tables.parts.insert(*number, scratch)?;
    }
    let replaced = match write.row {
        Some(row) => tables.objects.insert(write.id, row)?,
        None => tables.objects.remove(write.id)?,
    };
    let damaged = || redb::Error::Corrupted(format!("object {:?}", write.id));
    let previous = match &replaced {
        Some(row) => {
            let row = ObjectRow::decode(write.id, row.value()).ok_or_else(damaged)?;
            Some((row.revision, row.packed))
        }
        None => None,
    };
    let len = |row: &[u8]| (write.id.len() + row.len()) as u64;
    counts.object_bytes += write.row.map_or(0, len);
    let gone = replaced.as_ref().map_or(0, |row| len(row.value()));
    counts.object_bytes = counts.object_bytes.saturating_sub(gone);
    let is_delete = write.row.is_none();
    LogRow {
        is_delete,
        id: write.id,
        previous,
    }
    .encode(scratch, write.revision);
    tables.log.insert(write.revision, scratch.as_slice())?;
    counts.revision = write.revision;
    counts.objects = match (is_delete, replaced.is_some()) {
        (true, _) => counts.objects.saturating_sub(1),
        (false, true) => counts.objects,
        (false, false) => counts.objects + 1,
    };
    counts.log_rows += 1;
    counts.log_bytes += scratch.len() as u64;
    Ok(())
}

/// Forgets the history that is older than `floor` or too much.
fn forget(
    transaction: &WriteTransaction,
    limits: Limits,
    floor: u64,
    counts: &mut Counts,
    parts: &Mutex<Parts>,
) -> Result<(), redb::Error> {
    let mut tables = Open::new(transaction)?;
    while limits.are_passed_by(counts) {
        drop_row(&mut tables, counts, parts)?;
    }
    while oldest(&tables.log)?.is_some_and(|revision| revision <= floor) {
        drop_row(&mut tables, counts, parts)?;
    }
    counts.floor = counts.floor.max(floor);
    Ok(())
}

/// The revision of the oldest row of the log.
fn oldest(log: &Table<'_, u64, &'static [u8]>) -> Result<Option<u64>, redb::Error> {
    Ok(log.first()?.map(|(revision, _)| revision.value()))
}

/// Drops the oldest row of the log.
fn drop_row(
    tables: &mut Open<'_>,
    counts: &mut Counts,
    parts: &Mutex<Parts>,
) -> Result<(), redb::Error> {
    match tables.log.pop_first()? {
        Some((revision, row)) => {
            let damaged = || redb::Error::Corrupted(format!("event {}", revision.value()));
            let event = LogRow::decode(revision.value(), row.value()).ok_or_else(damaged)?;
            if let Some((_, packed)) = event.previous {
                let freed = parts.lock().release(packed, &mut tables.parts)?;
                counts.object_bytes = counts.object_bytes.saturating_sub(freed);
            }
            counts.floor = counts.floor.max(revision.value());
            counts.log_rows = counts.log_rows.saturating_sub(1);
            counts.log_bytes = counts.log_bytes.saturating_sub(row.value().len() as u64);
        }
        None => (counts.log_rows, counts.log_bytes) = (0, 0),
    }
    Ok(())
}

pub(super) fn engine<E: Into<redb::Error>>(error: E) -> DiskError {
    DiskError::new(&error.into())
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables")
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}
