//! Reading everything back when a store is opened.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata};
use windlass_core::{Key, Unpacker};

use super::Loaded;
use super::decode::{Object, Past, PastEvent, Present};
use super::parts::{Parts, Uses};
use super::row::PartRow;
use super::tables::{
    Counts, FORMAT, LOG, NUMBERS, OBJECTS, OLDEST_FORMAT, PARTS, TEXTS, engine, field,
};
use crate::expiry::{Expiry, Lease};
use crate::{Commit, Entry, Event, EventKind, OpenError, Resource, StoreOptions};

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
        Some(OLDEST_FORMAT) => mark(database)?,
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

/// Tables of the older format are the same; its programs would not look for a log beside them.
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
    unpacker: Unpacker,
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
            unpacker: Unpacker::new(),
            uses: Uses::default(),
            loaded,
            counts,
        })
    }

    fn finish(mut self, database: &Database) -> Result<Opened, OpenError> {
        self.parts()?;
        self.rows()?;
        let is_lost = self.counts.reserved != 0;
        let Self {
            mut loaded,
            mut counts,
            transaction,
            unpacker,
            uses,
            ..
        } = self;
        drop(transaction);
        let mut parts = Parts::new(unpacker, uses);
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

    fn parts(&mut self) -> Result<(), OpenError> {
        let table = self.transaction.open_table(PARTS).map_err(engine)?;
        for row in table.iter().map_err(engine)? {
            let (number, row) = row.map_err(engine)?;
            let number = number.value();
            let broken = || damaged(&format!("part {number}"));
            let part = PartRow::decode(number, row.value()).ok_or_else(broken)?;
            let uses = &mut self.uses;
            let count = |number| *uses.entry(number).or_default() += 1;
            let taken = self.unpacker.part(number, part, count);
            taken.map_err(|_| broken())?;
            self.counts.object_bytes += row.value().len() as u64;
        }
        Ok(())
    }

    /// Reads objects and log, on two processors if it is worth it.
    fn rows(&mut self) -> Result<(), OpenError> {
        let objects = self.transaction.open_table(OBJECTS).map_err(engine)?;
        let log = self.transaction.open_table(LOG).map_err(engine)?;
        let (found, expected) = (objects.len().map_err(engine)?, self.counts.objects);
        if found != expected {
            return Err(damaged(&format!(
                "it has {found} objects instead of {expected}"
            )));
        }
        let unpacker = &self.unpacker;
        let past = || match self.counts.reserved {
            0 => Past::read(&log, unpacker),
            _ => Ok(Past::default()),
        };
        let (present, past) = match self.is_threaded() {
            true => Present::read_beside(&objects, unpacker, past)?,
            false => (Present::read(&objects, unpacker)?, past()?),
        };
        for uses in [&present.uses, &past.uses] {
            for (number, count) in uses {
                *self.uses.entry(*number).or_default() += count;
            }
        }
        self.counts.object_bytes += present.bytes;
        self.counts.log_bytes = past.bytes;
        self.counts.log_rows = past.events.len() as u64;
        present
            .objects
            .into_iter()
            .try_for_each(|object| self.add(object))?;
        self.link(past.events)
    }

    /// Simulations must do without threads, and small stores are quicker without.
    fn is_threaded(&self) -> bool {
        self.options.commit == Commit::Thread && self.counts.objects >= THREADED_OBJECTS
    }

    fn add(&mut self, object: Object) -> Result<(), OpenError> {
        let Object {
            resource,
            entry,
            expiry,
        } = object;
        if entry.revision > self.counts.revision {
            return Err(damaged(&format!("object {} is from the future", entry.key)));
        }
        if let Some(wall_micros) = expiry {
            self.loaded.leases.push(Lease {
                deadline: Expiry::at_wall(&self.options.env, wall_micros).deadline,
                revision: entry.revision,
                resource: resource.clone(),
                key: entry.key.clone(),
            });
        }
        self.loaded.objects.entry(resource).or_default().push(entry);
        Ok(())
    }

    /// Goes through the events backwards: what one made of its object is what the next one found.
    fn link(&mut self, events: Vec<PastEvent>) -> Result<(), OpenError> {
        let mut after = After::default();
        for event in events.into_iter().rev() {
            let revision = event.revision;
            let event = self.event(event, &mut after);
            let event = event.ok_or_else(|| damaged(&format!("event {revision}")))?;
            self.loaded.events.push(event);
        }
        self.loaded.events.reverse();
        Ok(())
    }

    fn event(&self, event: PastEvent, after: &mut After) -> Option<(Resource, Arc<Event>)> {
        let PastEvent {
            revision,
            resource,
            key,
            is_delete,
            previous,
        } = event;
        let id = (resource.clone(), key.clone());
        let made = after.insert(id, previous.clone());
        let made = made.unwrap_or_else(|| self.loaded.get(&resource, &key));
        let event = match (is_delete, made, previous) {
            (false, Some(made), previous) if made.revision == revision => {
                Event::new(EventKind::Put, made, previous)
            }
            (true, None, Some(previous)) => {
                let last = Entry::stamped(&key, &previous.doc, revision);
                Event::new(EventKind::Delete, last, Some(previous))
            }
            _ => return None,
        };
        (revision > self.counts.floor && revision <= self.counts.revision)
            .then_some((resource, event))
    }
}

/// What the next event of every object found.
type After = HashMap<(Resource, Key), Option<Arc<Entry>>, RandomState>;

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
        parts.sweep(&mut transaction.open_table(PARTS)?)?;
        counts.save(&transaction)?;
        transaction.commit()?;
        Ok::<_, redb::Error>(())
    };
    write().map_err(|error| OpenError::Disk(engine(error)))
}

impl Loaded {
    fn get(&self, resource: &Resource, key: &Key) -> Option<Arc<Entry>> {
        let entries = self.objects.get(resource)?;
        let index = entries.binary_search_by(|entry| entry.key.cmp(key)).ok()?;
        Some(entries[index].clone())
    }
}

fn damaged(what: &str) -> OpenError {
    OpenError::Damaged(what.to_owned())
}
