//! NodeRestriction: a node writes its own objects and those of its pods, and does not make itself
//! more attractive than it is.

mod tokens;

use windlass_core::{Doc, quote};

pub(super) use self::tokens::check_token;
use super::plugin::Admit;
use super::{Request, signing};
use crate::node::node_of;
use windlass_rules::edit::{cut, edit_metadata};
use windlass_rules::status::Status;
use windlass_schema::needs::NodeRule;

const MIRROR: &str = "kubernetes.io/config.mirror";
const LEASES: &str = "kube-node-lease";
/// Labels that a node may set on itself, beside those of its own domains.
const OWN_LABELS: &[&str] = &[
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Limits nodes to objects about themselves.
pub(super) struct NodeRestriction;

impl Admit for NodeRestriction {
    fn create(&self, request: &Request<'_>, object: Doc) -> Result<Doc, Status> {
        check_create(request, &object)?;
        Ok(object)
    }

    fn update(&self, request: &Request<'_>, new: Doc, old: &Doc) -> Result<Doc, Status> {
        check_update(request, &new, old)?;
        Ok(new)
    }

    fn update_part(&self, request: &Request<'_>, new: Doc, old: &Doc) -> Result<Doc, Status> {
        check_update(request, &new, old)?;
        Ok(new)
    }

    fn delete(&self, request: &Request<'_>, object: &Doc) -> Result<(), Status> {
        check_delete(request, object)
    }

    fn evict(&self, request: &Request<'_>, pod: &Doc) -> Result<(), Status> {
        check_eviction(request, pod)
    }

    fn token(&self, request: &Request<'_>, account: &str, wanted: &Doc) -> Result<(), Status> {
        check_token(request, account, wanted)
    }
}

/// The node that asks, if it is one. A node without a name may write nothing.
fn sender<'a>(request: &Request<'a>, object: &Doc) -> Result<Option<&'a str>, Status> {
    match node_of(request.user) {
        Some("") => {
            let who = quote(&request.user.name);
            Err(request.forbid(object, &format!("could not determine node from user {who}")))
        }
        node => Ok(node),
    }
}

/// Refuses a new object that a node may not make.
fn check_create(request: &Request<'_>, object: &Doc) -> Result<(), Status> {
    let Some(node) = sender(request, object)? else {
        return Ok(());
    };
    let refuse = |why: &str| Err(request.forbid(object, why));
    match request.resource.needs.node_rule {
        NodeRule::Pod => check_pod(request, node, object),
        NodeRule::Node => check_node(request, node, object, None),
        NodeRule::Claim => refuse("may only update PVC status"),
        NodeRule::Lease => check_lease(request, node, object),
        NodeRule::StorageNode => check_storage_node(request, node, object),
        NodeRule::Slice if object.str_at("/spec/nodeName") != node => {
            refuse("can only create ResourceSlice with the same NodeName as the requesting node")
        }
        NodeRule::SigningRequest => signing::check_node_subject(request, node, object),
        _ => Ok(()),
    }
}

/// Refuses a change that a node may not make.
fn check_update(request: &Request<'_>, new: &Doc, old: &Doc) -> Result<(), Status> {
    let Some(node) = sender(request, old)? else {
        return Ok(());
    };
    match (request.resource.needs.node_rule, request.subresource) {
        (NodeRule::Pod, "") => {
            let why = format!(
                "unexpected operation \"UPDATE\", node {} can only create and delete mirror pods",
                quote(node)
            );
            Err(request.forbid(old, &why))
        }
        (NodeRule::Pod, "status") => check_pod_status(request, node, new, old),
        // The server's own marks on a pod that is evicted; the eviction itself is checked.
        (NodeRule::Pod, "eviction") => Ok(()),
        (NodeRule::Pod, part) => {
            let why = format!(
                "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
                quote(part)
            );
            Err(request.forbid(old, &why))
        }
        (NodeRule::Node, _) => check_node(request, node, new, Some(old)),
        (NodeRule::Claim, "status") => check_claim_status(request, node, new, old),
        (NodeRule::Claim, _) => Err(request.forbid(old, "may only update PVC status")),
        (NodeRule::Lease, _) => check_lease(request, node, old),
        (NodeRule::StorageNode, _) => check_storage_node(request, node, old),
        _ => Ok(()),
    }
}

/// Refuses a deletion that a node may not make.
fn check_delete(request: &Request<'_>, object: &Doc) -> Result<(), Status> {
    let Some(node) = sender(request, object)? else {
        return Ok(());
    };
    let refuse = |why: &str| Err(request.forbid(object, why));
    let is_own = object.str_at("/spec/nodeName") == node;
    match request.resource.needs.node_rule {
        // An eviction deletes as well.
        NodeRule::Pod if !is_own && request.subresource.is_empty() => refuse(&format!(
            "node {} can only delete pods with spec.nodeName set to itself",
            quote(node)
        )),
        NodeRule::Node => check_node_name(request, node, object),
        NodeRule::Claim => refuse("may only update PVC status"),
        NodeRule::Lease => check_lease(request, node, object),
        NodeRule::StorageNode => check_storage_node(request, node, object),
        NodeRule::Slice if !is_own => {
            refuse("can only delete ResourceSlice with the same NodeName as the requesting node")
        }
        _ => Ok(()),
    }
}

/// Refuses the eviction of a pod of another node.
fn check_eviction(request: &Request<'_>, pod: &Doc) -> Result<(), Status> {
    match sender(request, pod)? {
        Some(node) if pod.str_at("/spec/nodeName") != node => {
            let why = format!("node {node} can only evict pods with spec.nodeName set to itself");
            Err(request.forbid(pod, &why))
        }
        _ => Ok(()),
    }
}

/// A node makes only mirror pods: its own, which refer to nothing.
fn check_pod(request: &Request<'_>, node: &str, pod: &Doc) -> Result<(), Status> {
    let quoted = quote(node);
    let refuse = |why: String| Err(request.forbid(pod, &why));
    let annotations = pod.at("/metadata/annotations");
    if annotations.get(MIRROR).is_none() {
        let key = quote(MIRROR);
        return refuse(format!(
            "pod does not have {key} annotation, node {quoted} can only create mirror pods"
        ));
    }
    if pod.str_at("/spec/nodeName") != node {
        return refuse(format!(
            "node {quoted} can only create pods with spec.nodeName set to itself"
        ));
    }
    check_owner(request, node, pod)?;
    match crate::node::referenced_resource(pod) {
        Some(resource) => refuse(format!(
            "node {quoted} can not create pods that reference {resource}"
        )),
        None => Ok(()),
    }
}

/// The owner of a mirror pod is the node, as it is now.
fn check_owner(request: &Request<'_>, node: &str, pod: &Doc) -> Result<(), Status> {
    let quoted = quote(node);
    let refuse = |why: String| Err(request.forbid(pod, &why));
    let owner = match pod.at("/metadata/ownerReferences").items() {
        [] => &Doc::empty_object(),
        [owner] => owner,
        _ => {
            return refuse(format!(
                "node {quoted} can only create pods with a single owner reference set to itself"
            ));
        }
    };
    let is_own = owner.str_at("/apiVersion") == "v1"
        && owner.str_at("/kind") == "Node"
        && owner.str_at("/name") == node;
    if !is_own {
        return refuse(format!(
            "node {quoted} can only create pods with an owner reference set to itself"
        ));
    }
    if *owner.at("/controller") != true {
        return refuse(format!(
            "node {quoted} can only create pods with a controller owner reference set to itself"
        ));
    }
    if *owner.at("/blockOwnerDeletion") == true {
        return refuse(format!(
            "node {quoted} must not set blockOwnerDeletion on an owner reference"
        ));
    }
    let Some(known) = request.objects.find("", "nodes", "", node) else {
        let nodes = windlass_core::GroupResource::new("", "nodes");
        return Err(Status::not_found(&nodes, node));
    };
    let (given, uid) = (owner.str_at("/uid"), known.meta().uid_str());
    if given != uid {
        return refuse(format!(
            "node {node} UID mismatch: expected {given} got {uid}"
        ));
    }
    Ok(())
}

fn check_pod_status(request: &Request<'_>, node: &str, new: &Doc, old: &Doc) -> Result<(), Status> {
    let node_name = quote(node);
    let refuse = |why: &str| Err(request.forbid(old, &format!("node {node_name} {why}")));
    let differs = |pointer: &str| new.at(pointer) != old.at(pointer);
    if old.str_at("/spec/nodeName") != node {
        return refuse("can only update pod status for pods with spec.nodeName set to itself");
    }
    if labels(new) != labels(old) {
        return refuse("cannot update labels through pod status");
    }
    if differs("/status/resourceClaimStatuses") {
        return refuse("cannot update resource claim statues");
    }
    if differs("/status/extendedResourceClaimStatus") {
        return refuse("cannot update extended resource claim status");
    }
    Ok(())
}

fn check_claim_status(
    request: &Request<'_>,
    node: &str,
    new: &Doc,
    old: &Doc,
) -> Result<(), Status> {
    const FREE: &[&str] = &[
        "/status/capacity",
        "/status/conditions",
        "/status/allocatedResourceStatuses",
        "/status/allocatedResources",
    ];
    let strip = |claim: &Doc| {
        let claim = FREE
            .iter()
            .fold(claim.clone(), |claim, pointer| cut(claim, pointer));
        edit_metadata(&claim, |metadata| {
            metadata.without("resourceVersion").without("managedFields")
        })
    };
    if strip(new) == strip(old) {
        return Ok(());
    }
    let why = format!(
        "node {} is not allowed to update fields other than status.quantity and status.conditions",
        quote(node)
    );
    Err(request.forbid(old, &why))
}

fn check_node_name(request: &Request<'_>, node: &str, object: &Doc) -> Result<(), Status> {
    let name = object.meta().name();
    if name == node {
        return Ok(());
    }
    let why = format!(
        "node {} is not allowed to modify node {}",
        quote(node),
        quote(name)
    );
    Err(request.forbid(object, &why))
}

fn check_node(
    request: &Request<'_>,
    node: &str,
    new: &Doc,
    old: Option<&Doc>,
) -> Result<(), Status> {
    check_node_name(request, node, old.unwrap_or(new))?;
    let quoted = quote(node);
    let refuse = |why: String| Err(request.forbid(old.unwrap_or(new), &why));
    match old {
        Some(old) => check_node_change(request, node, new, old)?,
        None if !new.at("/spec/configSource").is_null() => {
            return refuse(format!(
                "node {quoted} is not allowed to create pods with a non-nil configSource"
            ));
        }
        None => {}
    }
    let forbidden = forbidden_labels(new, old).join(", ");
    match (forbidden.as_str(), old) {
        ("", _) => Ok(()),
        (_, Some(_)) => refuse(format!("is not allowed to modify labels: {forbidden}")),
        (_, None) => refuse(format!(
            "node {quoted} is not allowed to set the following labels: {forbidden}"
        )),
    }
}

/// A node does not change what draws pods to it or keeps them away.
fn check_node_change(
    request: &Request<'_>,
    node: &str,
    new: &Doc,
    old: &Doc,
) -> Result<(), Status> {
    let quoted = quote(node);
    let refuse = |what: &str| {
        let why = format!("node {quoted} is not allowed to {what}");
        Err(request.forbid(old, &why))
    };
    let source = new.at("/spec/configSource");
    if !source.is_null() && source != old.at("/spec/configSource") {
        return refuse("update configSource to a new non-nil configSource");
    }
    let differs = |list: &str| new.at(list).items() != old.at(list).items();
    if differs("/spec/taints") {
        return refuse("modify taints");
    }
    if differs("/metadata/ownerReferences") {
        return refuse("modify ownerReferences");
    }
    Ok(())
}

fn labels(object: &Doc) -> std::collections::BTreeMap<String, String> {
    let labels = object.meta().labels();
    labels
        .iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// The keys of labels that differ and that a node may not touch, in order.
fn forbidden_labels(new: &Doc, old: Option<&Doc>) -> Vec<String> {
    let (new, old) = (labels(new), old.map(labels).unwrap_or_default());
    let keys: std::collections::BTreeSet<&String> = new.keys().chain(old.keys()).collect();
    let differs = |key: &&&String| new.get(**key) != old.get(**key);
    let changed = keys.iter().filter(differs);
    let forbidden = changed.filter(|key| is_forbidden(key));
    forbidden.map(|key| (*key).clone()).collect()
}

fn is_forbidden(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_in = |parent: &str| {
        let rest = domain.strip_suffix(parent);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let is_own =
        OWN_LABELS.contains(&key) || is_in("kubelet.kubernetes.io") || is_in("node.kubernetes.io");
    is_in("node-restriction.kubernetes.io")
        || ((is_in("kubernetes.io") || is_in("k8s.io")) && !is_own)
}

fn check_lease(request: &Request<'_>, node: &str, lease: &Doc) -> Result<(), Status> {
    if request.namespace != LEASES {
        let why = format!("can only access leases in the {LEASES:?} system namespace");
        return Err(request.forbid(lease, &why));
    }
    if lease.meta().name() != node {
        let why = "can only access node lease with the same name as the requesting node";
        return Err(request.forbid(lease, why));
    }
    Ok(())
}

fn check_storage_node(request: &Request<'_>, node: &str, object: &Doc) -> Result<(), Status> {
    if object.meta().name() == node {
        return Ok(());
    }
    let why = "can only access CSINode with the same name as the requesting node";
    Err(request.forbid(object, why))
}
