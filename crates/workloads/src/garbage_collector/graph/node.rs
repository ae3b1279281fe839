//! One object in the graph.

use std::collections::BTreeSet;

use windlass_core::Str;

use crate::garbage_collector::identity::{Identity, Owner, Seen};

/// One object: who it is, whom it depends on, who depends on it, and how far its deletion is.
#[derive(Clone, Debug)]
pub(in crate::garbage_collector) struct Node {
    pub(in crate::garbage_collector) identity: Identity,
    pub(in crate::garbage_collector) owners: Box<[Owner]>,
    /// UIDs.
    pub(super) dependents: BTreeSet<Str>,
    /// No watch has shown it: only references tell of it.
    pub(in crate::garbage_collector) is_virtual: bool,
    /// It is being deleted, which nothing can undo.
    pub(in crate::garbage_collector) is_being_deleted: bool,
    /// It waits until its dependents are gone, which nothing can undo.
    pub(in crate::garbage_collector) is_deleting_dependents: bool,
    /// It waits until its dependents have forgotten it.
    pub(super) is_orphaning: bool,
    /// Something happened after which it may have to go.
    pub(super) is_suspect: bool,
}

impl Node {
    pub(super) fn real(seen: &Seen) -> Self {
        Self {
            identity: seen.identity.clone(),
            owners: seen.owners.clone().into(),
            dependents: BTreeSet::new(),
            is_virtual: false,
            is_being_deleted: seen.deletion.is_deleting,
            is_deleting_dependents: seen.deletion.is_foreground(),
            is_orphaning: seen.deletion.is_orphaning(),
            is_suspect: false,
        }
    }

    pub(super) fn virtual_of(identity: Identity, dependents: BTreeSet<Str>) -> Self {
        Self {
            identity,
            owners: Box::default(),
            dependents,
            is_virtual: true,
            is_being_deleted: false,
            is_deleting_dependents: false,
            is_orphaning: false,
            is_suspect: false,
        }
    }

    /// Whether anything depends on it.
    pub(in crate::garbage_collector) fn has_dependents(&self) -> bool {
        !self.dependents.is_empty()
    }

    /// Whether an owner must outlive it.
    pub(super) fn is_blocking(&self, owner: &Str) -> bool {
        let mut owners = self.owners.iter();
        owners.any(|found| found.uid == *owner && found.is_blocking)
    }
}
