//! The roles and bindings that exist from the first start.
//!
//! They are those of upstream, rule by rule, so that upstream's own controllers find the rights
//! that they were written for. `policy.txt` says them in one line each.

use std::sync::LazyLock;

use windlass_core::{Doc, Object, doc};

const POLICY: &str = include_str!("policy.txt");
const GROUP: &str = "rbac.authorization.k8s.io";
/// The label of a role whose rules another one takes in, up to the other's name.
const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// A role of the policy.
#[derive(Debug, Default)]
struct Role {
    namespace: String,
    name: String,
    /// The role that takes in the rules of this one.
    part_of: Option<String>,
    /// True if the rules are those of the roles that are part of this one.
    is_sum: bool,
    rules: Vec<Doc>,
}

/// Every role and binding, with the plural it is stored under.
#[must_use]
pub fn objects() -> Vec<(&'static str, Doc)> {
    /// Read once: tests open many servers in one process.
    static OBJECTS: LazyLock<Vec<(&str, Doc)>> = LazyLock::new(|| read(POLICY));
    OBJECTS.clone()
}

fn read(policy: &str) -> Vec<(&'static str, Doc)> {
    let mut roles: Vec<Role> = Vec::new();
    let mut objects = Vec::new();
    for line in policy.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), roles.last_mut()) {
            (["role", name], _) => roles.push(cluster_role(name, None)),
            (["role", name, "for", other], _) => roles.push(cluster_role(name, Some(other))),
            (["role", namespace, name], _) => roles.push(Role {
                namespace: (*namespace).to_owned(),
                ..cluster_role(name, None)
            }),
            (["bind", name], _) => objects.push(cluster_binding(name, "")),
            (["bind", name, subjects], _) => objects.push(cluster_binding(name, subjects)),
            (["bind", namespace, name, role, subjects], _) => {
                objects.push(local_binding(namespace, name, role, subjects));
            }
            (["from", _], Some(role)) => role.is_sum = true,
            ([verbs, rest @ ..], Some(role)) => role.rules.push(rule(verbs, rest)),
            _ => {}
        }
    }
    let sums: Vec<Doc> = roles.iter().map(|role| sum(&roles, role).into()).collect();
    let roles = roles.iter().zip(sums);
    objects.extend(roles.map(|(role, rules)| role_object(role, &rules)));
    objects
}

fn cluster_role(name: &str, part_of: Option<&str>) -> Role {
    Role {
        name: name.to_owned(),
        part_of: part_of.map(str::to_owned),
        ..Role::default()
    }
}

fn rule(verbs: &str, rest: &[&str]) -> Doc {
    let verbs = list(verbs);
    match rest {
        [groups, resources, names @ ..] => {
            let rule = doc!({
                "verbs": verbs, "apiGroups": (list(groups)), "resources": (list(resources))
            });
            match (names, rule.as_object()) {
                ([names, ..], Some(rule)) => rule.with("resourceNames", list(names)).into(),
                _ => rule,
            }
        }
        _ => doc!({ "verbs": verbs, "nonResourceURLs": (list(rest.first().unwrap_or(&""))) }),
    }
}

/// Words between commas; a hyphen is the empty one.
fn list(words: &str) -> Doc {
    let word = |word: &str| Doc::from(if word == "-" { "" } else { word });
    words.split(',').map(word).collect::<Vec<Doc>>().into()
}

/// The rules of a role: its own, or those of its parts in the order of their names, each once.
fn sum(roles: &[Role], role: &Role) -> Vec<Doc> {
    if !role.is_sum {
        return role.rules.clone();
    }
    let mut rules: Vec<Doc> = Vec::new();
    let is_part = |part: &&Role| part.part_of.as_ref() == Some(&role.name);
    for part in roles.iter().filter(is_part) {
        for rule in sum(roles, part) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    rules
}

fn role_object(role: &Role, rules: &Doc) -> (&'static str, Doc) {
    let mut labels = bootstrapping();
    if let Some(other) = &role.part_of {
        labels = labels.with(&format!("{AGGREGATE}{other}"), Doc::from("true"));
    }
    let (kind, plural) = match role.namespace.as_str() {
        "" => ("ClusterRole", "clusterroles"),
        _ => ("Role", "roles"),
    };
    let metadata = metadata(&role.namespace, &role.name, labels);
    let object = doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": metadata, "rules": (rules.clone())
    });
    let label = format!("{AGGREGATE}{}", role.name);
    let selector =
        doc!({ "matchLabels": (Object::new(Vec::new()).with(&label, Doc::from("true"))) });
    match (role.is_sum, object.as_object()) {
        (true, Some(object)) => {
            let aggregation = doc!({ "clusterRoleSelectors": [selector] });
            (plural, object.with("aggregationRule", aggregation).into())
        }
        _ => (plural, object),
    }
}

fn cluster_binding(name: &str, subjects: &str) -> (&'static str, Doc) {
    let binding = doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": (metadata("", name, bootstrapping())),
        "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": name }
    });
    ("clusterrolebindings", with_subjects(binding, subjects))
}

fn local_binding(namespace: &str, name: &str, role: &str, subjects: &str) -> (&'static str, Doc) {
    let binding = doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": (metadata(namespace, name, bootstrapping())),
        "roleRef": { "apiGroup": GROUP, "kind": "Role", "name": role }
    });
    ("rolebindings", with_subjects(binding, subjects))
}

fn with_subjects(binding: Doc, subjects: &str) -> Doc {
    let subjects: Vec<Doc> = subjects.split(',').filter_map(subject).collect();
    match binding.as_object() {
        Some(object) if !subjects.is_empty() => object.with("subjects", subjects.into()).into(),
        _ => binding,
    }
}

fn subject(text: &str) -> Option<Doc> {
    let (kind, name) = text.split_once('=')?;
    Some(match kind {
        "user" => doc!({ "apiGroup": GROUP, "kind": "User", "name": name }),
        "group" => doc!({ "apiGroup": GROUP, "kind": "Group", "name": name }),
        _ => {
            let (namespace, name) = name.split_once('/')?;
            doc!({ "kind": "ServiceAccount", "name": name, "namespace": namespace })
        }
    })
}

fn bootstrapping() -> Object {
    Object::new(Vec::new()).with("kubernetes.io/bootstrapping", Doc::from("rbac-defaults"))
}

fn metadata(namespace: &str, name: &str, labels: Object) -> Doc {
    let metadata = doc!({
        "name": name,
        "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
        "labels": labels
    });
    match (namespace, metadata.as_object()) {
        ("", _) | (_, None) => metadata,
        (_, Some(known)) => known.with("namespace", Doc::from(namespace)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_has_each_rule_of_its_parts_once() {
        let policy = "\
            role all\n  from all\n\
            role one for all\n  get - pods\n\
            role two for all\n  get - pods\n  list apps deployments a,b\n";
        let objects = read(policy);
        let all = &objects[0].1;
        assert_eq!(all.at("/rules").items().len(), 2);
        assert_eq!(all.at("/rules/0/apiGroups"), &doc!([""]));
        assert_eq!(all.at("/rules/1/resourceNames"), &doc!(["a", "b"]));
        let label = "rbac.authorization.k8s.io/aggregate-to-all";
        let selector = all.at("/aggregationRule/clusterRoleSelectors/0/matchLabels");
        assert_eq!(selector.get(label), Some(&Doc::from("true")));
        let labels = objects[1].1.at("/metadata/labels");
        assert_eq!(labels.get(label), Some(&Doc::from("true")));
    }

    #[test]
    fn every_binding_of_the_policy_names_a_role() {
        let objects = read(POLICY);
        let is_role = |kind: &str, namespace: &str, name: &str| {
            objects.iter().any(|(_, role)| {
                role.str_at("/kind") == kind
                    && role.meta().namespace() == namespace
                    && role.meta().name() == name
            })
        };
        for (plural, binding) in objects
            .iter()
            .filter(|(plural, _)| plural.ends_with("bindings"))
        {
            let (kind, name) = (
                binding.str_at("/roleRef/kind"),
                binding.str_at("/roleRef/name"),
            );
            let namespace = binding.meta().namespace();
            assert!(is_role(kind, namespace, name), "{plural} {name}");
        }
    }
}
