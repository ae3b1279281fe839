//! Services and the pods that they select.

use std::collections::HashSet;

use windlass_cache::{Obj, SharedInformer};
use windlass_core::{Doc, Key, Selector, Str, doc};
use windlass_runtime::{Change, Error, Manager, ResourceKind, Trigger};

use crate::{
    is_pod_ready, is_pod_terminal,
    owned::{self, core_kind},
};

/// The index of pods by namespace and label.
const BY_LABEL: &str = "podLabel";

/// Services and the pods that they select.
#[derive(Clone)]
pub(crate) struct Selection {
    pub(crate) service_kind: ResourceKind,
    pub(crate) pod_kind: ResourceKind,
    pub(crate) services: SharedInformer,
    pods: SharedInformer,
}

impl Selection {
    pub(crate) fn new(manager: &Manager) -> Self {
        let (service_kind, pod_kind) = (core_kind("Service", "services"), core_kind("Pod", "pods"));
        let informer = |kind: &ResourceKind| manager.factory().dynamic(kind.gvr().clone());
        let selection = Self {
            services: informer(&service_kind),
            pods: informer(&pod_kind),
            service_kind,
            pod_kind,
        };
        owned::index_owners(&selection.services, selector);
        owned::accept(selection.pods.add_index(BY_LABEL, labels_of_pod));
        selection
    }

    /// The Service of a key that has endpoints by a selector.
    pub(crate) fn service(&self, key: &Key) -> Option<Obj> {
        self.services.lister().get(key)
    }

    /// The pods that a Service selects.
    pub(crate) fn pods(&self, service: &Obj) -> Vec<Obj> {
        let Ok(selector) = selector(service.doc()) else {
            return Vec::new();
        };
        let namespace = service.namespace();
        let label = selector.requirements().iter().find_map(|it| {
            let value = selector.exact_value(it.key())?;
            Some(bucket(namespace, it.key(), value))
        });
        let value = label.unwrap_or_else(|| bucket(namespace, "", ""));
        let found = self.pods.lister().snapshot().by_index(BY_LABEL, &value);
        let mut found = found.expect("invariant: the index was added with the controller");
        found.retain(|pod| selector.matches(&pod.labels()));
        found
    }

    /// The Services whose endpoints a change of a pod concerns.
    pub(crate) fn on_pod(&self, change: &Change<'_>) -> Vec<Trigger> {
        let is_same = match (change.old, change.new) {
            (Some(old), Some(new)) => !differs(old, new),
            _ => false,
        };
        if is_same {
            return Vec::new();
        }
        let services = self.services.lister().snapshot();
        let pods = [change.old, change.new].into_iter().flatten();
        let keys = pods.flat_map(|pod| owned::owners_wanting(&services, pod, selector));
        let keys: HashSet<Key> = keys.collect();
        keys.into_iter().map(Trigger::now).collect()
    }
}

/// Returns true if a Service gets its endpoints from pods.
pub(crate) fn selects(service: &Doc) -> bool {
    service.str_at("/spec/type") != "ExternalName" && !service.at("/spec/selector").is_null()
}

/// The selector of a Service; one without selects nothing.
fn selector(service: &Doc) -> Result<Selector, Error> {
    let labels = service.at("/spec/selector");
    if labels.is_null() {
        return Ok(Selector::nothing());
    }
    let selector = doc!({ "matchLabels": (labels.clone()) });
    owned::label_selector(&doc!({ "spec": { "selector": selector } }))
}

fn bucket(namespace: &str, key: &str, value: &str) -> Str {
    Str::from(format!("{namespace}/{key}={value}"))
}

fn labels_of_pod(pod: &Obj) -> Vec<Str> {
    let namespace = pod.namespace();
    let labels = pod.labels();
    let labels = labels
        .iter()
        .map(|(key, value)| bucket(namespace, key, value));
    labels.chain([bucket(namespace, "", "")]).collect()
}

/// Returns true if two versions of a pod differ in what an endpoint shows.
fn differs(old: &Obj, new: &Obj) -> bool {
    let (a, b) = (old.doc(), new.doc());
    let fields = [
        "/metadata/deletionTimestamp",
        "/metadata/labels",
        "/status/podIPs",
        "/spec/hostname",
        "/spec/subdomain",
        "/spec/nodeName",
    ];
    fields.iter().any(|at| a.at(at) != b.at(at))
        || is_pod_ready(a) != is_pod_ready(b)
        || is_pod_terminal(a) != is_pod_terminal(b)
}
