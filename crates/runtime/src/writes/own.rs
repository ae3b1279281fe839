//! The writes of one controller that its caches may not show yet.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;
use windlass_cache::SharedInformer;
use windlass_core::{GroupResource, Key, Revision, Uid};

use super::scope::{Doubt, Doubts, WriteScope};
use crate::Freshness;

/// The writes of one controller that its caches may not show yet, by key: those with a revision,
/// those in doubt, and those that are still on their way.
pub(crate) struct OwnWrites {
    freshness: Arc<Freshness>,
    /// The objects whose keys are reconciled.
    primary: SharedInformer,
    /// The resources that are read from caches. Writes to others keep no key back.
    resources: BTreeSet<GroupResource>,
    /// An entry lives until the key's next turn.
    doubts: Mutex<HashMap<Key, Doubts>>,
    /// Reconciles that have returned while their writes were on their way. An entry lives until
    /// they are answered.
    unsettled: Mutex<HashMap<Key, Vec<Arc<WriteScope>>>>,
}

impl OwnWrites {
    pub(crate) fn new(
        freshness: Arc<Freshness>,
        primary: SharedInformer,
        resources: BTreeSet<GroupResource>,
    ) -> Self {
        Self {
            freshness,
            primary,
            resources,
            doubts: Mutex::default(),
            unsettled: Mutex::default(),
        }
    }

    /// The scope of one reconcile of a key.
    pub(crate) fn scope(self: &Arc<Self>, key: &Key) -> Arc<WriteScope> {
        let uid = self.uid_of(key);
        Arc::new(WriteScope::new(self.clone(), key.clone(), uid))
    }

    pub(crate) fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    pub(super) fn is_read(&self, resource: &GroupResource) -> bool {
        self.resources.contains(resource)
    }

    pub(super) fn wrote(&self, scope: &WriteScope, resource: &GroupResource, revision: &Revision) {
        let (key, uid) = (&scope.key, &scope.uid);
        let (resource, revision) = (resource.clone(), revision.clone());
        match scope.is_closed() {
            false => self.freshness.wrote(key, uid, resource, revision),
            true => self.freshness.wrote_late(key, uid, resource, revision),
        }
    }

    /// Remembers the revision that a cache has to reach to show a write that was in doubt.
    pub(crate) fn settled(&self, key: &Key, resource: GroupResource, revision: Revision) {
        self.freshness
            .wrote(key, &self.uid_of(key), resource, revision);
    }

    /// Remembers writes that may or may not have been carried out.
    pub(crate) fn doubt(&self, key: &Key, doubts: impl IntoIterator<Item = Doubt>) {
        let mut known = self.doubts.lock();
        known.entry(key.clone()).or_default().extend(doubts);
    }

    /// Takes what is in doubt about the writes of a key.
    pub(crate) fn take_doubts(&self, key: &Key) -> Option<Doubts> {
        self.doubts.lock().remove(key)
    }

    /// A reconcile of a key that has returned, and of which writes are on their way.
    pub(crate) fn unsettled(&self, key: &Key) -> Option<Arc<WriteScope>> {
        self.unsettled.lock().get(key)?.first().cloned()
    }

    /// Holds a key until the writes of a reconcile of it are answered.
    pub(super) fn hold(&self, scope: &Arc<WriteScope>) {
        let mut unsettled = self.unsettled.lock();
        let scopes = unsettled.entry(scope.key.clone()).or_default();
        if !scopes.iter().any(|held| Arc::ptr_eq(held, scope)) {
            scopes.push(scope.clone());
        }
    }

    /// Holds a key no longer for this reconcile.
    pub(crate) fn release(&self, scope: &Arc<WriteScope>) {
        let mut unsettled = self.unsettled.lock();
        if let Some(scopes) = unsettled.get_mut(&scope.key) {
            scopes.retain(|held| !Arc::ptr_eq(held, scope));
            if scopes.is_empty() {
                unsettled.remove(&scope.key);
            }
        }
    }

    /// Forgets the writes on behalf of an object that is gone: its key may never come again. A
    /// key that never had an object may come from elsewhere.
    pub(super) fn forget_if_gone(&self, scope: &WriteScope) {
        let had_object = !scope.uid.as_str().is_empty();
        if had_object && self.primary.lister().get(&scope.key).is_none() {
            self.freshness.clear(&scope.key, Some(&scope.uid));
            self.doubts.lock().remove(&scope.key);
        }
    }

    /// The UID of the object that is reconciled; empty if it is gone.
    fn uid_of(&self, key: &Key) -> Uid {
        let object = self.primary.lister().get(key);
        object.map_or_else(|| Uid::from(""), |object| object.uid())
    }

    /// The number of keys that each part remembers.
    pub(crate) fn sizes(&self) -> [(&'static str, usize); 3] {
        [
            ("doubts", self.doubts.lock().len()),
            ("freshness", self.freshness.len()),
            ("unsettled", self.unsettled.lock().len()),
        ]
    }
}
