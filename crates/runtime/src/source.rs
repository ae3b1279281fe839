//! From a change of an object to the keys it concerns.

use std::{sync::Arc, time::Duration};

use windlass_cache::{Deleted, Handler, InformerSpec, Obj};
use windlass_core::{GroupResource, Key};
use windlass_queue::{AddOptions, PRIORITY_LOW, PRIORITY_NORMAL, WorkQueue};

use crate::{
    ResourceKind,
    change::Change,
    freshness::Freshness,
    journal::{Cause, Journal},
};

/// Names the keys that an object concerns.
pub(crate) type KeysFn = Arc<dyn Fn(&Obj) -> Vec<Key> + Send + Sync>;

/// Names the keys that a change concerns.
pub(crate) type ReactFn = Arc<dyn Fn(&Change<'_>) -> Vec<Trigger> + Send + Sync>;

/// A key to be reconciled because of a change, at once or later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    pub(crate) key: Key,
    pub(crate) after: Option<Duration>,
}

impl Trigger {
    /// Reconciles a key as soon as possible.
    #[must_use]
    pub fn now(key: Key) -> Self {
        Self { key, after: None }
    }

    /// Reconciles a key once this time has passed.
    #[must_use]
    pub fn after(key: Key, delay: Duration) -> Self {
        Self {
            key,
            after: Some(delay),
        }
    }

    /// The key to be reconciled.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The delay; `None` for none.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.after
    }
}

/// A predicate: true for a change that matters.
pub(crate) type Filter = Arc<dyn Fn(&Change<'_>) -> bool + Send + Sync>;

/// A kind that a controller reads, and what it makes of its changes.
pub(crate) struct Source {
    pub(crate) kind: ResourceKind,
    /// The part that is watched; `None` for what the factory watches.
    pub(crate) spec: Option<InformerSpec>,
    /// `None` if changes do not matter.
    pub(crate) mapper: Option<Mapper>,
    pub(crate) filters: Vec<Filter>,
}

/// The keys that an object concerns.
#[derive(Clone)]
pub(crate) enum Mapper {
    /// Its own.
    Itself,
    /// The key of the owner which manages it, if that is of this kind.
    Owner(ResourceKind),
    /// Those that a function names.
    Keys(KeysFn),
    /// Those that a function names for a change as a whole.
    Change(ReactFn),
}

impl Source {
    pub(crate) fn new(kind: ResourceKind, mapper: Option<Mapper>) -> Self {
        Self {
            kind,
            spec: None,
            mapper,
            filters: Vec::new(),
        }
    }
}

impl Mapper {
    fn triggers(&self, change: &Change<'_>) -> Vec<Trigger> {
        match self {
            Self::Itself => of_both(change, |object| vec![object.key()]),
            Self::Owner(kind) => of_both(change, |it| owner_key(it, kind).into_iter().collect()),
            Self::Keys(keys) => of_both(change, |object| keys(object)),
            Self::Change(react) => react(change),
        }
    }
}

/// The keys of both states, each once.
fn of_both(change: &Change<'_>, keys: impl Fn(&Obj) -> Vec<Key>) -> Vec<Trigger> {
    let mut found: Vec<Trigger> = Vec::new();
    for object in change.new.into_iter().chain(change.old) {
        for key in keys(object) {
            if !found.iter().any(|trigger| trigger.key == key) {
                found.push(Trigger::now(key));
            }
        }
    }
    found
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

/// The queue of a controller, with the journal and the freshness guard of its keys.
#[derive(Clone)]
pub(crate) struct KeyQueue {
    pub(crate) queue: WorkQueue<Key>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) freshness: Arc<Freshness>,
}

/// Puts keys into the queue.
pub(crate) struct Enqueue {
    pub(crate) resource: Arc<GroupResource>,
    pub(crate) mapper: Mapper,
    pub(crate) filters: Vec<Filter>,
    pub(crate) target: KeyQueue,
}

impl KeyQueue {
    /// Puts the keys into the queue that a function names for each change.
    pub(crate) fn reacting(&self, resource: GroupResource, react: ReactFn) -> Enqueue {
        Enqueue {
            resource: Arc::new(resource),
            mapper: Mapper::Change(react),
            filters: Vec::new(),
            target: self.clone(),
        }
    }
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
        for Trigger { key, after } in self.mapper.triggers(change) {
            self.target.journal.caused(&key, || Cause::Event {
                resource: self.resource.clone(),
                old: change.old.map(|object| object.doc().clone()),
                new: change.new.map(|object| object.doc().clone()),
                is_initial: change.is_initial,
            });
            let options = AddOptions {
                priority,
                after,
                ..AddOptions::default()
            };
            self.target.queue.add_with(key, options);
        }
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
            let freshness = &self.target.freshness;
            freshness.clear(&object.key(), Some(&object.uid()));
        }
        self.changed(&Change {
            old: Some(object),
            new: None,
            is_initial: false,
        });
    }
}
