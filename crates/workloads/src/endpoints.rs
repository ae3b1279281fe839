//! Keeps the Endpoints of Services, the older form of EndpointSlices: one object for each Service,
//! with the addresses of its first family.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use windlass_cache::{Obj, SharedInformer};
use windlass_client::{DeleteOptions, WriteOptions};
use windlass_core::{Doc, EditError, Key, Object, doc};
use windlass_runtime::{
    Action, Change, Context, Controller, EventType, Manager, ResourceKind, Result, Trigger,
};

use crate::{
    endpointslice::{
        HEADLESS, Selection,
        endpoint::{hostname, is_endpoint, ports, publishes_all, target},
        selects,
    },
    is_namespace_terminating, is_pod_ready,
    owned::core_kind,
};

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "endpoints-controller";

/// How many Services are synced at the same time, as in kube-controller-manager.
pub const WORKERS: usize = 5;
/// How many addresses an object has at most.
pub const MAX_ADDRESSES: usize = 1000;
/// How often a Service that fails is tried again before it is left until it changes.
pub const RETRIES_LIMIT: u32 = 15;

/// The fields of a pod's spec that this controller reads.
pub const POD_SPEC_FIELDS: &[&str] = crate::endpointslice::POD_SPEC_FIELDS;

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

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
    let kind = core_kind("Endpoints", "endpoints");
    let engine = Arc::new(Engine {
        selection: Selection::new(manager),
        endpoints: manager.factory().dynamic(kind.gvr().clone()),
        kind,
    });
    manager.add(engine.controller(options.workers));
}

/// The controller.
struct Engine {
    selection: Selection,
    kind: ResourceKind,
    endpoints: SharedInformer,
}

/// The addresses of one set of ports, those that are ready and those that are not.
#[derive(Debug, Default)]
struct Subset {
    ports: Vec<Doc>,
    ready: BTreeMap<String, Doc>,
    not_ready: BTreeMap<String, Doc>,
}

impl Engine {
    fn controller(self: Arc<Self>, workers: usize) -> Controller {
        let selection = self.selection.clone();
        let (services, pods) = (selection.service_kind.clone(), selection.pod_kind.clone());
        let endpoints = self.kind.clone();
        let sync = move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await }
        };
        Controller::of_kind(services, sync)
            .named(NAME)
            .queue_named("endpoint")
            .component(MANAGER)
            .workers(workers)
            .max_retries(RETRIES_LIMIT)
            .reacts_to_kind(pods, move |change| selection.on_pod(change))
            .reacts_to_kind(endpoints, on_endpoints)
    }

    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let known = self.endpoints.lister().get(key);
        let Some(service) = self.selection.service(key) else {
            self.clean_up(cx, known.as_ref()).await?;
            return Ok(Action::done());
        };
        if !selects(service.doc()) {
            return Ok(Action::done());
        }
        let wanted = self.wanted(&service, known.as_ref().map(Obj::doc))?;
        if known.as_ref().map(Obj::doc) == Some(&wanted) {
            return Ok(Action::done());
        }
        self.write(cx, &service, known.is_some(), &wanted).await?;
        Ok(Action::done())
    }

    /// Deletes what was kept here for a Service that is gone.
    async fn clean_up(&self, cx: &Context, known: Option<&Obj>) -> Result<()> {
        let Some(known) = known.filter(|it| is_ours(it)) else {
            return Ok(());
        };
        let api = cx.api(&self.kind, known.namespace());
        let options = DeleteOptions::uid(known.meta().uid_str());
        match api.delete(known.name(), &options).await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn write(&self, cx: &Context, service: &Obj, is_known: bool, wanted: &Doc) -> Result<()> {
        let (api, options) = (
            cx.api(&self.kind, service.namespace()),
            WriteOptions::default(),
        );
        let (reason, verb, result) = match is_known {
            true => {
                let updated = api.update(wanted, &options).await;
                ("FailedToUpdateEndpoint", "update", updated)
            }
            false => {
                let created = api.create(wanted, &options).await;
                ("FailedToCreateEndpoint", "create", created)
            }
        };
        match result {
            Ok(_) => Ok(()),
            Err(error) if is_namespace_terminating(&error) => Ok(()),
            Err(error) => {
                let key = service.key();
                let text = format!("Failed to {verb} endpoint {key}: {}", error.cause());
                cx.event(service, EventType::Warning, reason, &text);
                Err(error.into())
            }
        }
    }

    /// The Endpoints that a Service should have.
    fn wanted(&self, service: &Obj, known: Option<&Doc>) -> Result<Doc, EditError> {
        let doc = service.doc();
        let (subsets, is_truncated) = subsets(doc, &self.selection.pods(service));
        let labels = doc.meta().labels();
        let labels = labels.iter().filter(|(key, _)| *key != HEADLESS);
        let labels = labels.map(|(key, value)| (key, Doc::from(value)));
        let mut labels: Object = labels.collect();
        if matches!(doc.str_at("/spec/clusterIP"), "" | "None") {
            labels = labels.with(HEADLESS, "".into());
        }
        let labels = labels.with(MANAGED_BY, MANAGER.into());
        let base = known.cloned().unwrap_or_else(|| {
            doc!({ "apiVersion": "v1", "kind": "Endpoints", "metadata": {
                "name": (service.name()), "namespace": (service.namespace())
            } })
        });
        let annotations = base.at("/metadata/annotations").as_object().cloned();
        let annotations = annotations.unwrap_or_else(Object::empty);
        let annotations = match is_truncated {
            true => annotations.with(OVER_CAPACITY, "truncated".into()),
            false => annotations.without(OVER_CAPACITY),
        };
        let base = base.with("/metadata/labels", labels)?;
        let base = match annotations.is_empty() {
            true => base.without("/metadata/annotations").unwrap_or(base),
            false => base.with("/metadata/annotations", annotations)?,
        };
        match subsets.is_empty() {
            true => Ok(base.without("/subsets").unwrap_or(base)),
            false => base.with("/subsets", subsets),
        }
    }
}

/// Returns true if an object was made here.
fn is_ours(endpoints: &Obj) -> bool {
    endpoints.meta().label(MANAGED_BY) == Some(MANAGER)
}

/// What was kept here is put right if somebody changes it, and goes if its Service did meanwhile.
fn on_endpoints(change: &Change<'_>) -> Vec<Trigger> {
    let object = change.object().filter(|it| is_ours(it));
    object
        .map(|it| Trigger::now(it.key()))
        .into_iter()
        .collect()
}

/// The subsets of a Service, and whether addresses were left out.
fn subsets(service: &Doc, pods: &[Obj]) -> (Vec<Doc>, bool) {
    let is_v6 = match service.str_at("/spec/ipFamilies/0") {
        "" => service.str_at("/spec/clusterIP").contains(':'),
        family => family == "IPv6",
    };
    let publishes = publishes_all(service);
    let mut groups: BTreeMap<Vec<String>, Subset> = BTreeMap::new();
    for pod in pods.iter().map(Obj::doc) {
        if !is_endpoint(pod) || (pod.meta().is_deleting() && !publishes) {
            continue;
        }
        let ips = pod.at("/status/podIPs").items().iter();
        let mut ips = ips.map(|it| it.str_at("/ip"));
        let Some(ip) = ips.find(|ip| ip.contains(':') == is_v6) else {
            continue;
        };
        let ports = ports(service, pod);
        let has_no_port = ports.is_empty() && !service.at("/spec/ports").items().is_empty();
        if has_no_port {
            continue;
        }
        let key = ports
            .iter()
            .map(ToString::to_string)
            .collect::<BTreeSet<_>>();
        let subset = groups.entry(key.into_iter().collect()).or_default();
        subset.ports = ports.iter().map(nameless).collect();
        let address = address(service, pod, ip);
        match publishes || is_pod_ready(pod) {
            true => subset.ready.insert(ip.to_owned(), address),
            false => subset.not_ready.insert(ip.to_owned(), address),
        };
    }
    truncated(groups.into_values().collect())
}

/// A port without a name that is empty, as this form has it.
fn nameless(port: &Doc) -> Doc {
    match port.str_at("/name") {
        "" => port.without("/name").unwrap_or_else(|_| port.clone()),
        _ => port.clone(),
    }
}

fn address(service: &Doc, pod: &Doc, ip: &str) -> Doc {
    let mut fields = vec![("ip", Doc::from(ip)), ("targetRef", target(pod))];
    let node = pod.str_at("/spec/nodeName");
    if !node.is_empty() {
        fields.push(("nodeName", node.into()));
    }
    fields.extend(hostname(service, pod).map(|name| ("hostname", Doc::from(name))));
    fields.into_iter().collect::<Object>().into()
}

/// Subsets with no more addresses than may be: first those that are ready.
fn truncated(subsets: Vec<Subset>) -> (Vec<Doc>, bool) {
    let count = |list: &BTreeMap<String, Doc>| list.len();
    let ready: usize = subsets.iter().map(|it| count(&it.ready)).sum();
    let not_ready: usize = subsets.iter().map(|it| count(&it.not_ready)).sum();
    let mut ready_left = ready.min(MAX_ADDRESSES);
    let mut others_left = not_ready.min(MAX_ADDRESSES - ready_left);
    let take = |list: BTreeMap<String, Doc>, left: &mut usize| {
        let taken: Vec<Doc> = list.into_values().take(*left).collect();
        *left -= taken.len();
        taken
    };
    let mut docs = Vec::new();
    for subset in subsets {
        let lists = [
            ("addresses", take(subset.ready, &mut ready_left)),
            (
                "notReadyAddresses",
                take(subset.not_ready, &mut others_left),
            ),
        ];
        if lists.iter().all(|(_, list)| list.is_empty()) {
            continue;
        }
        let ports = [("ports", subset.ports)];
        let lists = lists.into_iter().chain(ports);
        let lists = lists.filter(|(_, list)| !list.is_empty());
        let fields = lists.map(|(key, list)| (key, Doc::from(list)));
        docs.push(fields.collect::<Object>().into());
    }
    (docs, ready + not_ready > MAX_ADDRESSES)
}
