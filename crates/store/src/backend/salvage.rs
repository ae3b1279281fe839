//! Everything that is sound in damaged files.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, StorageBackend};
use windlass_core::{Doc, Unpacker};

use super::ahead::RESERVE;
use super::log::{self, Log};
use super::overlay::Overlay;
use super::record;
use super::scan::Found;
use super::state::State;
use super::storage::Files;
use super::tables::{Counts, NUMBERS, OBJECTS, PARTS, TEXTS, field};
use crate::{DiskError, OpenError};

/// An object that goes into a new store.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) id: String,
    pub(super) revision: u64,
    pub(super) expiry: Option<i64>,
    pub(super) document: Doc,
}

/// What is sound, and what is known to be lost.
#[derive(Debug, Default)]
pub(super) struct Salvaged {
    pub(super) uid: Option<String>,
    /// Above everything that was ever given out.
    pub(super) revision: u64,
    pub(super) objects: Vec<Kept>,
    /// Ids of objects that are lost, with the reason.
    pub(super) lost: BTreeMap<String, String>,
    /// Ids of objects whose newest state is lost, but not an older one.
    pub(super) older: BTreeSet<String>,
    /// Ids of objects that the index does not know, because it is damaged: some may have been
    /// deleted long ago.
    pub(super) uncertain: BTreeSet<String>,
    /// Commits that were found in the log.
    pub(super) commits: u64,
}

/// What the index of the tables says.
#[derive(Debug, Default)]
struct Index {
    uid: Option<String>,
    counts: Option<Counts>,
    /// The ids of all objects; `None` if they cannot all be read.
    ids: Option<HashSet<String>>,
}

/// Reads everything that is sound.
pub(super) fn salvage(files: Files) -> Result<Salvaged, OpenError> {
    let state = State::read(files.state.as_ref()).ok().flatten();
    let mut found = Found::default();
    found.scan(&files.tables).map_err(DiskError::from)?;
    let overlay = Overlay::new(files.tables).map_err(DiskError::from)?;
    let index = read_index(overlay, &mut found);
    let marks = [
        index.counts.as_ref().map(|counts| counts.mark),
        state.as_ref().map(|state| state.mark),
    ];
    let mut log = Log::new(files.log).map_err(DiskError::from)?;
    let commits = read_log(&mut log, &marks, &mut found)?;
    let mut salvaged = choose(&found, &index);
    salvaged.uid = index.uid.or_else(|| state.map(|state| state.uid));
    salvaged.commits = commits;
    Ok(salvaged)
}

/// Takes up the commits of the log and returns how many there are.
fn read_log(log: &mut Log, marks: &[Option<u32>], found: &mut Found) -> Result<u64, OpenError> {
    let bytes = log.read_all().map_err(DiskError::from)?;
    let mut marks: BTreeSet<u32> = marks.iter().copied().flatten().collect();
    marks.extend(bytes.iter().filter_map(|bytes| log::mark_of(bytes)));
    let mut commits = 0;
    for (mark, bytes) in marks
        .iter()
        .flat_map(|mark| bytes.iter().map(move |bytes| (*mark, bytes)))
    {
        for frame in log::frames(mark, bytes) {
            commits += 1;
            for write in record::decode(frame.content()).unwrap_or_default() {
                found.logged(&write);
            }
        }
    }
    Ok(commits)
}

/// The engine may panic on a damaged file: then there is no index.
fn read_index(file: impl StorageBackend, found: &mut Found) -> Index {
    let mut index = Index::default();
    let limit = file.len().unwrap_or(0);
    let reading = AssertUnwindSafe(|| read_tables(file, limit, &mut index, found));
    // Whatever was read before it failed is of use.
    let _ = catch_unwind(reading);
    index
}

fn read_tables(
    file: impl StorageBackend,
    limit: u64,
    index: &mut Index,
    found: &mut Found,
) -> Result<(), redb::Error> {
    let database = Database::builder().create_with_backend(file)?;
    let transaction = database.begin_read()?;
    index.counts = Counts::read(&transaction.open_table(NUMBERS)?).ok();
    let uid = transaction.open_table(TEXTS)?.get(field::UID)?;
    index.uid = uid.map(|uid| uid.value().to_owned());
    let bound = |count: u64| usize::try_from(count.min(limit)).unwrap_or(usize::MAX);
    let objects = transaction.open_table(OBJECTS)?;
    let count = objects.len()?;
    let newest = index.counts.as_ref().map_or(0, |counts| counts.revision);
    let mut ids = HashSet::new();
    // A damaged index may lead in circles.
    for row in objects.iter()?.take(bound(count)) {
        let (id, row) = row?;
        found.indexed_object(id.value(), row.value(), newest);
        ids.insert(id.value().to_owned());
    }
    let is_whole = ids.len() as u64 == count
        && index
            .counts
            .as_ref()
            .is_some_and(|counts| counts.objects == count);
    index.ids = is_whole.then_some(ids);
    let parts = transaction.open_table(PARTS)?;
    for row in parts.iter()?.take(bound(parts.len()?)) {
        let (number, row) = row?;
        found.indexed_part(number.value(), row.value());
    }
    Ok(())
}

/// Decides which of the rows are the newest states of objects that exist.
fn choose(found: &Found, index: &Index) -> Salvaged {
    let known = index
        .counts
        .as_ref()
        .map_or(0, |counts| counts.revision.max(counts.reserved));
    let mut salvaged = Salvaged {
        revision: found.revision.max(known) + RESERVE,
        ..Salvaged::default()
    };
    let (unpacker, broken) = unpacker(found);
    for (id, object) in &found.objects {
        let is_deleted = found
            .deleted
            .get(id)
            .is_some_and(|end| *end > object.revision);
        let is_known = match &index.ids {
            Some(ids) => ids.contains(id) || object.revision > known,
            None => true,
        };
        if is_deleted || !is_known {
            continue;
        }
        let Ok(document) = unpacker.doc(&object.packed) else {
            let why = format!("it uses one of {broken} lost parts");
            salvaged.lost.insert(id.clone(), why);
            continue;
        };
        if found
            .written
            .get(id)
            .is_some_and(|last| *last > object.revision)
        {
            salvaged.older.insert(id.clone());
        }
        if index.ids.is_none() {
            salvaged.uncertain.insert(id.clone());
        }
        salvaged.objects.push(Kept {
            id: id.clone(),
            revision: object.revision,
            expiry: object.expiry,
            document,
        });
    }
    note_lost(found, index, &mut salvaged);
    salvaged.objects.sort_by(|a, b| a.id.cmp(&b.id));
    salvaged
}

/// Notes the objects of which nothing is left, as far as their names are.
fn note_lost(found: &Found, index: &Index, salvaged: &mut Salvaged) {
    let there: HashSet<&str> = salvaged
        .objects
        .iter()
        .map(|kept| kept.id.as_str())
        .collect();
    let is_deleted =
        |id: &String, since: u64| found.deleted.get(id).is_some_and(|end| *end > since);
    let listed = index.ids.iter().flatten();
    let written = found
        .written
        .iter()
        .filter(|(id, last)| !is_deleted(id, **last));
    let names = listed
        .filter(|id| !is_deleted(id, 0))
        .chain(written.map(|(id, _)| id));
    for id in names.filter(|id| !there.contains(id.as_str())) {
        let lost = salvaged.lost.entry(id.clone());
        lost.or_insert_with(|| "its row is damaged".to_owned());
    }
}

/// Everything that objects share, and how many parts are lost.
fn unpacker(found: &Found) -> (Unpacker, usize) {
    let mut unpacker = Unpacker::new();
    let mut broken = 0;
    for (number, part) in &found.parts {
        let read = part.as_ref().map(|part| unpacker.part(*number, part));
        broken += usize::from(!matches!(read, Some(Ok(()))));
    }
    (unpacker, broken)
}
