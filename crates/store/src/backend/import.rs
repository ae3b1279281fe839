//! A new store that holds given objects.

use std::path::Path;

use redb::{Database, WriteTransaction};

use super::load;
use super::parts::{PartTables, Parts};
use super::record::Sealer;
use super::row::{Id, ObjectRow, PartRow};
use super::salvage::Kept;
use super::state::{State, StateFile};
use super::storage::Files;
use super::tables::{Counts, OBJECTS, TEXTS, engine, field};
use crate::{OpenError, Place, Resource, StoreOptions, seal};

/// What a new store holds.
#[derive(Debug)]
pub(super) struct Import {
    /// The identity of the store; a new one if absent.
    pub(super) uid: Option<String>,
    pub(super) revision: u64,
    pub(super) objects: Vec<Kept>,
}

/// Makes a store in a directory, which must be new. Everything in it is durable.
pub(super) fn import(dir: &Path, import: Import, options: &StoreOptions) -> Result<(), OpenError> {
    let options = StoreOptions {
        place: Place::Directory(dir.to_owned()),
        ..options.clone()
    };
    let files = Files::open(&options.place)?;
    let database = Database::builder()
        .create_with_backend(files.tables)
        .map_err(engine)?;
    let fresh = load::prepare(&database, &options)?;
    let counts = Counts {
        revision: import.revision,
        floor: import.revision,
        objects: import.objects.len() as u64,
        ..fresh
    };
    let write = || {
        let transaction = database.begin_write()?;
        if let Some(uid) = &import.uid {
            transaction
                .open_table(TEXTS)?
                .insert(field::UID, uid.as_str())?;
        }
        put_objects(&transaction, &import.objects, &options)?;
        counts.save(&transaction)?;
        transaction.commit()?;
        Ok::<_, redb::Error>(())
    };
    write().map_err(engine)?;
    let Some(uid) = import.uid else {
        return Ok(());
    };
    let state = State {
        uid,
        mark: counts.mark,
        logs: [false; 2],
    };
    Ok(StateFile::new(files.state, state).save()?)
}

fn put_objects(
    transaction: &WriteTransaction,
    all: &[Kept],
    options: &StoreOptions,
) -> Result<(), redb::Error> {
    let sealer = Sealer::new(options);
    let mut parts = Parts::default();
    let (mut row, mut part_row) = (Vec::new(), Vec::new());
    let mut objects = transaction.open_table(OBJECTS)?;
    let mut table = PartTables::open(transaction)?;
    for kept in all {
        let Some((resource, key)) = Id::split(&kept.id) else {
            continue;
        };
        let (resource, expiry) = (Resource::from_text(resource), kept.expiry);
        let id = Id::new(&resource, &key);
        let sealed = sealer
            .as_ref()
            .and_then(|sealer| sealer.reseal(&resource, &id, kept));
        let document = sealed.as_ref().unwrap_or(&kept.document);
        let pack = |row: &mut Vec<u8>| parts.pack(document, row);
        let packed = ObjectRow::encode(&mut row, &id, kept.revision, expiry, pack);
        for part in parts.keep(packed) {
            PartRow::encode(&mut part_row, part.number, &part.bytes);
            table.insert(part.number, &part_row)?;
        }
        objects.insert(kept.id.as_str(), row.as_slice())?;
    }
    Ok(())
}

impl Sealer {
    /// The document sealed with the first key; `None` if it stays as it is, because its resource
    /// is not encrypted, it is sealed like that, or its key is not known.
    fn reseal(&self, resource: &Resource, id: &Id, kept: &Kept) -> Option<windlass_core::Doc> {
        if !self.resources.contains(resource) || self.keys.is_current(&kept.document) {
            return None;
        }
        let context = seal::context(id.as_str(), kept.revision);
        if seal::sealed_with(&kept.document).is_none() {
            return Some(self.keys.seal(&self.env, &context, &kept.document));
        }
        let plain = self.keys.unseal(&context, &kept.document).ok()?;
        Some(self.keys.seal(&self.env, &context, &plain))
    }
}
