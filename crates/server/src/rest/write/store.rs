//! The step that stores.

use std::sync::Arc;

use windlass_core::Doc;
use windlass_store::{Change, Entry, Outcome, WriteError};

use super::{Decision, Write};
use crate::registry::Resource;
use crate::storage::{self, Unsettled, write_failed};
use crate::work;
use windlass_rules::status::Status;

impl Write<'_> {
    /// Stores an object whose name is free.
    pub(super) async fn insert(&self, object: &Doc) -> Result<Doc, Status> {
        let resource = self.operation.resource;
        let key = storage::key(self.operation.namespace, object.meta().name());
        let refuse = |existing: &Arc<Entry>| {
            let (resource, name) = (resource.group_resource(), object.meta().name());
            match existing.doc().meta().is_deleting() {
                true => Status::being_deleted(&resource, name),
                false => Status::already_exists(&resource, name),
            }
        };
        let store = self.operation.storage();
        if self.dry_run {
            return match store.get(&resource.shelf, &key) {
                Some(existing) => Err(refuse(&existing)),
                None => Ok(object.clone()),
            };
        }
        let (change, _) = change_of(resource, Decision::Put(object.clone()));
        let decide = |current: Option<&Arc<Entry>>| match current {
            Some(existing) => Err(Some(existing.clone())),
            // Nobody waits for the answer.
            None if work::is_cancelled() => Err(None),
            None => Ok(change),
        };
        let outcome = store.update(&resource.shelf, &key, decide).await;
        let refused = |existing: Option<Arc<Entry>>| match existing {
            Some(existing) => refuse(&existing),
            None => work::timed_out(),
        };
        let outcome = outcome.map_err(|error| write_failed(error.map_refusal(refused)))?;
        match outcome.entry() {
            Some(entry) => Ok(resource.view(entry.doc())),
            None => Err(Status::internal("the new object is not there")),
        }
    }

    /// The object after a write, or what was sent with its last breath.
    pub(super) fn written(
        &self,
        outcome: Result<(Outcome, Option<Doc>), WriteError<Unsettled>>,
    ) -> Result<Doc, Status> {
        let operation = &self.operation;
        let modified = || Status::modified(&operation.group_resource(), operation.name);
        let (outcome, removed) = outcome.map_err(|error| storage::unsettled(error, modified))?;
        match (removed, outcome.entry()) {
            (Some(object), _) => Ok(object),
            (None, Some(entry)) => Ok(operation.resource.view(entry.doc())),
            (None, None) => Err(operation.not_found()),
        }
    }
}

/// The change that a decision asks the store for, and what was sent with the last breath of an
/// object.
pub(super) fn change_of(resource: &Resource, decision: Decision) -> (Change, Option<Doc>) {
    match decision {
        Decision::Put(object) => {
            let doc = resource.to_storage(&object);
            let ttl = resource.ttl;
            (Change::Put { doc, ttl }, None)
        }
        Decision::Remove(object) => (Change::Delete, Some(object)),
    }
}
