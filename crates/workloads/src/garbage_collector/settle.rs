//! Whether the graph has all dependents of an owner.
//!
//! Watches of different kinds do not advance together. When that of the owners shows a deletion
//! that waits for dependents, that of the dependents may not have shown some of them. To let the
//! owner go then would end its wait too early, or leave dependents to be collected that were to be
//! kept. So the kinds of its dependents must have been seen as they were at the owner's deletion:
//! by their watches if these are as far, else by asking the server.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use parking_lot::Mutex;
use windlass_client::{DynamicClient, ListOptions};
use windlass_core::{Doc, Gvr, Revision, Str};

use super::{
    collector::{Collector, Failure},
    identity::{Identity, Owner},
};

/// How many lists are remembered.
const LISTINGS_LIMIT: usize = 1024;

/// How many objects a page of a list holds.
const PAGE_LIMIT: u32 = 5000;

/// Kinds of owners whose dependents are of known kinds, so that these are looked at before the
/// graph has ever shown one. Owners first.
const USUAL: [(&str, &str, &str); 10] = [
    ("Deployment", "apps/v1", "replicasets"),
    ("ReplicaSet", "apps/v1", "pods"),
    ("StatefulSet", "apps/v1", "pods"),
    ("StatefulSet", "apps/v1", "controllerrevisions"),
    ("DaemonSet", "apps/v1", "pods"),
    ("DaemonSet", "apps/v1", "controllerrevisions"),
    ("ReplicationController", "v1", "pods"),
    ("Job", "batch/v1", "pods"),
    ("CronJob", "batch/v1", "jobs"),
    ("Service", "v1", "endpointslices"),
];

/// A resource that may hold dependents.
struct Candidate {
    gvr: Gvr,
    is_likely: bool,
}

fn is_usual(owner: &Identity, gvr: &Gvr) -> bool {
    USUAL.iter().any(|(kind, api_version, resource)| {
        owner.kind == *kind && owner.api_version == *api_version && gvr.resource() == *resource
    })
}

/// Where a list was taken: a resource, and a namespace or all.
type Place = (Gvr, Str);

/// The last list of each place. Owners that begin to wait together share one.
#[derive(Debug, Default)]
pub(super) struct Listings(Mutex<BTreeMap<Place, Slot>>);

/// Locked while a list is taken, so that everybody else who needs one waits for it.
type Slot = Arc<tokio::sync::Mutex<Option<Listing>>>;

/// What a list said.
#[derive(Debug)]
struct Listing {
    /// The state that it is of.
    revision: Revision,
    /// The owners that objects refer to, and whether an object blocks them.
    owners: BTreeMap<Str, bool>,
}

impl Listings {
    fn slot(&self, place: &Place) -> Slot {
        let mut slots = self.0.lock();
        if slots.len() >= LISTINGS_LIMIT && !slots.contains_key(place) {
            slots.clear();
        }
        slots.entry(place.clone()).or_default().clone()
    }
}

impl Collector {
    /// Fails unless nothing refers to an owner any more that did when its deletion began; or, if
    /// it must only outlive dependents that block it, none of these.
    pub(super) async fn require_settled(
        &self,
        owner: &Identity,
        live: &Doc,
        is_blocking: bool,
    ) -> Result<(), Failure> {
        // A version that cannot be compared says nothing about what the watches have seen.
        let Some(revision) = live.meta().revision() else {
            return Ok(());
        };
        for Candidate { gvr, is_likely } in self.candidates(owner, &revision) {
            match self.refers(&gvr, owner, &revision, is_blocking).await {
                Ok(false) => {}
                Ok(true) => return Err(Failure::Unsettled(owner.clone())),
                Err(failure) if is_likely => return Err(failure),
                // A kind that can neither be watched nor listed must not hold all owners for ever.
                Err(failure) => {
                    tracing::debug!(%owner, resource = %gvr, %failure, "not known to be settled");
                }
            }
        }
        Ok(())
    }

    /// Whether there are resources that may hold dependents of an owner and that no watch has shown
    /// yet.
    pub(super) fn is_partly_unknown(&self, owner: &Identity) -> bool {
        let monitors = self.monitors.lock();
        let mut in_reach = monitors
            .values()
            .filter(|monitor| monitor.watched.is_namespaced || !owner.is_namespaced());
        in_reach.any(|monitor| !monitor.has_synced())
    }

    /// The resources that may hold dependents of an owner and whose watches are behind: those that
    /// are likely to, and those of which nothing is known yet. If nothing is known of the kind of
    /// the owner, either, anything may depend on it.
    fn candidates(&self, owner: &Identity, revision: &Revision) -> Vec<Candidate> {
        let kinds = self.graph.lock().dependent_kinds(owner);
        let kinds: BTreeSet<_> = kinds.into_iter().collect();
        let monitors = self.monitors.lock();
        let in_reach = monitors
            .iter()
            .filter(|(_, monitor)| monitor.watched.is_namespaced || !owner.is_namespaced());
        let all: Vec<_> = in_reach
            .map(|(gvr, monitor)| {
                let watched = &monitor.watched;
                let kind = (watched.kind.clone(), watched.api_version.clone());
                (gvr, monitor, kinds.contains(&kind) || is_usual(owner, gvr))
            })
            .collect();
        let is_unheard_of = !all.iter().any(|(.., is_likely)| *is_likely);
        all.into_iter()
            .filter(|(_, monitor, is_likely)| {
                (*is_likely || is_unheard_of || !monitor.has_synced())
                    && !monitor.has_reached(revision)
            })
            .map(|(gvr, _, is_likely)| Candidate {
                gvr: gvr.clone(),
                is_likely,
            })
            .collect()
    }

    /// Whether an object of a resource refers to an owner, in a state not older than a revision.
    async fn refers(
        &self,
        gvr: &Gvr,
        owner: &Identity,
        revision: &Revision,
        is_blocking: bool,
    ) -> Result<bool, Failure> {
        let slot = self.listings.slot(&(gvr.clone(), owner.namespace.clone()));
        let mut listing = slot.lock().await;
        let is_clear = |listing: &Listing| {
            let found = listing.owners.get(&owner.uid);
            !found.is_some_and(|&blocks| blocks || !is_blocking)
        };
        let known = listing.as_ref();
        // A list that was recent enough stays so, but a reference in it may be gone by now.
        if known.is_some_and(|it| it.revision >= *revision && is_clear(it)) {
            return Ok(false);
        }
        *listing = self.list(gvr, &owner.namespace).await?;
        Ok(!listing.as_ref().is_none_or(is_clear))
    }

    async fn list(&self, gvr: &Gvr, namespace: &str) -> Result<Option<Listing>, Failure> {
        let mut api = DynamicClient::new(self.client.clone()).resource(gvr.clone());
        if !namespace.is_empty() {
            api = api.namespaced(namespace);
        }
        let options = ListOptions {
            is_metadata_only: true,
            ..ListOptions::default().limit(PAGE_LIMIT)
        };
        let list = match api.list_all(&options).await {
            Ok(list) => list,
            // What is not served any more holds no dependents.
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Ok(revision) = list.head.resource_version().parse() else {
            return Ok(None);
        };
        let mut owners = BTreeMap::new();
        let references = list.items.iter().flat_map(|item| item.meta().owner_refs());
        for owner in references.map(Owner::from) {
            *owners.entry(owner.uid).or_default() |= owner.is_blocking;
        }
        Ok(Some(Listing { revision, owners }))
    }
}
