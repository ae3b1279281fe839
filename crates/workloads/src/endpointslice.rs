//! Keeps the EndpointSlices of Services: the addresses of the pods that they select, with the
//! readiness of each.

pub(crate) mod endpoint;
pub(crate) mod pack;
mod selection;
mod topology;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use windlass_cache::{Obj, SharedInformer};
use windlass_client::{DeleteOptions, WriteOptions};
use windlass_core::{
    Doc, EditError, GroupVersion, Key, Object, OwnerRef, Str, condition, doc, names,
};
use windlass_queue::ItemExponential;
use windlass_runtime::{
    Action, Change, Context, Controller, Error, EventType, Manager, ResourceKind, Result, Trigger,
};

use crate::{is_namespace_terminating, owned};
use endpoint::{AddressType, endpoint, is_endpoint, ports, publishes_all};
use pack::{Changes, Group, endpoint_key, pack, ports_key};
pub(crate) use selection::{Selection, selects};
use topology::ZoneShares;

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "endpointslice-controller";

/// How many Services are synced at the same time, as in kube-controller-manager.
pub const WORKERS: usize = 5;
/// How many endpoints a slice has at most, as in kube-controller-manager.
pub const MAX_ENDPOINTS: usize = 100;
/// How often a Service that fails is tried again before it is left until it changes.
pub const RETRIES_LIMIT: u32 = 15;

/// How long changes of slices by others are collected.
const SLICE_DELAY: Duration = Duration::from_secs(1);

/// Who a slice says it is managed by.
const MANAGER: &str = "endpointslice-controller.k8s.io";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(crate) const HEADLESS: &str = "service.kubernetes.io/headless";

/// The index of slices by the Service they are for.
const BY_SERVICE: &str = "sliceService";

/// The fields of a pod's spec that this controller reads.
pub const POD_SPEC_FIELDS: &[&str] = &["containers", "initContainers", "nodeName"];

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many Services are synced at the same time.
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
    let slice_kind = ResourceKind::namespaced(discovery, "EndpointSlice", "endpointslices");
    let informer = |kind: &ResourceKind| manager.factory().dynamic(kind.gvr().clone());
    let nodes = ResourceKind::cluster(GroupVersion::constant("", "v1"), "Node", "nodes");
    let engine = Arc::new(Engine {
        selection: Selection::new(manager),
        slices: informer(&slice_kind),
        nodes: informer(&nodes),
        slice_kind,
        node_kind: nodes,
        hinted: Mutex::default(),
    });
    owned::accept(engine.slices.add_index(BY_SERVICE, service_of_slice));
    manager.add(engine.controller(options.workers));
}

fn service_of_slice(slice: &Obj) -> Vec<Str> {
    service_key(slice)
        .map(|key| Str::new(key.as_str()))
        .into_iter()
        .collect()
}

/// The Service of a slice of ours.
fn service_key(slice: &Obj) -> Option<Key> {
    let meta = slice.meta();
    let is_ours = meta.label(MANAGED_BY) == Some(MANAGER);
    let name = meta.label(SERVICE_NAME).filter(|_| is_ours)?;
    Some(Key::new(slice.namespace(), name))
}

/// The controller.
struct Engine {
    selection: Selection,
    slice_kind: ResourceKind,
    node_kind: ResourceKind,
    slices: SharedInformer,
    nodes: SharedInformer,
    /// Services whose endpoints have topology-aware hints. Written by syncs, and bounded by the
    /// Services that exist.
    hinted: Mutex<HashSet<Key>>,
}

impl Engine {
    fn controller(self: Arc<Self>, workers: usize) -> Controller {
        let selection = self.selection.clone();
        let (services, pods) = (selection.service_kind.clone(), selection.pod_kind.clone());
        let (slices, nodes) = (self.slice_kind.clone(), self.node_kind.clone());
        let services_of_nodes = selection.services.clone();
        let sync = move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await }
        };
        Controller::of_kind(services, sync)
            .named(NAME)
            .queue_named("endpoint_slice")
            .component("endpoint-slice-controller")
            .workers(workers)
            .max_retries(RETRIES_LIMIT)
            .rate_limiter(ItemExponential::new(
                Duration::from_secs(1),
                Duration::from_secs(1000),
            ))
            .reacts_to_kind(pods, move |change| selection.on_pod(change))
            .reacts_to_kind(slices, on_slice)
            .reacts_to_kind(nodes, move |change| on_node(&services_of_nodes, change))
    }

    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(service) = self.selection.service(key) else {
            self.hinted.lock().remove(key);
            return Ok(Action::done());
        };
        if !selects(service.doc()) {
            return Ok(Action::done());
        }
        let result = self.sync_service(cx, &service).await;
        if let Err(error) = &result {
            let (namespace, name) = (service.namespace(), service.name());
            let text =
                format!("Error updating Endpoint Slices for Service {namespace}/{name}: {error}");
            let reason = "FailedToUpdateEndpointSlices";
            cx.event(&service, EventType::Warning, reason, &text);
        }
        result.map(|()| Action::done())
    }

    async fn sync_service(&self, cx: &Context, service: &Obj) -> Result<()> {
        let pods = self.selection.pods(service);
        let key = service.key();
        let found = self.slices.lister().snapshot();
        let found = found.by_index(BY_SERVICE, key.as_str())?;
        let mut slices: Vec<Doc> = found.iter().map(|it| it.doc().clone()).collect();
        slices.retain(|slice| !slice.meta().is_deleting());
        let mut first = None;
        for family in AddressType::of_service(service.doc()) {
            let (own, rest) = slices
                .into_iter()
                .partition(|it| it.str_at("/addressType") == family.as_str());
            slices = rest;
            let result = self
                .sync_family(cx, service.doc(), &pods, own, family)
                .await;
            first = first.or(result.err());
        }
        // What is left is of a family that the Service does not have any more.
        for slice in &slices {
            let deleted = self.delete(cx, slice).await;
            first = first.or(deleted.err());
        }
        first.map_or(Ok(()), Err)
    }

    async fn sync_family(
        &self,
        cx: &Context,
        service: &Doc,
        pods: &[Obj],
        slices: Vec<Doc>,
        family: AddressType,
    ) -> Result<()> {
        let (mut groups, missing) = self.groups(service, pods, family);
        self.add_topology_hints(cx, service, &mut groups, &slices, family);
        let count = slices.len();
        let (own, others): (Vec<Doc>, Vec<Doc>) = slices.into_iter().partition(|slice| {
            let mut owners = slice.meta().owner_refs();
            owners.any(|owner| owner.uid == service.meta().uid())
        });
        let mut by_ports: BTreeMap<_, Vec<Doc>> = BTreeMap::new();
        for slice in own {
            let key = ports_key(slice.at("/ports").items());
            by_ports.entry(key).or_default().push(slice);
        }
        let mut all = Changes {
            delete: others,
            ..Changes::default()
        };
        for (key, group) in groups {
            let known = by_ports.remove(&key).unwrap_or_default();
            let made = pack(group, &known, |slice| with_labels(slice, service))?;
            all.create.extend(made.create);
            all.update.extend(made.update);
            all.delete.extend(made.delete);
        }
        all.delete.extend(by_ports.into_values().flatten());
        keep_one(service, count, &mut all);
        self.carry_out(cx, service, all, family).await?;
        missing.map_or(Ok(()), Err)
    }

    /// The endpoints of the pods by ports, and word of pods whose nodes are not known.
    fn groups(
        &self,
        service: &Doc,
        pods: &[Obj],
        family: AddressType,
    ) -> (BTreeMap<pack::PortsKey, Group>, Option<Error>) {
        let (mut groups, mut missing) = (BTreeMap::<_, Group>::new(), None);
        for pod in pods.iter().map(Obj::doc).filter(|pod| is_endpoint(pod)) {
            let ports = ports(service, pod);
            let group = groups.entry(ports_key(&ports)).or_default();
            group.ports = ports;
            let name = pod.str_at("/spec/nodeName");
            let node = self.nodes.lister().get(&Key::new("", name));
            if node.is_none() && !publishes_all(service) {
                let (pod, of) = (pod.meta().name(), service.meta().key());
                let text = format!("skipping Pod {pod} for Service {of}: Node {name} Not Found");
                missing.get_or_insert_with(|| Error::msg(text));
                continue;
            }
            let found = endpoint(service, pod, node.as_ref().map(Obj::doc), family);
            let keyed = found.map(|it| (endpoint_key(&it), it));
            group.endpoints.extend(keyed);
        }
        (groups, missing)
    }

    /// Adds topology-aware hints if the Service asks for them, and tells of what comes of that.
    fn add_topology_hints(
        &self,
        cx: &Context,
        service: &Doc,
        groups: &mut BTreeMap<pack::PortsKey, Group>,
        slices: &[Doc],
        family: AddressType,
    ) {
        let key = service.meta().key();
        let tell = |event_type: EventType, reason: &str, text: &str| {
            let text = format!("{text}, addressType: {}", family.as_str());
            cx.recorder().event(service, event_type, reason, &text);
        };
        if !topology::is_auto(service) {
            if self.hinted.lock().remove(&key) {
                let text = "Topology Aware Hints has been disabled";
                tell(EventType::Warning, "TopologyAwareHintsDisabled", text);
            }
            return;
        }
        let nodes: Vec<Obj> = self.nodes.lister().snapshot().iter().collect();
        let shares = ZoneShares::of(nodes.iter().map(Obj::doc));
        match topology::add_hints(groups, shares.as_ref(), slices) {
            Ok(()) => {
                if self.hinted.lock().insert(key) {
                    let text = "Topology Aware Hints has been enabled";
                    tell(EventType::Normal, "TopologyAwareHintsEnabled", text);
                }
            }
            Err(text) => {
                self.hinted.lock().remove(&key);
                tell(EventType::Warning, "TopologyAwareHintsDisabled", &text);
            }
        }
    }

    /// Creates, updates and deletes. A slice that would go is made one that is missing.
    async fn carry_out(
        &self,
        cx: &Context,
        service: &Doc,
        mut changes: Changes,
        family: AddressType,
    ) -> Result<()> {
        let uid = service.meta().uid();
        let mut kept = Vec::new();
        for slice in std::mem::take(&mut changes.delete) {
            let is_ours = slice.meta().owner_refs().any(|owner| owner.uid == uid);
            let missing = match is_ours {
                true => changes.create.pop(),
                false => None,
            };
            match missing {
                Some((ports, endpoints)) => {
                    let slice = with_labels(&slice, service)?;
                    let slice = slice.with("/ports", ports)?.with("/endpoints", endpoints)?;
                    changes.update.push(slice);
                }
                None => kept.push(slice),
            }
        }
        let api = cx.api(&self.slice_kind, service.meta().namespace());
        for (ports, endpoints) in changes.create {
            if service.meta().is_deleting() {
                break;
            }
            let slice = self.new_slice(cx, service, family)?;
            let slice = slice.with("/ports", ports)?.with("/endpoints", endpoints)?;
            match api.create(&slice, &WriteOptions::default()).await {
                Err(error) if is_namespace_terminating(&error) => return Ok(()),
                result => drop(result?),
            }
        }
        for slice in &changes.update {
            api.update(slice, &WriteOptions::default()).await?;
        }
        for slice in &kept {
            self.delete(cx, slice).await?;
        }
        Ok(())
    }

    async fn delete(&self, cx: &Context, slice: &Doc) -> Result<()> {
        let api = cx.api(&self.slice_kind, slice.meta().namespace());
        let options = DeleteOptions::uid(slice.meta().uid_str());
        match api.delete(slice.meta().name(), &options).await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn new_slice(
        &self,
        cx: &Context,
        service: &Doc,
        family: AddressType,
    ) -> Result<Doc, EditError> {
        let meta = service.meta();
        let prefix = format!("{}-", meta.name());
        let name = names::generate_name(&prefix, cx.env());
        let kind = self.selection.service_kind.gvk();
        let reference = Doc::from(&OwnerRef::controller_of(service, kind));
        let slice = doc!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": name, "generateName": prefix, "namespace": (meta.namespace()),
                "ownerReferences": [reference],
            },
            "addressType": (family.as_str()),
        });
        with_labels(&slice, service)
    }
}

/// Adds an empty slice if there would be none; one that is there stays.
fn keep_one(service: &Doc, count: usize, changes: &mut Changes) {
    if count != changes.delete.len() || !changes.create.is_empty() {
        return;
    }
    let is_empty = |slice: &Doc| {
        let is_same = with_labels(slice, service).is_ok_and(|it| it == *slice);
        let is_bare = |at: &str| slice.at(at).items().is_empty();
        is_same && is_bare("/endpoints") && is_bare("/ports")
    };
    match &changes.delete[..] {
        [only] if is_empty(only) && only.meta().is_controlled_by(&service.meta().uid()) => {
            changes.delete.clear();
        }
        _ => changes.create.push((Vec::new(), Vec::new())),
    }
}

/// A slice with the labels of its Service and its own.
fn with_labels(slice: &Doc, service: &Doc) -> Result<Doc, EditError> {
    let is_free = |key: &str| ![SERVICE_NAME, MANAGED_BY, HEADLESS].contains(&key);
    let labels = service.meta().labels();
    let labels = labels.iter().filter(|(key, _)| is_free(key));
    let mut labels: Object = labels.map(|(key, value)| (key, Doc::from(value))).collect();
    if matches!(service.str_at("/spec/clusterIP"), "" | "None") {
        labels = labels.with(HEADLESS, "".into());
    }
    let labels = labels
        .with(SERVICE_NAME, service.meta().name().into())
        .with(MANAGED_BY, MANAGER.into());
    slice.with("/metadata/labels", labels)
}

/// A node that comes or goes, or changes its readiness, zone or CPUs, changes the shares of zones.
fn on_node(services: &SharedInformer, change: &Change<'_>) -> Vec<Trigger> {
    let facts = |node: Option<&Obj>| {
        let node = node?;
        let is_ready = condition(node.doc(), "Ready").is_some_and(|it| it.is_true());
        let parts = ["/metadata/labels", "/status/allocatable/cpu"];
        Some((is_ready, parts.map(|at| node.doc().at(at).clone())))
    };
    if facts(change.old) == facts(change.new) {
        return Vec::new();
    }
    let services = services.lister().snapshot();
    let asking = services.iter().filter(|it| topology::is_auto(it.doc()));
    asking.map(|it| Trigger::now(it.key())).collect()
}

/// A slice that somebody changed is put right, for the Service that it was for and the one it is for.
fn on_slice(change: &Change<'_>) -> Vec<Trigger> {
    let slices = [change.old, change.new].into_iter().flatten();
    let keys: HashSet<Key> = slices.filter_map(service_key).collect();
    let later = |key| Trigger::after(key, SLICE_DELAY);
    keys.into_iter().map(later).collect()
}
