//! Reading everything back when a store is opened.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    ReadableTableMetadata,
};
use windlass_core::{Checker, Packer, Unpacker};

use super::Loaded;
use super::decode::{Past, PastEvent, Present, Source, damaged};
use super::parts::{PartTables, Parts, Uses};
use super::row::PartRow;
use super::sealing::unseal;
use super::tables::{
    Counts, FORMAT, LOG, NUMBERS, OBJECTS, OLDEST_FORMAT, PARTS, TEXTS, engine, field,
};
use crate::expiry::{Expiry, Lease};
use crate::{Commit, Entry, Event, EventKind, OpenError, Resource, StoreOptions, stamp};

/// Fewer objects than this are read before a thread has started.
const THREADED_OBJECTS: u64 = 1_000;

/// A database that was read.
pub(super) struct Opened {
    pub(super) loaded: Loaded,
    pub(super) counts: Counts,
    pub(super) parts: Parts,
}

/// Makes the tables if they are new, and brings them to the current format. Returns the figures
/// that are in them.
pub(super) fn prepare(database: &Database, options: &StoreOptions) -> Result<Counts, OpenError> {
    match format(database)? {
        None => create(database, options)?,
        Some(FORMAT) => {}
        Some(OLDEST_FORMAT..FORMAT) => mark(database)?,
        Some(found) if found > FORMAT => {
            return Err(OpenError::Newer {
                found,
                supported: FORMAT,
            });
        }
        Some(found) => {
            return Err(OpenError::Older {
                found,
                supported: OLDEST_FORMAT,
            });
        }
    }
    let transaction = database.begin_read().map_err(engine)?;
    numbers(&transaction)
}

/// Reads everything.
pub(super) fn load(database: &Database, options: &StoreOptions) -> Result<Opened, OpenError> {
    Reading::new(database, options)?.finish(database)
}

/// The format of the database; `None` if it is new.
fn format(database: &Database) -> Result<Option<u64>, OpenError> {
    let transaction = database.begin_read().map_err(engine)?;
    let numbers = match transaction.open_table(NUMBERS) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        opened => opened.map_err(engine)?,
    };
    let format = numbers.get(field::FORMAT).map_err(engine)?;
    format
        .map(|format| Some(format.value()))
        .ok_or_else(|| damaged("it has no format"))
}

fn create(database: &Database, options: &StoreOptions) -> Result<(), OpenError> {
    let loaded = Loaded::empty(&options.env);
    let counts = Counts {
        revision: loaded.revision,
        floor: loaded.floor,
        ..Counts::default()
    };
    let mark = options.env.random_below(1 << 32);
    let write = || {
        let transaction = database.begin_write()?;
        let mut numbers = transaction.open_table(NUMBERS)?;
        numbers.insert(field::FORMAT, FORMAT)?;
        numbers.insert(field::MARK, mark)?;
        drop(numbers);
        transaction
            .open_table(TEXTS)?
            .insert(field::UID, loaded.uid.as_str())?;
        transaction.open_table(OBJECTS)?;
        transaction.open_table(PARTS)?;
        transaction.open_table(LOG)?;
        counts.save(&transaction)?;
        transaction.commit()?;
        Ok::<_, redb::Error>(())
    };
    Ok(write().map_err(engine)?)
}

/// Tables of the older formats are the same; their programs would not look at the files beside
/// them.
fn mark(database: &Database) -> Result<(), OpenError> {
    let write = || {
        let transaction = database.begin_write()?;
        transaction
            .open_table(NUMBERS)?
            .insert(field::FORMAT, FORMAT)?;
        transaction.commit()?;
        Ok::<_, redb::Error>(())
    };
    Ok(write().map_err(engine)?)
}

/// The figures that are in the tables; the others are zero.
fn numbers(transaction: &ReadTransaction) -> Result<Counts, OpenError> {
    let numbers = transaction.open_table(NUMBERS).map_err(engine)?;
    Counts::read(&numbers).map_err(|error| damaged(&error.to_string()))
}

/// A database that is being read.
struct Reading<'a> {
    options: &'a StoreOptions,
    transaction: ReadTransaction,
    source: Source,
    /// How often every part is used.
    uses: Uses,
    loaded: Loaded,
    counts: Counts,
}

impl<'a> Reading<'a> {
    fn new(database: &Database, options: &'a StoreOptions) -> Result<Self, OpenError> {
        let transaction = database.begin_read().map_err(engine)?;
        let texts = transaction.open_table(TEXTS).map_err(engine)?;
        let uid = texts.get(field::UID).map_err(engine)?;
        let uid = uid.ok_or_else(|| damaged("it has no uid"))?.value().into();
        let counts = numbers(&transaction)?;
        let loaded = Loaded {
            uid,
            ..Loaded::empty(&options.env)
        };
        Ok(Self {
            options,
            transaction,
            source: Source {
                checker: Checker::new(),
                unpacker: Arc::default(),
                floor: counts.floor,
                revision: counts.revision,
            },
            uses: Uses::default(),
            loaded,
            counts,
        })
    }

    fn finish(mut self, database: &Database) -> Result<Opened, OpenError> {
        self.check_parts()?;
        let packer = self.rows()?;
        let is_lost = self.counts.reserved != 0;
        let Self {
            mut loaded,
            mut counts,
            transaction,
            uses,
            ..
        } = self;
        drop(transaction);
        let mut parts = Parts::new(packer, uses);
        if is_lost {
            lose_history(database, &mut counts, &mut parts)?;
        }
        loaded.revision = counts.revision;
        loaded.floor = counts.floor;
        Ok(Opened {
            loaded,
            counts,
            parts,
        })
    }

    fn check_parts(&mut self) -> Result<(), OpenError> {
        let table = self.transaction.open_table(PARTS).map_err(engine)?;
        for row in table.iter().map_err(engine)? {
            let (number, row) = row.map_err(engine)?;
            let number = number.value();
            let broken = || damaged(&format!("part {number}"));
            let part = PartRow::decode(number, row.value()).ok_or_else(broken)?;
            let uses = &mut self.uses;
            let count = |number| *uses.entry(number).or_default() += 1;
            let checked = self.source.checker.part(number, part, count);
            checked.map_err(|_| broken())?;
            self.counts.object_bytes += row.value().len() as u64;
        }
        Ok(())
    }

    /// Reads objects and log, on two processors if it is worth it. Returns what packs objects from
    /// now on.
    fn rows(&mut self) -> Result<Packer, OpenError> {
        let open = |name| self.transaction.open_table(name).map_err(engine);
        let (parts, log) = (open(PARTS)?, open(LOG)?);
        let objects = self.transaction.open_table(OBJECTS).map_err(engine)?;
        let (found, expected) = (objects.len().map_err(engine)?, self.counts.objects);
        if found != expected {
            return Err(damaged(&format!(
                "it has {found} objects instead of {expected}"
            )));
        }
        let source = &self.source;
        let others = || {
            let packer = unpack(&parts, source)?;
            let past = match self.counts.reserved {
                0 => Past::read(&log, source)?,
                _ => Past::default(),
            };
            Ok((packer, past))
        };
        let (mut present, (packer, mut past)) = match self.is_threaded() {
            true => Present::read_beside(&objects, source, others)?,
            false => (Present::read(&objects, source)?, others()?),
        };
        unseal(self.options, &mut present, &mut past)?;
        for uses in [&present.uses, &past.uses] {
            for (number, count) in uses {
                *self.uses.entry(*number).or_default() += count;
            }
        }
        self.counts.object_bytes += present.bytes;
        self.counts.log_bytes = past.bytes;
        self.counts.log_rows = past.events.len() as u64;
        self.loaded.leases = self.leases(present.mortal);
        self.loaded.objects = present.runs.into_iter().collect();
        self.link(past.events, present.recent)?;
        Ok(packer)
    }

    /// Simulations must do without threads, and small stores are quicker without.
    fn is_threaded(&self) -> bool {
        self.options.commit == Commit::Thread && self.counts.objects >= THREADED_OBJECTS
    }

    fn leases(&self, mortal: Vec<(Resource, Arc<Entry>, i64)>) -> Vec<Lease> {
        let lease = |(resource, entry, wall_micros): (_, Arc<Entry>, _)| Lease {
            deadline: Expiry::at_wall(&self.options.env, wall_micros).deadline,
            revision: entry.revision,
            resource,
            key: entry.key.clone(),
        };
        mortal.into_iter().map(lease).collect()
    }

    /// Tells for every event what it made of its object: that is what the next event of the object
    /// found, or what the object is now, and bears the revision of the event.
    fn link(&mut self, events: Vec<PastEvent>, recent: Vec<Arc<Entry>>) -> Result<(), OpenError> {
        let previous = events.iter().filter_map(|event| event.previous.clone());
        let states = recent.into_iter().chain(previous);
        let mut made: States = states.map(|entry| (entry.revision, entry)).collect();
        for event in events {
            let revision = event.revision;
            let event = self.event(event, made.remove(&revision));
            let event = event.ok_or_else(|| damaged(&format!("event {revision}")))?;
            self.loaded.events.push(event);
        }
        Ok(())
    }

    fn event(&self, event: PastEvent, made: Option<Arc<Entry>>) -> Option<(Resource, Arc<Event>)> {
        let PastEvent {
            revision,
            resource,
            key,
            is_delete,
            previous,
        } = event;
        let event = match (is_delete, made, previous) {
            (false, Some(made), previous) if made.key == key => {
                Event::new(EventKind::Put, made, previous)
            }
            (true, None, Some(previous)) => {
                let before = previous.clone();
                let last = Entry::unread(key, revision, 0, move || stamp(before.doc(), revision));
                Event::new(EventKind::Delete, last, Some(previous))
            }
            _ => return None,
        };
        (revision > self.counts.floor && revision <= self.counts.revision)
            .then_some((resource, event))
    }
}

/// States of objects by the revisions that made them.
type States = HashMap<u64, Arc<Entry>, RandomState>;

/// Reads all parts, which were checked, and returns what goes on with them.
fn unpack(table: &ReadOnlyTable<u64, &'static [u8]>, source: &Source) -> Result<Packer, OpenError> {
    let mut unpacker = Unpacker::new();
    for row in table.iter().map_err(engine)? {
        let (number, row) = row.map_err(engine)?;
        let number = number.value();
        let broken = || damaged(&format!("part {number}"));
        let part = PartRow::decode(number, row.value()).ok_or_else(broken)?;
        unpacker.part(number, part).map_err(|_| broken())?;
    }
    Ok(source.unpacker.get_or_init(|| unpacker).packer())
}

/// A store that did not wait for the disk died: revisions up to the reserved one may have been
/// seen, so the next is above, and nothing is known of what happened in between.
fn lose_history(
    database: &Database,
    counts: &mut Counts,
    parts: &mut Parts,
) -> Result<(), OpenError> {
    counts.revision = counts.reserved;
    counts.floor = counts.reserved;
    (counts.log_rows, counts.log_bytes, counts.reserved) = (0, 0, 0);
    let mut write = || {
        let transaction = database.begin_write()?;
        transaction.delete_table(LOG)?;
        transaction.open_table(LOG)?;
        parts.sweep(&mut PartTables::open(&transaction)?)?;
        counts.save(&transaction)?;
        transaction.commit()?;
        Ok::<_, redb::Error>(())
    };
    write().map_err(|error| OpenError::Disk(engine(error)))
}
