//! Scopes: quotas that are about some objects of a namespace only.

use windlass_core::{Doc, GroupResource};

/// Returns true if an object is in all scopes of a quota. Only pods and PersistentVolumeClaims have
/// scopes, so a quota with a scope counts nothing else.
#[must_use]
pub fn is_in_scope(quota: &Doc, resource: &GroupResource, object: &Doc) -> bool {
    let plain = quota.at("/spec/scopes").items().iter();
    let mut plain = plain.map(|scope| (scope.as_str().unwrap_or_default(), &Doc::NULL));
    let chosen = quota.at("/spec/scopeSelector/matchExpressions").items();
    let mut chosen = chosen.iter().map(|it| (it.str_at("/scopeName"), it));
    let fits = |(scope, choice): (&str, &Doc)| match (resource.group(), resource.resource()) {
        ("", "pods") => pod_fits(scope, choice, object),
        ("", "persistentvolumeclaims") => claim_fits(scope, choice, object),
        _ => false,
    };
    plain.all(fits) && chosen.all(fits)
}

fn pod_fits(scope: &str, choice: &Doc, pod: &Doc) -> bool {
    let ends = || pod.at("/spec/activeDeadlineSeconds").as_i64() >= Some(0);
    let is_best_effort = || pod.str_at("/status/qosClass") == "BestEffort";
    match scope {
        "Terminating" => ends(),
        "NotTerminating" => !ends(),
        "BestEffort" => is_best_effort(),
        "NotBestEffort" => !is_best_effort(),
        "PriorityClass" => {
            let class = pod.str_at("/spec/priorityClassName");
            let names: &[&str] = if class.is_empty() { &[] } else { &[class] };
            is_chosen(choice, names)
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(pod.at("/spec/affinity")),
        _ => false,
    }
}

fn claim_fits(scope: &str, choice: &Doc, claim: &Doc) -> bool {
    if scope != "VolumeAttributesClass" {
        return false;
    }
    let names = [
        claim.str_at("/spec/volumeAttributesClassName"),
        claim.str_at("/status/currentVolumeAttributesClassName"),
        claim.str_at("/status/modifyVolumeStatus/targetVolumeAttributesClassName"),
    ];
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    is_chosen(choice, &names)
}

/// Returns true if the names satisfy one requirement of a scope selector.
fn is_chosen(choice: &Doc, names: &[&str]) -> bool {
    let values = choice.at("/values").items();
    let is_listed = |name: &&str| values.iter().any(|value| value.as_str() == Some(*name));
    match choice.str_at("/operator") {
        "" | "Exists" => !names.is_empty(),
        "DoesNotExist" => names.is_empty(),
        "In" => names.iter().any(is_listed),
        "NotIn" => names.is_empty() || names.iter().any(|name| !is_listed(name)),
        _ => false,
    }
}

/// Returns true if an affinity looks at pods of other namespaces.
fn crosses_namespaces(affinity: &Doc) -> bool {
    let crosses = |term: &Doc| {
        !term.at("/namespaces").items().is_empty() || !term.at("/namespaceSelector").is_null()
    };
    ["/podAffinity", "/podAntiAffinity"].iter().any(|sort| {
        let rules = affinity.at(sort);
        let hard = rules.at("/requiredDuringSchedulingIgnoredDuringExecution");
        let soft = rules.at("/preferredDuringSchedulingIgnoredDuringExecution");
        let soft = soft.items().iter().map(|term| term.at("/podAffinityTerm"));
        hard.items().iter().chain(soft).any(crosses)
    })
}
