//! The embedded disk: tables of redb in one file.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::redb::backends::FileBackend;
use ::redb::{
    Database, Durability as Sync, ReadableTable, StorageBackend, Table, TableDefinition,
    WriteTransaction,
};

use super::directory::Directory;
use super::load;
use super::parts::{Parts, PartsTable};
use super::row::{Id, LogRow, ObjectRow};
use super::{Backend, Loaded, Write};
use crate::{Disk, DiskError, Durability, EventKind, OpenError, Place, StoreOptions};

/// The newest format that this program reads and the one that it writes.
pub(super) const FORMAT: u64 = 2;

/// Id of an object to its row.
pub(super) const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
/// Number of a part that objects share to its row.
pub(super) const PARTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("parts");
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
    /// The identity of the store.
    pub(crate) const UID: &str = "uid";
}

/// Everything is read from memory: the engine needs pages at hand only while it writes.
const CACHE_BYTES: usize = 16 << 20;

/// A file of less than this is never too large.
const SPARSE_BYTES: u64 = 16 << 20;
/// A larger file is compacted when it is opened and its rows fill less than one part in so many.
const SPARSE_FACTOR: u64 = 4;

/// Revisions that a store which does not wait for the disk reserves ahead.
const RESERVE: u64 = 20_000;

/// The engine and what it has to keep count of.
pub(super) struct Redb {
    /// Dropped first: closing it writes to the file.
    database: Database,
    len: Length,
    /// Held as long as the database.
    _directory: Option<Directory>,
    durability: Durability,
    counts: Counts,
    limits: Limits,
    /// Reused for every row.
    rows: Rows,
}

/// Figures that the commits carry on.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    pub(super) revision: u64,
    pub(super) floor: u64,
    pub(super) objects: u64,
    /// As of the start, with the parts that objects share.
    pub(super) object_bytes: u64,
    pub(super) log_rows: u64,
    pub(super) log_bytes: u64,
    /// Zero unless revisions are reserved ahead.
    pub(super) reserved: u64,
}

#[derive(Debug)]
struct Limits {
    log_rows: u64,
    log_bytes: u64,
}

#[derive(Debug, Default)]
struct Rows {
    object: Vec<u8>,
    log: Vec<u8>,
    parts: Parts,
}

type Length = Box<dyn Fn() -> io::Result<u64> + Send>;

/// Opens the database and reads all of it.
pub(super) fn open(options: &StoreOptions) -> Result<(Box<dyn Backend>, Loaded), OpenError> {
    let (file, len, directory) = storage(&options.place)?;
    // The engine may panic on a damaged file, which is no reason to take the process down.
    let loading = || {
        let mut builder = Database::builder();
        let database = builder
            .set_cache_size(CACHE_BYTES)
            .create_with_backend(file);
        let mut database = database.map_err(engine)?;
        check(&mut database)?;
        let opened = load::load(&database, options)?;
        shrink(&mut database, &len, &opened.counts)?;
        Ok::<_, OpenError>((database, opened))
    };
    let opened = catch_unwind(AssertUnwindSafe(loading));
    let (database, opened) =
        opened.map_err(|_| OpenError::Damaged("the engine cannot read it".to_owned()))??;
    let mut redb = Redb {
        database,
        len,
        _directory: directory,
        durability: options.durability,
        counts: opened.counts,
        limits: Limits {
            log_rows: options.history_limit as u64,
            log_bytes: options.log_bytes_limit,
        },
        rows: Rows {
            parts: opened.parts,
            ..Rows::default()
        },
    };
    redb.reserve()?;
    Ok((Box::new(redb), opened.loaded))
}

/// Verifies every page: what is not noticed now would be noticed by overwriting something else.
fn check(database: &mut Database) -> Result<(), OpenError> {
    match database.check_integrity() {
        Ok(true) => Ok(()),
        Ok(false) => Err(OpenError::Damaged("pages do not fit together".to_owned())),
        Err(error) => Err(OpenError::Damaged(error.to_string())),
    }
}

/// Gives room back to the file system when most of the file is empty.
fn shrink(database: &mut Database, len: &Length, counts: &Counts) -> Result<(), OpenError> {
    let file = len().map_err(|error| DiskError::new(&error))?;
    let live = counts.object_bytes + counts.log_bytes;
    if file > SPARSE_BYTES && file / SPARSE_FACTOR > live {
        database.compact().map_err(engine)?;
    }
    Ok(())
}

fn storage(place: &Place) -> Result<(Storage, Length, Option<Directory>), OpenError> {
    match place {
        Place::Memory => unreachable!("memory needs no disk"),
        Place::Directory(dir) => {
            let directory = Directory::open(dir)?;
            let fail = |source| OpenError::Directory {
                dir: dir.clone(),
                source,
            };
            let measured = directory.data.try_clone().map_err(fail)?;
            let data = directory.data.try_clone().map_err(fail)?;
            let file = FileBackend::new(data).map_err(engine)?;
            let len = move || measured.metadata().map(|metadata| metadata.len());
            Ok((Storage::File(file), Box::new(len), Some(directory)))
        }
        Place::Disk(disk) => {
            let measured = disk.clone();
            Ok((
                Storage::Disk(disk.clone()),
                Box::new(move || measured.len()),
                None,
            ))
        }
    }
}

impl Redb {
    fn transact(
        &mut self,
        sync: Sync,
        change: impl FnOnce(&WriteTransaction, &mut Counts, &mut Rows) -> Result<(), ::redb::Error>,
    ) -> Result<(), DiskError> {
        let (database, rows) = (&self.database, &mut self.rows);
        let mut counts = self.counts.clone();
        let commit = || {
            let mut transaction = database.begin_write()?;
            transaction.set_durability(sync)?;
            change(&transaction, &mut counts, rows)?;
            counts.save(&transaction)?;
            transaction.commit()?;
            Ok(())
        };
        match catch_unwind(AssertUnwindSafe(commit)) {
            Ok(Ok(())) => {
                self.counts = counts;
                Ok(())
            }
            Ok(Err(error)) => Err(engine::<::redb::Error>(error)),
            Err(_) => Err(DiskError::from_text("the engine panicked")),
        }
    }

    /// Notes on the disk which revisions will be given out before the disk hears of them.
    fn reserve(&mut self) -> Result<(), DiskError> {
        let counts = &self.counts;
        let is_needed =
            self.durability == Durability::None && counts.reserved < counts.revision + RESERVE / 2;
        if !is_needed {
            return Ok(());
        }
        self.transact(Sync::Immediate, |_, counts, _| {
            counts.reserved = counts.revision + RESERVE;
            Ok(())
        })
    }

    fn sync(&self) -> Sync {
        match self.durability {
            Durability::Full => Sync::Immediate,
            Durability::None => Sync::None,
        }
    }
}

impl Backend for Redb {
    fn commit(&mut self, writes: &[Write]) -> Result<(), DiskError> {
        let (log_rows, log_bytes) = (self.limits.log_rows, self.limits.log_bytes);
        self.transact(self.sync(), |transaction, counts, rows| {
            let mut tables = Tables::open(transaction)?;
            for write in writes {
                put_row(write, &mut tables, counts, rows)?;
            }
            while counts.log_rows > log_rows || counts.log_bytes > log_bytes {
                drop_row(&mut tables, counts, &mut rows.parts)?;
            }
            Ok(())
        })?;
        self.reserve()
    }

    fn compact(&mut self, floor: u64) -> Result<(), DiskError> {
        self.transact(self.sync(), |transaction, counts, rows| {
            let mut tables = Tables::open(transaction)?;
            while oldest(&tables.log)?.is_some_and(|revision| revision <= floor) {
                drop_row(&mut tables, counts, &mut rows.parts)?;
            }
            counts.floor = counts.floor.max(floor);
            Ok(())
        })
    }

    fn bytes(&self) -> u64 {
        (self.len)().unwrap_or(0)
    }
}

impl Drop for Redb {
    /// Everything that was committed without waiting is made durable, and the revisions that were
    /// reserved but not used are given back.
    fn drop(&mut self) {
        if self.durability == Durability::None {
            // If this fails the next start takes the reserved revisions as used, which is safe.
            let _ = self.transact(Sync::Immediate, |_, counts, _| {
                counts.reserved = 0;
                Ok(())
            });
        }
    }
}

impl Counts {
    pub(super) fn save(&self, transaction: &WriteTransaction) -> Result<(), ::redb::Error> {
        let mut numbers = transaction.open_table(NUMBERS)?;
        numbers.insert(field::REVISION, self.revision)?;
        numbers.insert(field::FLOOR, self.floor)?;
        numbers.insert(field::OBJECTS, self.objects)?;
        numbers.insert(field::RESERVED, self.reserved)?;
        Ok(())
    }
}

/// The tables that writes change, open in one transaction.
struct Tables<'a> {
    objects: Table<'a, &'static str, &'static [u8]>,
    log: Table<'a, u64, &'static [u8]>,
    parts: PartsTable<'a>,
}

impl<'a> Tables<'a> {
    fn open(transaction: &'a WriteTransaction) -> Result<Self, ::redb::Error> {
        Ok(Self {
            objects: transaction.open_table(OBJECTS)?,
            log: transaction.open_table(LOG)?,
            parts: transaction.open_table(PARTS)?,
        })
    }
}

/// Writes an object, or removes it, and moves what was there to the log.
fn put_row(
    write: &Write,
    tables: &mut Tables<'_>,
    counts: &mut Counts,
    rows: &mut Rows,
) -> Result<(), ::redb::Error> {
    let event = &write.event;
    let id = Id::new(&write.resource, event.key());
    let revision = event.revision();
    let is_delete = event.kind == EventKind::Delete;
    let replaced = if is_delete {
        tables.objects.remove(id.as_str())?
    } else {
        let expiry = write.expiry.map(|expiry| expiry.wall_micros);
        let Rows { object, parts, .. } = rows;
        let pack = |row: &mut Vec<u8>| parts.pack(&event.entry.doc, row);
        let packed = ObjectRow::encode(object, &id, revision, expiry, pack);
        parts.keep(packed, &mut tables.parts)?;
        tables.objects.insert(id.as_str(), object.as_slice())?
    };
    let damaged = || ::redb::Error::Corrupted(format!("object {:?}", id.as_str()));
    let previous = match &replaced {
        Some(row) => {
            let row = ObjectRow::decode(&id, row.value()).ok_or_else(damaged)?;
            Some((row.revision, row.packed))
        }
        None => None,
    };
    LogRow {
        is_delete,
        id: id.as_str(),
        previous,
    }
    .encode(&mut rows.log, revision);
    tables.log.insert(revision, rows.log.as_slice())?;
    counts.revision = revision;
    counts.objects = match (is_delete, replaced.is_some()) {
        (true, _) => counts.objects.saturating_sub(1),
        (false, true) => counts.objects,
        (false, false) => counts.objects + 1,
    };
    counts.log_rows += 1;
    counts.log_bytes += rows.log.len() as u64;
    Ok(())
}

/// The revision of the oldest row of the log.
fn oldest(log: &Table<'_, u64, &'static [u8]>) -> Result<Option<u64>, ::redb::Error> {
    Ok(log.first()?.map(|(revision, _)| revision.value()))
}

/// Drops the oldest row of the log.
fn drop_row(
    tables: &mut Tables<'_>,
    counts: &mut Counts,
    parts: &mut Parts,
) -> Result<(), ::redb::Error> {
    match tables.log.pop_first()? {
        Some((revision, row)) => {
            let damaged = || ::redb::Error::Corrupted(format!("event {}", revision.value()));
            let event = LogRow::decode(revision.value(), row.value()).ok_or_else(damaged)?;
            if let Some((_, packed)) = event.previous {
                parts.release(packed, &mut tables.parts)?;
            }
            counts.floor = counts.floor.max(revision.value());
            counts.log_rows = counts.log_rows.saturating_sub(1);
            counts.log_bytes = counts.log_bytes.saturating_sub(row.value().len() as u64);
        }
        None => (counts.log_rows, counts.log_bytes) = (0, 0),
    }
    Ok(())
}

pub(super) fn engine<E: Into<::redb::Error>>(error: E) -> DiskError {
    DiskError::new(&error.into())
}

/// What the engine writes to.
#[derive(Debug)]
enum Storage {
    File(FileBackend),
    Disk(Arc<dyn Disk>),
}

impl StorageBackend for Storage {
    fn len(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => file.len(),
            Self::Disk(disk) => disk.len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.read(offset, out),
            Self::Disk(disk) => disk.read(offset, out),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.set_len(len),
            Self::Disk(disk) => disk.set_len(len),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        match self {
            Self::File(file) => file.sync_data(),
            Self::Disk(disk) => disk.sync(),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.write(offset, data),
            Self::Disk(disk) => disk.write(offset, data),
        }
    }

    fn close(&self) -> io::Result<()> {
        match self {
            Self::File(file) => file.close(),
            Self::Disk(_) => Ok(()),
        }
    }
}

impl fmt::Debug for Redb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redb")
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}
