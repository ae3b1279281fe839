//! From a change of an object to the keys it concerns.

use std::sync::Arc;

use windlass_cache::{Deleted, Handler, InformerSpec, Obj};
use windlass_core::{GroupResource, Key};
use windlass_queue::{AddOptions, PRIORITY_LOW, PRIORITY_NORMAL, WorkQueue};

use super::filter::Change;
use crate::{
    ResourceKind,
    freshness::Freshness,
    journal::{Cause, Journal},
};

/// Names the keys that an object concerns.
pub(super) type KeysFn = Arc<dyn Fn(&Obj) -> Vec<Key> + Send + Sync>;

/// Whether a change matters.
pub(super) type Filter = Arc<dyn Fn(&Change<'_>) -> bool + Send + Sync>;

/// A kind that a controller reads, and what it makes of its changes.
pub(super) struct Source {
    pub(super) kind: ResourceKind,
    /// The part that is watched; `None` for what the factory watches.
    pub(super) spec: Option<InformerSpec>,
    /// `None` if changes do not matter.
    pub(super) mapper: Option<Mapper>,
    pub(super) filters: Vec<Filter>,
}

/// Which keys an object concerns.
#[derive(Clone)]
pub(super) enum Mapper {
    /// Its own.
    Itself,
    /// That of the owner which manages it, if that is of this kind.
    Owner(ResourceKind),
    /// Those that a function names.
    Keys(KeysFn),
}

impl Source {
    pub(super) fn new(kind: ResourceKind, mapper: Option<Mapper>) -> Self {
        Self {
            kind,
            spec: None,
            mapper,
            filters: Vec::new(),
        }
    }
}

impl Mapper {
    pub(super) fn keys(&self, object: &Obj) -> Vec<Key> {
        match self {
            Self::Itself => vec![object.key()],
            Self::Owner(kind) => owner_key(object, kind).into_iter().collect(),
            Self::Keys(keys) => keys(object),
        }
    }
}

/// The key of the managing owner. Only group and kind are compared: an owner that was written in
/// another version is the same owner.
fn owner_key(object: &Obj, kind: &ResourceKind) -> Option<Key> {
    let owner = object.meta().controller()?;
    let gvk = kind.gvk();
    if owner.kind != gvk.kind() || owner.group() != gvk.group() {
        return None;
    }
    Some(match kind.is_namespaced() {
        true => Key::new(object.namespace(), &owner.name),
        false => Key::cluster(&owner.name),
    })
}

/// Puts keys into the queue.
pub(super) struct Enqueue {
    pub(super) resource: GroupResource,
    pub(super) mapper: Mapper,
    pub(super) filters: Vec<Filter>,
    pub(super) queue: WorkQueue<Key>,
    pub(super) journal: Arc<Journal>,
    pub(super) freshness: Arc<Freshness>,
}

impl Enqueue {
    fn changed(&self, change: &Change<'_>) {
        if !self.filters.iter().all(|passes| passes(change)) {
            return;
        }
        let is_background = change.is_initial || change.is_resync();
        let priority = if is_background {
            PRIORITY_LOW
        } else {
            PRIORITY_NORMAL
        };
        for key in self.keys(change) {
            self.journal.caused(
                &key,
                Cause::Event {
                    resource: self.resource.clone(),
                    old: change.old.map(|object| object.doc().clone()),
                    new: change.new.map(|object| object.doc().clone()),
                    is_initial: change.is_initial,
                },
            );
            self.queue.add_with(
                key,
                AddOptions {
                    priority,
                    ..AddOptions::default()
                },
            );
        }
    }

    /// The keys of both states, each once.
    fn keys(&self, change: &Change<'_>) -> Vec<Key> {
        let mut keys: Vec<Key> = Vec::new();
        for object in change.new.into_iter().chain(change.old) {
            for key in self.mapper.keys(object) {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        keys
    }
}

impl Handler<windlass_core::Doc> for Enqueue {
    async fn on_add(&self, object: Obj, is_initial: bool) {
        self.changed(&Change {
            old: None,
            new: Some(&object),
            is_initial,
        });
    }

    async fn on_update(&self, old: Obj, new: Obj) {
        self.changed(&Change {
            old: Some(&old),
            new: Some(&new),
            is_initial: false,
        });
    }

    async fn on_delete(&self, deleted: Deleted) {
        let object = deleted.object();
        if matches!(self.mapper, Mapper::Itself) {
            self.freshness.clear(&object.key(), Some(&object.uid()));
        }
        self.changed(&Change {
            old: Some(object),
            new: None,
            is_initial: false,
        });
    }
}
