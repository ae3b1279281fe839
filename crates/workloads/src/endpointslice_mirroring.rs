//! Mirrors Endpoints that no selector makes to EndpointSlices.
//!
//! Somebody wrote those Endpoints by hand, for a Service without a selector. There is one slice for
//! each family of addresses and set of ports. Slices of Endpoints that are not to be mirrored any
//! more are deleted.

mod mirror;
mod subsets;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use windlass_cache::{Obj, SharedInformer};
use windlass_client::{DeleteOptions, WriteOptions};
use windlass_core::{Doc, GroupVersion, Key, Str};
use windlass_queue::ItemExponential;
use windlass_runtime::{
    Action, Change, Context, Controller, EventType, Manager, ResourceKind, Result, Trigger,
};

use crate::{
    is_namespace_terminating,
    owned::{self, core_kind},
};
use mirror::{Mirror, SliceKey};
use subsets::Desired;

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "endpointslice-mirroring-controller";

/// Endpoints that are mirrored at the same time, as in kube-controller-manager.
pub const WORKERS: usize = 5;
/// The most addresses of a subset that are mirrored, as upstream.
pub const MAX_ADDRESSES_PER_SUBSET: usize = 1000;
/// The number of times that Endpoints which fail are tried again.
pub const RETRIES_LIMIT: u32 = 15;
/// The back-off after the first failure. Each further one doubles it.
pub const RETRY_MIN: Duration = Duration::from_secs(1);
/// The longest back-off.
pub const RETRY_MAX: Duration = Duration::from_secs(100);

/// The label by which a slice says who makes it, and the value for this controller.
const MANAGED_BY: (&str, &str) = (
    "endpointslice.kubernetes.io/managed-by",
    "endpointslicemirroring-controller.k8s.io",
);
/// The label of a slice with the name of its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label of Endpoints that are not to be mirrored.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// The annotation of Endpoints that are a lock for leader election.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// The index of slices by the Endpoints that they mirror.
const BY_ENDPOINTS: &str = "mirroredEndpoints";

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Endpoints that are mirrored at the same time.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { workers: WORKERS }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let discovery = GroupVersion::constant("discovery.k8s.io", "v1");
    let kinds = Kinds {
        endpoints: core_kind("Endpoints", "endpoints"),
        services: core_kind("Service", "services"),
        slices: ResourceKind::namespaced(discovery, "EndpointSlice", "endpointslices"),
    };
    let informer = |kind: &ResourceKind| manager.factory().dynamic(kind.gvr().clone());
    let engine = Arc::new(Engine {
        endpoints: informer(&kinds.endpoints),
        services: informer(&kinds.services),
        slices: informer(&kinds.slices),
        kinds,
    });
    owned::accept(engine.slices.add_index(BY_ENDPOINTS, |slice| {
        let key = mirrored_by(slice);
        key.map(|it| Str::new(it.as_str())).into_iter().collect()
    }));
    manager.add(engine.controller(options.workers));
}

/// The kinds that the controller reads and writes.
struct Kinds {
    endpoints: ResourceKind,
    services: ResourceKind,
    slices: ResourceKind,
}

/// The controller.
struct Engine {
    kinds: Kinds,
    endpoints: SharedInformer,
    services: SharedInformer,
    slices: SharedInformer,
}

/// The key of the Endpoints that a slice of this controller mirrors.
fn mirrored_by(slice: &Obj) -> Option<Key> {
    let (meta, (label, value)) = (slice.meta(), MANAGED_BY);
    let name = meta.label(SERVICE_NAME).filter(|it| !it.is_empty())?;
    (meta.label(label) == Some(value)).then(|| Key::new(slice.namespace(), name))
}

/// Returns true if Endpoints are mirrored, if their Service has no selector.
fn is_mirrored(endpoints: &Obj) -> bool {
    let meta = endpoints.meta();
    meta.label(SKIP) != Some("true") && meta.annotation(LEADER).is_none()
}

fn has_selector(service: &Doc) -> bool {
    !service.at("/spec/selector").is_null()
}

impl Engine {
    fn controller(self: Arc<Self>, workers: usize) -> Controller {
        let (endpoints, services) = (self.kinds.endpoints.clone(), self.kinds.services.clone());
        let slices = self.kinds.slices.clone();
        let sync = move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await }
        };
        Controller::of_kind(endpoints, sync)
            .filter(|change| {
                let mut states = [change.old, change.new].into_iter().flatten();
                states.any(is_mirrored)
            })
            .named(NAME)
            .queue_named("endpoint_slice_mirroring")
            .component("endpoint-slice-mirroring-controller")
            .workers(workers)
            .max_retries(RETRIES_LIMIT)
            .rate_limiter(ItemExponential::new(RETRY_MIN, RETRY_MAX))
            .reacts_to_kind(services, on_service)
            .reacts_to_kind(slices, on_slice)
    }

    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let slices = self.slices.lister().snapshot();
        let slices = slices.by_index(BY_ENDPOINTS, key.as_str())?;
        let service = self.services.lister().get(key);
        let is_manual = service.is_some_and(|it| !has_selector(it.doc()));
        let endpoints = self.endpoints.lister().get(key).filter(is_mirrored);
        match endpoints.filter(|_| is_manual) {
            Some(endpoints) => self.mirror(cx, &endpoints, &slices).await?,
            None => {
                for slice in &slices {
                    self.delete(cx, slice.doc()).await?;
                }
            }
        }
        Ok(Action::done())
    }

    async fn mirror(&self, cx: &Context, endpoints: &Obj, slices: &[Obj]) -> Result<()> {
        let desired = Desired::of(endpoints.doc());
        tell(cx, endpoints, &desired);
        let mut known: BTreeMap<SliceKey, Vec<Doc>> = BTreeMap::new();
        for slice in slices.iter().map(Obj::doc) {
            let group = known.entry(SliceKey::of(slice)).or_default();
            group.push(slice.clone());
        }
        let kind = self.kinds.endpoints.gvk();
        let mirror = Mirror::plan(endpoints.doc(), kind, desired, known)?;
        let api = cx.api(&self.kinds.slices, endpoints.namespace());
        let options = WriteOptions::default();
        for slice in mirror.create(cx.env()) {
            match api.create(&slice?, &options).await {
                Err(error) if is_namespace_terminating(&error) => return Ok(()),
                created => drop(created?),
            }
        }
        for slice in &mirror.update {
            api.update(slice, &options).await?;
        }
        for slice in &mirror.delete {
            self.delete(cx, slice).await?;
        }
        Ok(())
    }

    async fn delete(&self, cx: &Context, slice: &Doc) -> Result<()> {
        let meta = slice.meta();
        let api = cx.api(&self.kinds.slices, meta.namespace());
        let options = DeleteOptions::uid(meta.uid_str());
        match api.delete(meta.name(), &options).await {
            Err(error) if error.is_not_found() => Ok(()),
            deleted => Ok(deleted.map(drop)?),
        }
    }
}

/// Tells of addresses that are not mirrored.
fn tell(cx: &Context, endpoints: &Obj, desired: &Desired) {
    let (invalid, skipped) = (desired.invalid, desired.skipped);
    if invalid > 0 {
        let text =
            format!("Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices");
        cx.event(endpoints, EventType::Warning, "InvalidIPAddress", &text);
    }
    if skipped > invalid {
        let text = format!(
            "A max of {MAX_ADDRESSES_PER_SUBSET} addresses can be mirrored to EndpointSlices per \
             Endpoints subset. {skipped} addresses were skipped"
        );
        let reason = "TooManyAddressesToMirror";
        cx.event(endpoints, EventType::Warning, reason, &text);
    }
}

/// A Service matters when it comes or goes without a selector, or gets or loses one.
fn on_service(change: &Change<'_>) -> Vec<Trigger> {
    let selects = |service: Option<&Obj>| service.map(|it| has_selector(it.doc()));
    let is_concerned = match (selects(change.old), selects(change.new)) {
        (Some(old), Some(new)) => old != new,
        (old, new) => old.or(new) == Some(false),
    };
    let service = change.object().filter(|_| is_concerned);
    let key = service.map(|it| Trigger::now(it.key()));
    key.into_iter().collect()
}

/// A slice that somebody changed is put right, for the Endpoints that it was for and is for.
fn on_slice(change: &Change<'_>) -> Vec<Trigger> {
    let slices = [change.old, change.new].into_iter().flatten();
    let mut keys: Vec<Key> = slices.filter_map(mirrored_by).collect();
    keys.dedup();
    keys.into_iter().map(Trigger::now).collect()
}
