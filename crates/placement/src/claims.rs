//! The claim controller: the life of resource claims from template to clean-up.
//!
//! It makes the claims that pods ask for by template and records their names in the status of the
//! pods; it removes reservations of pods that are gone or done, gives devices back with the last
//! of them, and deletes the claims it made when their pod has ended. It never chooses a device:
//! that is the scheduler's part.
//!
//! Two queues share the work. `resource_claim` holds claims, whose reservations are looked
//! through; `resource_claim_pod` holds pods, whose claims are made and recorded. Both read caches
//! that show the controller's own writes, because the runtime holds a key back until they do.

mod consumer;
mod create;
mod keys;
mod lookup;
mod metrics;
mod naming;
mod pods;
mod release;

use std::sync::Arc;

use parking_lot::Mutex;
use windlass_cache::Lister;
use windlass_core::{GroupVersion, Gvr, Uid};
use windlass_runtime::{Controller, EventRecorder, Manager, Recent, ResourceKind};

pub use consumer::{Consumer, DELETED_UIDS_LIMIT};
pub use lookup::{
    ClaimName, NameError, NotForPod, claim_name, consumer_of, is_allocated, is_for_pod,
    is_pod_done, is_reserved_for, must_be_for_pod,
};
pub use metrics::Metrics;
pub use naming::Naming;

/// The name of the controller, by which it is switched on and off.
pub const NAME: &str = "resourceclaim-controller";

/// Keeps a claim in the API while it is allocated.
pub const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// The annotation of a generated claim with the name of the pod's entry it was made for.
pub const POD_CLAIM_NAME: &str = "resource.kubernetes.io/pod-claim-name";

/// The annotation of claims that stand for extended resources of a pod.
pub const EXTENDED_RESOURCE_CLAIM: &str = "resource.kubernetes.io/extended-resource-claim";

/// Pods that use one claim at the same time, at most.
pub const CONSUMERS_LIMIT: usize = 256;

/// Resource claims.
pub const RESOURCE_CLAIMS: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceclaims");

const RESOURCE: GroupVersion = GroupVersion::constant("resource.k8s.io", "v1");
const CORE: GroupVersion = GroupVersion::constant("", "v1");
/// The component of events, and the name of the queue of claims.
const COMPONENT: &str = "resource_claim";
const POD_QUEUE: &str = "resource_claim_pod";
/// Who applies the names of claims to the status of pods.
const STATUS_MANAGER: &str = "ResourceClaimController";
const WORKERS: usize = 50;

const CLAIMS_BY_OWNER: &str = "claimPodOwner";
const PODS_BY_CLAIM: &str = "podResourceClaim";
const PODS_BY_TEMPLATE: &str = "podResourceClaimTemplate";

/// How the controller works.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many keys of each queue are worked on at the same time; 50.
    pub workers: usize,
    /// How generated claims are named; generated names.
    pub naming: Naming,
    /// Whether templates may ask for administrative access to devices; they may.
    pub is_admin_access_enabled: bool,
    /// Whether templates may name alternatives; they may.
    pub is_prioritized_list_enabled: bool,
    /// How many UIDs of deleted pods are remembered; 500. One that is forgotten costs a request.
    pub deleted_uids_limit: usize,
    /// What is counted. Clones count together.
    pub metrics: Metrics,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: WORKERS,
            naming: Naming::default(),
            is_admin_access_enabled: true,
            is_prioritized_list_enabled: true,
            deleted_uids_limit: DELETED_UIDS_LIMIT,
            metrics: Metrics::default(),
        }
    }
}

/// What both queues work with.
pub(crate) struct Claims {
    pods: Lister,
    claims: Lister,
    templates: Lister,
    /// UIDs of pods that were seen to go. Written by the handler of pods, read by claims.
    deleted: Mutex<Recent<Uid>>,
    recorder: EventRecorder,
    options: Options,
}

pub(crate) fn pod_kind() -> ResourceKind {
    ResourceKind::namespaced(CORE, "Pod", "pods")
}

pub(crate) fn claim_kind() -> ResourceKind {
    ResourceKind::namespaced(RESOURCE, "ResourceClaim", "resourceclaims")
}

fn template_kind() -> ResourceKind {
    ResourceKind::namespaced(RESOURCE, "ResourceClaimTemplate", "resourceclaimtemplates")
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let metrics = options.metrics.clone();
    manager.add_metrics(move |registry| metrics.register(registry));
    let shared = Arc::new(Claims::new(manager, options));
    manager.add(claim_queue(&shared));
    manager.add(pod_queue(&shared));
}

impl Claims {
    fn new(manager: &Manager, options: &Options) -> Self {
        let factory = manager.factory();
        let informer = |kind: &ResourceKind| factory.dynamic(kind.gvr().clone());
        let (pods, claims) = (informer(&pod_kind()), informer(&claim_kind()));
        let indices = [
            pods.add_index(PODS_BY_CLAIM, keys::claims_of_pod),
            pods.add_index(PODS_BY_TEMPLATE, keys::templates_of_pod),
            claims.add_index(CLAIMS_BY_OWNER, keys::owner_of_claim),
        ];
        for failure in indices.into_iter().filter_map(Result::err) {
            tracing::debug!(%failure, "an index was there before");
        }
        options.metrics.read_from(claims.lister());
        Self {
            pods: pods.lister(),
            claims: claims.lister(),
            templates: informer(&template_kind()).lister(),
            deleted: Mutex::new(Recent::new(options.deleted_uids_limit)),
            recorder: manager.recorder(COMPONENT),
            options: options.clone(),
        }
    }
}

/// Claims, after changes of themselves and of the pods that used them.
fn claim_queue(shared: &Arc<Claims>) -> Controller {
    let (reconcile, of_pod) = (shared.clone(), shared.clone());
    Controller::of_kind(claim_kind(), move |key, cx| {
        let claims = reconcile.clone();
        async move { claims.sync_claim(&key, &cx).await }
    })
    .named(COMPONENT)
    .workers(shared.options.workers)
    .filter(|change| change.new.is_some())
    .watches_kind(pod_kind(), move |pod| of_pod.released_claims(pod.doc()))
}

/// Pods, after changes of themselves, of their claims and of their templates.
fn pod_queue(shared: &Arc<Claims>) -> Controller {
    let (reconcile, filter) = (shared.clone(), shared.clone());
    let (of_claim, of_template) = (shared.clone(), shared.clone());
    Controller::of_kind(pod_kind(), move |key, cx| {
        let claims = reconcile.clone();
        async move { claims.sync_pod(&key, &cx).await }
    })
    .named(POD_QUEUE)
    .workers(shared.options.workers)
    .filter(move |change| change.new.is_some_and(|pod| filter.needs_work(pod.doc())))
    .watches_kind(claim_kind(), move |claim| of_claim.pods_of_claim(claim))
    .watches_kind(template_kind(), move |template| {
        of_template.pods_of_template(template)
    })
    .filter(|change| change.new.is_some())
}

impl std::fmt::Debug for Claims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claims")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
