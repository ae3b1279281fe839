//! Pods.

use std::cell::RefCell;
use std::collections::HashSet;

use windlass_core::{Doc, Env, Memo, Object, Quantity, doc, names};

use super::{
    pod_annotations, pod_containers, pod_gated, pod_resize, pod_spec, pod_status, pod_terms,
};
use crate::edit::{Fields, edit};
use crate::edit::{cut, put};
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

/// Fields that a field selector may name.
pub const FIELDS: &[(&str, &str)] = &[
    ("spec.nodeName", "/spec/nodeName"),
    ("spec.host", "/spec/nodeName"),
    ("spec.restartPolicy", "/spec/restartPolicy"),
    ("spec.schedulerName", "/spec/schedulerName"),
    ("spec.serviceAccountName", "/spec/serviceAccountName"),
    ("status.phase", "/status/phase"),
    ("status.podIP", "/status/podIP"),
    ("status.podIPs", "/status/podIP"),
    ("status.nominatedNodeName", "/status/nominatedNodeName"),
];

/// Specs that a thread remembers.
const KNOWN_LIMIT: usize = 1024;

// Pods of one template come one after the other, and a pod is written several times with the same
// spec.
thread_local! {
    /// Specs with their defaults, by what they were before.
    static DEFAULTED: RefCell<Memo<Doc, Doc>> = RefCell::new(Memo::new(KNOWN_LIMIT));
    /// Specs that are valid.
    static VALID: RefCell<Memo<Doc, ()>> = RefCell::new(Memo::new(KNOWN_LIMIT));
    /// The classes of pods, by what they follow from.
    static CLASSES: RefCell<Memo<[Doc; 3], &'static str>> = RefCell::new(Memo::new(KNOWN_LIMIT));
}

const NODE_NAME: &str = "nodeName";

const GRACE: &str = "/spec/terminationGracePeriodSeconds";

const HUGE_PAGES: &str = "hugepages-";

/// A spec as it would be on any node, since pods of one template differ in nothing else. A name
/// that no node can have stays.
fn on_any_node(spec: &Doc) -> Doc {
    let has_node = |spec: &&Object| {
        let name = spec.get(NODE_NAME).and_then(Doc::as_str);
        name.is_some_and(|name| names::dns1123_subdomain(name).is_empty())
    };
    match spec.as_object().filter(has_node) {
        Some(fields) => fields.with(NODE_NAME, Doc::from("any")).into(),
        None => spec.clone(),
    }
}

/// A spec on the node of another one.
fn on_node_of(placed: &Doc, spec: &Doc) -> Doc {
    match (placed.get(NODE_NAME), spec.as_object()) {
        (Some(node), Some(fields)) => fields.with(NODE_NAME, node.clone()).into(),
        _ => spec.clone(),
    }
}

/// Hooks of pods.
#[derive(Debug)]
pub struct Pods;

impl Hooks for Pods {
    fn default(&self, pod: Doc) -> Doc {
        edit(&pod, |pod| {
            pod.inside("status", |status| edit(status, default_addresses));
            pod.inside("spec", |spec| {
                let anywhere = on_any_node(spec);
                let known = DEFAULTED.with_borrow(|known| known.get(&anywhere));
                let defaulted = known.unwrap_or_else(|| {
                    let defaulted = default_spec(&anywhere);
                    DEFAULTED.with_borrow_mut(|known| known.put(anywhere, defaulted.clone()));
                    defaulted
                });
                on_node_of(spec, &defaulted)
            });
        })
    }

    fn prepare_create(&self, pod: Doc, env: &Env) -> Doc {
        let mut status = doc!({ "phase": "Pending", "qosClass": (quality_class(&pod)) });
        if !pod.at("/spec/schedulingGates").items().is_empty() {
            status = put(
                status,
                "/conditions",
                doc!([{
                    "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastTransitionTime": (env.now().to_string())
                }]),
            );
        }
        let pod = put(pod_terms::merge(pod), "/status", status);
        // Nothing ends before it was asked to.
        match pod.at(GRACE).as_i64() {
            Some(..0) => put(pod, GRACE, 1),
            _ => pod,
        }
    }

    fn prepare_status(&self, new: Doc, old: &Doc) -> Doc {
        let new = keep_owners(new, old);
        match new.str_at("/status/qosClass") {
            "" => put(new, "/status/qosClass", old.at("/status/qosClass")),
            _ => new,
        }
    }

    fn status_resets(&self) -> &'static [&'static [&'static str]] {
        &[
            &["spec"],
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ]
    }

    fn validate(&self, pod: &Doc, errors: &mut FieldErrors) {
        let annotations = FieldPath::new("metadata").child("annotations");
        pod_annotations::validate(pod, &annotations, errors);
        let spec = pod.at("/spec");
        let anywhere = on_any_node(spec);
        if VALID.with_borrow(|known| known.get(&anywhere)).is_some() {
            return;
        }
        let mut found = FieldErrors::default();
        pod_spec::validate_spec(spec, &FieldPath::new("spec"), &mut found);
        validate_tokens(spec, &mut found);
        pod_containers::validate_images(spec, &FieldPath::new("spec"), &mut found);
        if found.is_empty() {
            VALID.with_borrow_mut(|known| known.put(anywhere, ()));
        }
        errors.append(found);
    }

    fn validate_create(&self, pod: &Doc, errors: &mut FieldErrors) {
        let (spec, path) = (pod.at("/spec"), FieldPath::new("spec"));
        if !spec.at("/ephemeralContainers").items().is_empty() {
            errors.forbidden(
                &path.child("ephemeralContainers"),
                "cannot be set on create",
            );
        }
        let has_gates = !spec.at("/schedulingGates").items().is_empty();
        if has_gates && !spec.str_at("/nodeName").is_empty() {
            let detail = "cannot be set until all schedulingGates have been cleared";
            errors.forbidden(&path.child(NODE_NAME), detail);
        }
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        pod_annotations::validate_update(new, old, errors);
        if !has_as_many_containers(new, old, errors) {
            return;
        }
        let grace = |pod: &Doc| pod.at(GRACE).as_i64();
        let may_end = grace(new) == Some(1) && grace(old).is_some_and(|seconds| seconds < 0);
        let frozen = |spec: &Doc| {
            let spec = mutable_parts_removed(spec);
            match may_end {
                true => cut(spec, "/terminationGracePeriodSeconds"),
                false => spec,
            }
        };
        let spec = pod_gated::unchanged(new.at("/spec"), old.at("/spec"), errors);
        if frozen(&spec) == frozen(old.at("/spec")) {
            return check_gates(new, old, errors);
        }
        let detail = "pod updates may not change fields other than \
                      `spec.containers[*].image`,`spec.initContainers[*].image`,\
                      `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
                      tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if \
                      it was previously negative)";
        errors.forbidden(&FieldPath::new("spec"), detail);
    }

    fn prepare_resize(&self, new: Doc, old: &Doc) -> Doc {
        pod_resize::prepare(new, old)
    }

    fn validate_part(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let classes = (quality_class(new), quality_class(old));
        pod_resize::validate(new, old, classes, errors);
    }

    fn validate_status(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        pod_status::validate(new, old, errors);
    }

    fn grace_seconds(&self, pod: &Doc, asked: Option<i64>) -> Option<i64> {
        let phase = pod.str_at("/status/phase");
        let is_idle =
            pod.str_at("/spec/nodeName").is_empty() || matches!(phase, "Succeeded" | "Failed");
        let own = pod.at(GRACE).as_i64().unwrap_or(0);
        let grace = asked.unwrap_or(own);
        Some(if is_idle {
            0
        } else if grace < 0 {
            1
        } else {
            grace
        })
    }
}

fn default_spec(spec: &Doc) -> Doc {
    let spec = pod_spec::default_spec(spec);
    edit(&spec, |spec| {
        if !spec.has("enableServiceLinks") {
            spec.set("enableServiceLinks", true);
        }
        let on_host = spec.get("hostNetwork").and_then(Doc::as_bool) == Some(true);
        for list in ["containers", "initContainers"] {
            spec.each(list, |container| default_container(container, on_host));
        }
        default_pod_requests(spec);
    })
}

/// Resources that a pod may have as a whole.
fn is_of_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES)
}

/// A pod that is limited as a whole requests what its containers request together, and up to its
/// limits what they do not request.
fn default_pod_requests(spec: &mut Fields) {
    let resources = spec.get("resources").cloned().unwrap_or_default();
    let Some(limits) = resources.at("/limits").as_object().cloned() else {
        return;
    };
    if limits.is_empty() {
        return;
    }
    let keys = ["containers", "initContainers"];
    let lists = keys.map(|key| spec.get(key).cloned().unwrap_or_default());
    let containers = doc!({ "spec": { "containers": (&lists[0]), "initContainers": (&lists[1]) } });
    let together = windlass_quota::pod_amounts(&containers, "requests");
    let requests = resources.get("requests").cloned();
    let requests = edit(&requests.unwrap_or_else(Doc::empty_object), |requests| {
        for (name, amount) in &together {
            if matches!(&**name, "cpu" | "memory") {
                requests.default(name, amount.to_string());
            }
        }
        requests.default_each(limits.iter().filter(|(name, _)| is_of_pods(name)));
    });
    if requests.as_object().is_some_and(|it| !it.is_empty()) {
        spec.set("resources", put(resources, "/requests", requests));
    }
}

/// Finds tokens of a service account that a pod does not have.
fn validate_tokens(spec: &Doc, errors: &mut FieldErrors) {
    if !spec.str_at("/serviceAccountName").is_empty() {
        return;
    }
    let path = FieldPath::new("spec").child("volumes");
    for (index, volume) in spec.at("/volumes").items().iter().enumerate() {
        let path = path.index(index).child("projected").child("sources");
        let sources = volume.at("/projected/sources").items().iter().enumerate();
        for (index, _) in sources.filter(|(_, it)| !it.at("/serviceAccountToken").is_null()) {
            let detail = "must not be specified when serviceAccountName is not set";
            errors.forbidden(&path.index(index).child("serviceAccountToken"), detail);
        }
    }
}

/// The one address and the list of addresses say the same.
fn default_addresses(status: &mut Fields) {
    for (one, all) in [("podIP", "podIPs"), ("hostIP", "hostIPs")] {
        let address = status.text(one).to_owned();
        if !address.is_empty() && !status.has(all) {
            status.set(all, doc!([{ "ip": address }]));
        }
    }
}

fn default_container(container: &Doc, on_host: bool) -> Doc {
    edit(container, |container| {
        container.inside("resources", |resources| edit(resources, default_requests));
        if on_host {
            container.each("ports", |port| {
                edit(port, |port| {
                    if let Some(number) = port.get("containerPort").cloned()
                        && !port.has("hostPort")
                    {
                        port.set("hostPort", number);
                    }
                })
            });
        }
    })
}

/// What is limited and not requested is requested up to the limit.
fn default_requests(resources: &mut Fields) {
    let Some(limits) = resources.get("limits").and_then(Doc::as_object).cloned() else {
        return;
    };
    let requests = resources
        .get("requests")
        .cloned()
        .unwrap_or_else(Doc::empty_object);
    let requests = edit(&requests, |requests| {
        requests.default_each(limits.iter());
    });
    if requests
        .as_object()
        .is_some_and(|requests| !requests.is_empty())
    {
        resources.set("requests", requests);
    }
}

/// How well a pod's resources are assured: those of the pod as a whole if it has any, else those of
/// its containers.
fn quality_class(pod: &Doc) -> &'static str {
    let spec = pod.at("/spec");
    let parts = ["resources", "containers", "initContainers"];
    let parts = parts.map(|key| spec.get(key).cloned().unwrap_or_default());
    if let Some(known) = CLASSES.with_borrow(|known| known.get(&parts)) {
        return known;
    }
    let class = class_of(&parts);
    CLASSES.with_borrow_mut(|known| known.put(parts, class));
    class
}

fn class_of([whole, containers, init_containers]: &[Doc; 3]) -> &'static str {
    let mut is_guaranteed = true;
    let mut has_any = false;
    let containers = [containers, init_containers];
    let of_containers = containers.into_iter().flat_map(Doc::items);
    let of_containers = of_containers.map(|container| container.at("/resources"));
    let all: Vec<&Doc> = match whole.is_null() {
        true => of_containers.collect(),
        false => vec![whole],
    };
    for resources in all {
        for name in ["cpu", "memory"] {
            let amount = |kind: &str| {
                let value = resources.at(&format!("/{kind}/{name}"));
                value
                    .as_str()
                    .and_then(|text| text.parse::<Quantity>().ok())
                    .filter(|q| !q.is_zero())
            };
            let (limit, request) = (amount("limits"), amount("requests"));
            has_any |= limit.is_some() || request.is_some();
            is_guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (has_any, is_guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn keep_owners(new: Doc, old: &Doc) -> Doc {
    match old.at("/metadata/ownerReferences") {
        owners if owners.is_null() => cut(new, "/metadata/ownerReferences"),
        owners => put(new, "/metadata/ownerReferences", owners),
    }
}

/// A spec without what may change: images, the deadline, tolerations, gates.
fn mutable_parts_removed(spec: &Doc) -> Doc {
    edit(spec, |spec| {
        for list in ["containers", "initContainers"] {
            spec.each(list, |container| {
                edit(container, |container| container.remove("image"))
            });
        }
        for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
            spec.remove(key);
        }
    })
}

/// Whether no container came or went; nothing else is worth saying then.
fn has_as_many_containers(new: &Doc, old: &Doc, errors: &mut FieldErrors) -> bool {
    for list in ["containers", "initContainers"] {
        let count = |pod: &Doc| pod.at(&format!("/spec/{list}")).items().len();
        if count(new) != count(old) {
            let detail = "pod updates may not add or remove containers";
            errors.forbidden(&FieldPath::new("spec").child(list), detail);
            return false;
        }
    }
    true
}

fn check_gates(new: &Doc, old: &Doc, errors: &mut FieldErrors) {
    let path = FieldPath::new("spec");
    let (gates, known) = (
        new.at("/spec/schedulingGates"),
        old.at("/spec/schedulingGates"),
    );
    let known: HashSet<&Doc> = known.items().iter().collect();
    for (index, gate) in gates.items().iter().enumerate() {
        if !known.contains(gate) {
            let name = gate.str_at("/name");
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            let path = path.child("schedulingGates").index(index).child("name");
            errors.forbidden(&path, detail);
        }
    }
    if !keeps_tolerations(new.at("/spec/tolerations"), old.at("/spec/tolerations")) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.forbidden(&path.child("tolerations"), detail);
    }
    let (deadline, before) = (
        new.at("/spec/activeDeadlineSeconds"),
        old.at("/spec/activeDeadlineSeconds"),
    );
    match (deadline.as_i64(), before.as_i64()) {
        (Some(new), Some(old)) if new > old => {
            let detail = format!("must be less than or equal to previous value {old}");
            errors.invalid(&path.child("activeDeadlineSeconds"), new, detail);
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.invalid(&path.child("activeDeadlineSeconds"), deadline, detail);
        }
        _ => {}
    }
}

/// Whether all tolerations are there still, for whatever time.
fn keeps_tolerations(new: &Doc, old: &Doc) -> bool {
    let core = |toleration: &Doc| cut(toleration.clone(), "/tolerationSeconds");
    if old.items().is_empty() || new == old {
        return true;
    }
    let kept: HashSet<Doc> = new.items().iter().map(core).collect();
    old.items()
        .iter()
        .all(|wanted| kept.contains(&core(wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(node: &str) -> Doc {
        doc!({
            "metadata": { "name": "web" },
            "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "web" }] },
        })
    }

    #[test]
    fn pods_that_differ_in_their_node_alone_keep_it() {
        for node in ["one", "two", "", "Not A Name"] {
            let pod = Pods.default(on(node));
            assert_eq!(pod.at("/spec/nodeName").as_str(), Some(node));
            assert_eq!(pod.str_at("/spec/restartPolicy"), "Always");
        }
        let unplaced = Pods.default(doc!({ "spec": { "containers": [] } }));
        assert!(unplaced.at("/spec/nodeName").is_null());
    }

    #[test]
    fn a_node_that_cannot_be_is_refused_whatever_was_valid_before() {
        let errors = |node: &str| {
            let mut errors = FieldErrors::default();
            Pods.validate(&Pods.default(on(node)), &mut errors);
            errors.is_empty()
        };
        assert_eq!(
            ["one", "Not A Name", "two", "", "Not A Name"].map(errors),
            [true, false, true, true, false]
        );
    }
}
