//! The pods that a DaemonSet creates.

use windlass_core::{Doc, EditError, Object, doc};

/// The label of pods and revisions with the hash of the template.
pub(super) const HASH_LABEL: &str = "controller-revision-hash";
/// The label of pods with the generation of the template, as old clusters have it.
pub(super) const GENERATION_LABEL: &str = "pod-template-generation";
/// The annotation of DaemonSets with the generation of the template.
const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";

/// Taints that every pod of a DaemonSet tolerates, with their effects.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// The taint that pods in the network of their host tolerate as well.
const NETWORK_UNAVAILABLE: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// The tolerations of a pod spec with those that every pod of a DaemonSet has.
pub(super) fn tolerations(spec: &Doc) -> Vec<Doc> {
    let mut all = spec.at("/tolerations").items().to_vec();
    let network = (*spec.at("/hostNetwork") == true).then_some(NETWORK_UNAVAILABLE);
    for (key, effect) in TOLERATED.into_iter().chain(network) {
        let added = doc!({ "key": key, "operator": "Exists", "effect": effect });
        let is_same = |it: &Doc| {
            let parts = ["/key", "/operator", "/effect", "/value"];
            parts.iter().all(|at| it.str_at(at) == added.str_at(at))
        };
        match all.iter_mut().find(|it| is_same(it)) {
            // One for a limited time becomes one for good.
            Some(known) => *known = added,
            None => all.push(added),
        }
    }
    all
}

/// The generation of the template, if the DaemonSet counts it.
pub(super) fn generation(set: &Doc) -> Option<i64> {
    set.meta().annotation(GENERATION_ANNOTATION)?.parse().ok()
}

/// Returns true if a pod is of the current template.
pub(super) fn is_updated(pod: &Doc, hash: &str, generation: Option<i64>) -> bool {
    let (meta, generation) = (pod.meta(), generation.map(|it| it.to_string()));
    let is_of_hash = !hash.is_empty() && meta.label(HASH_LABEL) == Some(hash);
    is_of_hash || (generation.is_some() && meta.label(GENERATION_LABEL) == generation.as_deref())
}

/// The template of the pods of a DaemonSet.
pub(super) fn of(set: &Doc, hash: &str) -> Result<Doc, EditError> {
    let template = set.at("/spec/template");
    let labels = template.at("/metadata/labels").as_object();
    let mut labels = labels.cloned().unwrap_or_else(Object::empty);
    if let Some(generation) = generation(set) {
        labels = labels.with(GENERATION_LABEL, generation.to_string().into());
    }
    let tolerations = tolerations(template.at("/spec"));
    template
        .with("/spec/tolerations", tolerations)?
        .with("/metadata/labels", labels.with(HASH_LABEL, hash.into()))
}

/// The template of the pod for one node. Node affinity that nodes were chosen by is not needed any
/// more, and gives way to the name of the node.
pub(super) fn for_node(template: &Doc, node: &str) -> Result<Doc, EditError> {
    let field = doc!({ "key": "metadata.name", "operator": "In", "values": [node] });
    let required = doc!({ "nodeSelectorTerms": [{ "matchFields": [field] }] });
    let field = |doc: &Doc| doc.as_object().cloned().unwrap_or_else(Object::empty);
    let affinity = field(template.at("/spec/affinity"));
    let of_node = field(template.at("/spec/affinity/nodeAffinity"));
    let of_node = of_node.with("requiredDuringSchedulingIgnoredDuringExecution", required);
    template.with(
        "/spec/affinity",
        affinity.with("nodeAffinity", of_node.into()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_tolerations_stay() {
        let own = doc!({ "key": "x", "operator": "Exists", "effect": "NoSchedule" });
        let timed = doc!({
            "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 5
        });
        let spec = doc!({ "tolerations": [(own.clone()), timed] });
        let all = tolerations(&spec);
        assert_eq!((all.len(), &all[0]), (7, &own));
        assert!(all[1].get("tolerationSeconds").is_none());
    }

    #[test]
    fn required_affinity_becomes_the_name_of_the_node() {
        let required = doc!({ "nodeSelectorTerms": [{ "matchExpressions": [] }] });
        let affinity = doc!({
            "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [1] },
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": required,
                "preferredDuringSchedulingIgnoredDuringExecution": []
            }
        });
        let template = doc!({ "spec": { "affinity": affinity } });
        let pod = for_node(&template, "n1").unwrap();
        let terms = pod.at(
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
             /nodeSelectorTerms",
        );
        assert_eq!(terms.items().len(), 1);
        assert_eq!(terms.str_at("/0/matchFields/0/values/0"), "n1");
        assert!(terms.items()[0].get("matchExpressions").is_none());
        let kept = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
        assert_eq!(pod.at(kept).items().len(), 1);
        assert!(for_node(&doc!({ "spec": {} }), "n1").is_ok());
    }
}
