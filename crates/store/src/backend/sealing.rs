//! Opening the sealed documents of a store when it is read.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::decode::{Past, Present};
use super::row::Id;
use crate::seal::{self, UnsealError};
use crate::{Entry, OpenError, Resource, StoreOptions};

/// Opens what is sealed. Documents of other resources are not even read.
pub(super) fn unseal(
    options: &StoreOptions,
    present: &mut Present,
    past: &mut Past,
) -> Result<(), OpenError> {
    let mut opening = Opening {
        options,
        opened: HashMap::default(),
    };
    for (resource, entries) in &mut present.runs {
        if options.encrypted_resources.contains(resource) {
            opening.all(resource, entries.iter_mut())?;
        }
    }
    for event in &mut past.events {
        if options.encrypted_resources.contains(&event.resource) {
            opening.all(&event.resource, event.previous.iter_mut())?;
        }
    }
    let recent = present.recent.iter_mut();
    let mortal = present.mortal.iter_mut().map(|(_, entry, _)| entry);
    for entry in recent.chain(mortal) {
        if let Some(opened) = opening.opened.get(&entry.revision) {
            *entry = opened.clone();
        }
    }
    Ok(())
}

struct Opening<'a> {
    options: &'a StoreOptions,
    /// What was opened, by the revisions that made it.
    opened: HashMap<u64, Arc<Entry>, RandomState>,
}

impl Opening<'_> {
    fn all<'a>(
        &mut self,
        resource: &Resource,
        entries: impl Iterator<Item = &'a mut Arc<Entry>>,
    ) -> Result<(), OpenError> {
        for entry in entries {
            if let Some(opened) = self.opened.get(&entry.revision) {
                *entry = opened.clone();
            } else if let Some(opened) = self.one(resource, entry)? {
                self.opened.insert(entry.revision, opened.clone());
                *entry = opened;
            }
        }
        Ok(())
    }

    /// The opened entry; `None` if it is not sealed.
    fn one(&self, resource: &Resource, entry: &Entry) -> Result<Option<Arc<Entry>>, OpenError> {
        let Some(key) = seal::sealed_with(entry.doc()) else {
            return Ok(None);
        };
        let object = || format!("{resource} {}", entry.key);
        let Some(keys) = &self.options.encryption else {
            return Err(OpenError::NoEncryptionKey {
                object: object(),
                key: key.to_owned(),
            });
        };
        let id = Id::new(resource, &entry.key);
        let context = seal::context(id.as_str(), entry.revision);
        match keys.unseal(&context, entry.doc()) {
            Ok(document) => Ok(Some(Entry::read(&entry.key, entry.revision, document))),
            Err(UnsealError::UnknownKey(key)) => Err(OpenError::NoEncryptionKey {
                object: object(),
                key,
            }),
            Err(UnsealError::Damaged) => Err(OpenError::Damaged(format!(
                "{} cannot be decrypted",
                object()
            ))),
        }
    }
}
