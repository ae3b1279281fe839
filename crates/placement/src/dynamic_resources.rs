//! The scheduler plug-in for claims: a pod waits until its claims can be met.
//!
//! A pod whose claims do not exist yet is not tried at all. For the others the allocator looks for
//! devices on each node; what it finds on the chosen node is kept in memory until it is written to
//! the claims, together with a reservation for the pod. Claims that already have devices only get
//! the reservation, on the nodes where those devices are.
//!
//! `Tracker` knows who has which device: it follows the claims in the cache,
//! is ahead of them by what this scheduler has written, and counts what is about to be written.

mod bind;
mod cycle;
mod tracker;
mod wake;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use windlass_cache::{HandlerFns, Lister, Registration};
use windlass_client::{DynamicApi, DynamicClient};
use windlass_core::{Doc, Env, Gvr, Key, Uid, doc};
use windlass_runtime::{EventRecorder, Manager};

use crate::{
    allocator::{Inventory, Plan, Selectors},
    claims::{ClaimName, RESOURCE_CLAIMS, claim_name, is_allocated, must_be_for_pod},
    scheduler::{ClusterEvent, Plugin, PluginFuture, PodCycle, Reach, Refusal, Verdict, Waker},
};
use cycle::{Cycle, CycleClaim};
use tracker::Tracker;

/// The name of the plug-in.
pub const NAME: &str = "DynamicResources";

/// How long the search on one node may take.
pub const FILTER_TIMEOUT: Duration = Duration::from_secs(10);

const DEVICE_CLASSES: Gvr = Gvr::constant("resource.k8s.io", "v1", "deviceclasses");
const RESOURCE_SLICES: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceslices");
const PODS: Gvr = Gvr::constant("", "v1", "pods");
const NODES: Gvr = Gvr::constant("", "v1", "nodes");
/// Who writes.
const MANAGER: &str = "scheduler";
/// The component of events.
const COMPONENT: &str = "default-scheduler";
const SCORE_WEIGHT: i64 = 2;

/// How the plug-in works.
#[derive(Clone, Debug)]
pub struct Options {
    /// The language of selectors.
    pub selectors: Selectors,
    /// How long the search on one node may take; zero for no limit.
    pub filter_timeout: Duration,
    /// Whether an event says, for a pod that waits, which request failed on which node and why.
    pub explains: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            selectors: Selectors::default(),
            filter_timeout: FILTER_TIMEOUT,
            explains: true,
        }
    }
}

/// Who writes a claim waits for whoever writes it already.
type Turn = Arc<tokio::sync::Mutex<()>>;

/// The plug-in.
pub struct DynamicResources(Arc<Shared>, Vec<Registration>);

struct Shared {
    options: Options,
    classes: Lister,
    /// What drivers publish. Written by the handler of slices. Locked before the tracker, where
    /// both are needed.
    inventory: RwLock<Inventory>,
    /// Who has which device. Written by the handler of claims and by cycles.
    tracker: Mutex<Tracker>,
    /// One turn at a time for each claim that is being written. An entry lives as long as somebody
    /// waits for it.
    turns: Mutex<HashMap<Uid, Turn>>,
    waker: OnceLock<Waker>,
    client: DynamicClient,
    recorder: EventRecorder,
    env: Env,
}

impl DynamicResources {
    /// A plug-in that reads and writes through a manager. Its caches start with the manager.
    #[must_use]
    pub fn new(manager: &Manager, options: &Options) -> Self {
        let factory = manager.factory();
        let shared = Arc::new(Shared {
            options: options.clone(),
            classes: factory.dynamic(DEVICE_CLASSES).lister(),
            inventory: RwLock::default(),
            tracker: Mutex::default(),
            turns: Mutex::default(),
            waker: OnceLock::new(),
            client: manager.dynamic(),
            recorder: manager.recorder(COMPONENT),
            env: manager.env().clone(),
        });
        let added = [
            factory
                .dynamic(RESOURCE_CLAIMS)
                .add_handler(shared.on_claim()),
            factory
                .dynamic(RESOURCE_SLICES)
                .add_handler(shared.on_slice()),
            factory
                .dynamic(DEVICE_CLASSES)
                .add_handler(shared.on_class()),
            factory.dynamic(NODES).add_handler(shared.on_node()),
        ];
        let mut registrations = Vec::new();
        for added in added {
            match added {
                Ok(registration) => registrations.push(registration),
                Err(failure) => tracing::error!(%failure, "claims are not followed"),
            }
        }
        Self(shared, registrations)
    }
}

impl Shared {
    fn wake(&self, resource: &'static str, old: Option<Doc>, new: Option<Doc>) {
        if let Some(waker) = self.waker.get() {
            waker.wake(ClusterEvent::Other { resource, old, new });
        }
    }

    /// What a cache tells, as what was and what is.
    fn on_any(
        self: &Arc<Self>,
        tell: impl Fn(&Self, Option<Doc>, Option<Doc>) + Clone + Send + Sync + 'static,
    ) -> HandlerFns<Doc> {
        let (add, update, delete) = (self.clone(), self.clone(), self.clone());
        let (on_add, on_update) = (tell.clone(), tell.clone());
        let doc = |object: &windlass_cache::Obj| Some(object.doc().clone());
        HandlerFns::new()
            .on_add(move |new, _| on_add(&add, None, doc(&new)))
            .on_update(move |old, new| on_update(&update, doc(&old), doc(&new)))
            .on_delete(move |deleted| tell(&delete, doc(deleted.object()), None))
    }

    fn on_claim(self: &Arc<Self>) -> HandlerFns<Doc> {
        self.on_any(|shared, old, new| {
            let changed = match (old, new) {
                (_, Some(claim)) => shared.tracker.lock().observe(&claim),
                (Some(claim), None) => shared.tracker.lock().forget(&claim),
                (None, None) => None,
            };
            if let Some((old, new)) = changed {
                shared.wake("resourceclaims", old, new);
            }
        })
    }

    fn on_slice(self: &Arc<Self>) -> HandlerFns<Doc> {
        self.on_any(|shared, old, new| {
            match (&old, &new) {
                (_, Some(slice)) => shared.inventory.write().insert(slice),
                (Some(slice), None) => shared.inventory.write().remove(slice.meta().name()),
                (None, None) => {}
            }
            shared.wake("resourceslices", old, new);
        })
    }

    fn on_class(self: &Arc<Self>) -> HandlerFns<Doc> {
        self.on_any(|shared, old, new| shared.wake("deviceclasses", old, new))
    }

    fn on_node(self: &Arc<Self>) -> HandlerFns<Doc> {
        self.on_any(|shared, old, new| {
            if let (Some(node), None) = (old, new) {
                shared.inventory.read().forget_node(node.meta().name());
            }
        })
    }

    /// Waits for the turn of a claim. Pods that share one would otherwise only get in each other's
    /// way: of many writes at the same time the server takes one.
    fn turn(&self, claim: &Uid) -> Turn {
        self.turns.lock().entry(claim.clone()).or_default().clone()
    }

    /// Forgets the turns of a claim that nobody waits for.
    fn end_turn(&self, claim: &Uid, turn: Turn) {
        let mut turns = self.turns.lock();
        drop(turn);
        if turns
            .get(claim)
            .is_some_and(|turn| Arc::strong_count(turn) == 1)
        {
            turns.remove(claim);
        }
    }

    fn class(&self, name: &str) -> Option<Doc> {
        let class = self.classes.get(&Key::cluster(name))?;
        Some(class.doc().clone())
    }

    fn api(&self, claim: &Doc) -> DynamicApi {
        let api = self.client.resource(RESOURCE_CLAIMS);
        api.namespaced(claim.meta().namespace())
    }

    /// The claims of a pod, as far as they are known.
    fn claims_of(&self, pod: &Doc) -> Result<Vec<Doc>, String> {
        let mut claims = Vec::new();
        for entry in pod.at("/spec/resourceClaims").items() {
            let name = claim_name(pod, entry).map_err(|error| error.to_string())?;
            let ClaimName::Named { name, is_generated } = name else {
                continue;
            };
            let key = Key::new(pod.meta().namespace(), name);
            let claim = self.tracker.lock().get(&key);
            let claim = claim.ok_or_else(|| format!("could not find ResourceClaim \"{key}\""))?;
            if claim.meta().is_deleting() {
                return Err(format!("resourceclaim {name:?} is being deleted"));
            }
            if is_generated {
                must_be_for_pod(pod, &claim).map_err(|error| error.to_string())?;
            }
            claims.push(claim);
        }
        Ok(claims)
    }

    /// Whether every class exists that a claim asks for.
    fn check_classes(&self, claim: &Doc) -> Verdict {
        for request in claim.at("/spec/devices/requests").items() {
            let name = request.str_at("/name");
            let exactly = request.at("/exactly");
            let list = request.at("/firstAvailable").items();
            if exactly.is_null() && list.is_empty() {
                let key = claim.meta().key();
                return Err(Refusal::Unresolvable(format!(
                    "resource claim {key}, request {name}: unknown request type"
                )));
            }
            let subs = list
                .iter()
                .map(|sub| (format!("{name}/{}", sub.str_at("/name")), sub));
            let exact = (!exactly.is_null()).then(|| (name.to_owned(), exactly));
            for (name, asked) in exact.into_iter().chain(subs) {
                let class = asked.str_at("/deviceClassName");
                if self.classes.get(&Key::cluster(class)).is_none() {
                    return Err(Refusal::Unresolvable(format!(
                        "request {name}: device class {class} does not exist"
                    )));
                }
            }
        }
        Ok(())
    }
}

impl Plugin for DynamicResources {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Before all claims are known, devices that somebody has would seem free.
    fn wait_for_sync(&self) -> PluginFuture<'_, ()> {
        Box::pin(async {
            for registration in &self.1 {
                registration.wait_for_sync().await;
            }
        })
    }

    fn attach(&self, waker: Waker) {
        // Only the first scheduler that attaches is woken.
        let _ = self.0.waker.set(waker);
    }

    fn pre_enqueue(&self, pod: &Doc) -> Verdict {
        match self.0.claims_of(pod) {
            Ok(_) => Ok(()),
            Err(reason) => Err(Refusal::Unresolvable(reason)),
        }
    }

    fn pre_filter(&self, pod: &Doc) -> Result<Option<Box<dyn PodCycle>>, Refusal> {
        let claims = self.0.claims_of(pod).map_err(Refusal::Unresolvable)?;
        if claims.is_empty() {
            return Ok(None);
        }
        let mut open = Vec::new();
        for claim in claims.iter().filter(|claim| !is_allocated(claim)) {
            if self.0.tracker.lock().is_in_flight(claim) {
                let key = claim.meta().key();
                return Err(Refusal::Unresolvable(format!(
                    "resource claim {key} is in the process of being allocated"
                )));
            }
            self.0.check_classes(claim)?;
            open.push(claim.clone());
        }
        let classes = |name: &str| self.0.class(name);
        let plan =
            (!open.is_empty()).then(|| Plan::new(&open, &classes, &self.0.options.selectors));
        let claims = claims.into_iter().map(CycleClaim::new).collect();
        Ok(Some(Box::new(Cycle::new(
            self.0.clone(),
            pod,
            claims,
            plan,
        ))))
    }

    fn wakes(&self, pod: &Doc, event: &ClusterEvent) -> bool {
        wake::wakes(&self.0, pod, event)
    }

    fn reach(&self, event: &ClusterEvent) -> Reach {
        wake::reach(event)
    }

    fn depends_on(&self, pod: &Doc) -> Vec<Key> {
        let entries = pod.at("/spec/resourceClaims").items().iter();
        let named = entries.filter_map(|entry| match claim_name(pod, entry) {
            Ok(ClaimName::Named { name, .. }) => Some(Key::new(pod.meta().namespace(), name)),
            _ => None,
        });
        named.collect()
    }

    fn weight(&self) -> i64 {
        SCORE_WEIGHT
    }

    fn idle_message(&self) -> &'static str {
        "no new claims to deallocate"
    }
}

/// The status without an allocation, or anything that belongs to one.
fn deallocated(claim: &Doc) -> Doc {
    let parts = [
        "/status/reservedFor",
        "/status/allocation",
        "/status/devices",
    ];
    parts.iter().fold(claim.clone(), |claim, part| {
        claim.without(part).unwrap_or(claim)
    })
}

/// The patch that takes the reservation of a pod from a claim, and from no other of its name.
fn release_patch(claim: &Doc, pod: &Doc) -> Doc {
    doc!({
        "metadata": { "uid": (claim.meta().uid_str()) },
        "status": { "reservedFor": [{ "$patch": "delete", "uid": (pod.meta().uid_str()) }] }
    })
}

impl fmt::Debug for DynamicResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicResources")
            .field("tracker", &self.0.tracker.lock())
            .finish_non_exhaustive()
    }
}
