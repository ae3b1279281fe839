//! Runs the pods of a StatefulSet, each under a name of its own with claims of its own.
//!
//! A sync records the template as a ControllerRevision, creates the pods that are missing from the
//! lowest ordinal on, deletes those beyond the number of replicas from the highest ordinal on, and
//! then replaces pods of an older revision. With the policy `OrderedReady` each step waits until the
//! one before is done. The freshness guard of the runtime keeps a sync from acting on caches that do
//! not show its own writes.

mod claim_owners;
mod claims;
mod pod;
mod revisions;
mod spec;
mod status;
mod update;
mod writes;

use std::{sync::Arc, time::Duration};

use windlass_cache::{Obj, SharedInformer};
use windlass_core::{Key, Selector};
use windlass_runtime::{Action, Context, Controller, Manager, ResourceKind, Result, Trigger};

use crate::{
    RefManager,
    history::History,
    owned::{self, apps_kind, core_kind},
    pod_available_in,
    replicaset::{self, handlers::Handlers},
};
use pod::Member;
use spec::SetSpec;
use status::SetStatus;
use update::Update;

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "statefulset-controller";

/// The fields of a pod's spec that this controller reads.
pub const POD_SPEC_FIELDS: &[&str] = &["volumes"];

/// StatefulSets that are synced at the same time, as in kube-controller-manager.
pub const WORKERS: usize = 5;
/// The most pods that one sync of a set with the policy `Parallel` creates.
pub const BURST: usize = 500;

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// StatefulSets that are synced at the same time.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { workers: WORKERS }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let kinds = Kinds {
        sets: apps_kind("StatefulSet", "statefulsets"),
        pods: core_kind("Pod", "pods"),
        claims: core_kind("PersistentVolumeClaim", "persistentvolumeclaims"),
    };
    let informer = |kind: &ResourceKind| manager.factory().dynamic(kind.gvr().clone());
    let engine = Arc::new(Engine {
        history: History::new(manager, &kinds.sets),
        sets: informer(&kinds.sets),
        pods: informer(&kinds.pods),
        claims: informer(&kinds.claims),
        kinds,
    });
    owned::index_children(&engine.pods);
    owned::index_owners(&engine.sets, owned::label_selector);
    manager.add(engine.controller(options.workers));
}

/// The kinds that the controller reads and writes.
struct Kinds {
    sets: ResourceKind,
    pods: ResourceKind,
    claims: ResourceKind,
}

/// The controller.
struct Engine {
    kinds: Kinds,
    history: History,
    sets: SharedInformer,
    pods: SharedInformer,
    claims: SharedInformer,
}

impl Engine {
    fn controller(self: Arc<Self>, workers: usize) -> Controller {
        let (sets, pods) = (self.kinds.sets.clone(), self.kinds.pods.clone());
        let (claims, revisions) = (self.kinds.claims.clone(), self.history.kind.clone());
        let handlers = Handlers::new(&sets, owned::label_selector, &self.sets);
        let handlers = Arc::new(handlers);
        let of_claims = handlers.clone();
        let sync = move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await }
        };
        Controller::of_kind(sets, sync)
            .named(NAME)
            .queue_named("statefulset")
            .workers(workers)
            .reacts_to_kind(pods, move |change| handlers.on_pod(change))
            .reacts_to_kind(claims, move |change| match (change.old, change.new) {
                // A pod may have waited for the claim to go. Claims carry the labels of the selector.
                (Some(claim), None) => of_claims.wanted_by(claim),
                _ => Vec::<Trigger>::new(),
            })
            .reads_kind(revisions)
    }

    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(set) = self.sets.lister().get(key) else {
            return Ok(Action::done());
        };
        let selector = match owned::label_selector(set.doc()) {
            Ok(selector) => selector,
            Err(error) => {
                // Only a change of the set can help, and that comes as an event.
                tracing::error!(%error, "error converting StatefulSet selector");
                return Ok(Action::done());
            }
        };
        let revisions = self.history.claim(cx, set.doc(), &selector).await?;
        let pods = self.claim(cx, &set, &selector).await?;
        let spec = SetSpec::of(set.doc());
        let current = self.revisions(cx, set.doc(), &revisions).await?;
        let live = current.live(&pods);
        let now = cx.env().now();
        let update = Update {
            engine: self,
            cx,
            set: set.doc(),
            spec: &spec,
            revisions: &current,
            now,
        };
        let (mut status, result) = update.run(pods.clone()).await;
        let written = self.write_status(cx, &set, &spec, &mut status).await;
        let truncated = self.truncate(cx, &spec, &revisions, &live).await;
        result?;
        written?;
        truncated?;
        Ok(next(&spec, &status, &pods, now))
    }

    /// The pods of a set, after adopting and releasing. Only those with a name of the set count.
    async fn claim(&self, cx: &Context, set: &Obj, selector: &Selector) -> Result<Vec<Member>> {
        let pods = self.pods.lister().snapshot();
        let mut candidates = owned::children_of(&pods, set.doc());
        candidates.extend(owned::orphans(&pods, set.namespace(), selector));
        let (kind, pod_kind) = (&self.kinds.sets, &self.kinds.pods);
        let manager = RefManager::new(cx, set.doc(), kind, pod_kind, selector);
        let claimed = manager.members(pod::is_member).claim(candidates).await;
        if !claimed.errors.is_empty() {
            return Err(replicaset::together(&claimed.errors));
        }
        let pods = claimed.objects.into_iter();
        Ok(pods.map(|pod| Member::of(pod.doc().clone())).collect())
    }
}

/// The next sync, if pods become available by the mere passing of time.
fn next(spec: &SetSpec, status: &SetStatus, pods: &[Member], now: windlass_core::Time) -> Action {
    if spec.min_ready == Duration::ZERO || status.ready == status.available {
        return Action::done();
    }
    let waits = pods
        .iter()
        .filter_map(|pod| pod_available_in(&pod.doc, spec.min_ready, now));
    Action::requeue_after(waits.min().unwrap_or(spec.min_ready))
}
