//! Role based access control over the roles and bindings in the store.

use windlass_core::{Doc, quote};

use super::{MASTERS, User};
use crate::request::{Target, Verb};
use crate::status::Status;
use crate::storage::Storage;

const GROUP: &str = "rbac.authorization.k8s.io";

/// What somebody wants to do, as rules see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) group: String,
    /// With its subresource behind a slash.
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Set instead of all but the verb for what is not a resource.
    pub(crate) path: Option<String>,
}

impl Attributes {
    /// What a request wants to do.
    pub(crate) fn of(target: &Target) -> Self {
        match target {
            Target::Path { path, verb } => {
                let verb = if verb == "head" { "get" } else { verb };
                Self {
                    verb: verb.to_owned(),
                    path: Some(path.clone()),
                    ..Self::default()
                }
            }
            Target::Resource(path) => Self {
                verb: path.verb.map_or("", Verb::as_str).to_owned(),
                group: path.group.clone(),
                resource: join(&path.resource, &path.subresource),
                namespace: path.namespace.clone(),
                name: path.name.clone(),
                path: None,
            },
        }
    }
}

/// A resource and its part as rules write them.
pub(crate) fn join(resource: &str, subresource: &str) -> String {
    if subresource.is_empty() {
        return resource.to_owned();
    }
    format!("{resource}/{subresource}")
}

/// Whether a user may do something.
pub(crate) fn is_allowed(user: &User, wanted: &Attributes, storage: &Storage) -> bool {
    if user.is_in(MASTERS) {
        return true;
    }
    let mut allowed = false;
    visit_rules(user, &wanted.namespace, storage, |rule| {
        allowed = rule_allows(rule, wanted);
        !allowed
    });
    allowed
}

/// Shows every rule that holds for a user in a namespace until told to stop.
pub(super) fn visit_rules(
    user: &User,
    namespace: &str,
    storage: &Storage,
    mut visit: impl FnMut(&Doc) -> bool,
) {
    let cluster = storage.snapshot_of(GROUP, "clusterrolebindings");
    let here = (!namespace.is_empty()).then(|| storage.snapshot_of(GROUP, "rolebindings"));
    let local = here.iter().flat_map(|here| here.namespace(namespace, ""));
    for binding in cluster.iter().chain(local) {
        let binding = binding.doc();
        let place = binding.meta().namespace();
        if !binding
            .at("/subjects")
            .items()
            .iter()
            .any(|subject| is_subject(subject, user, place))
        {
            continue;
        }
        let Some(role) = role_of(binding, place, storage) else {
            continue;
        };
        for rule in role.at("/rules").items() {
            if !visit(rule) {
                return;
            }
        }
    }
}

fn role_of(binding: &Doc, namespace: &str, storage: &Storage) -> Option<Doc> {
    let name = binding.str_at("/roleRef/name");
    match binding.str_at("/roleRef/kind") {
        "ClusterRole" => storage.find(GROUP, "clusterroles", "", name),
        "Role" => storage.find(GROUP, "roles", namespace, name),
        _ => None,
    }
}

fn is_subject(subject: &Doc, user: &User, namespace: &str) -> bool {
    let name = subject.str_at("/name");
    match subject.str_at("/kind") {
        "User" => user.name == name,
        "Group" => user.is_in(name),
        "ServiceAccount" => {
            let place = match subject.str_at("/namespace") {
                "" => namespace,
                given => given,
            };
            let rest = user.name.strip_prefix("system:serviceaccount:");
            !place.is_empty() && rest.and_then(|rest| rest.split_once(':')) == Some((place, name))
        }
        _ => false,
    }
}

/// Whether one rule allows something.
pub(super) fn rule_allows(rule: &Doc, wanted: &Attributes) -> bool {
    if !has(rule.at("/verbs"), |verb| verb == "*" || verb == wanted.verb) {
        return false;
    }
    if let Some(path) = &wanted.path {
        return has(rule.at("/nonResourceURLs"), |pattern| {
            match pattern.strip_suffix('*') {
                Some(prefix) => path.starts_with(prefix),
                None => pattern == path,
            }
        });
    }
    let part = wanted.resource.split_once('/').map(|(_, part)| part);
    let names = rule.at("/resourceNames");
    has(rule.at("/apiGroups"), |group| {
        group == "*" || group == wanted.group
    }) && has(rule.at("/resources"), |resource| {
        let is_part = || part.is_some_and(|part| resource.strip_prefix("*/") == Some(part));
        resource == "*" || resource == wanted.resource || is_part()
    }) && (names.items().is_empty() || has(names, |name| name == wanted.name))
}

fn has(list: &Doc, test: impl Fn(&str) -> bool) -> bool {
    list.items().iter().filter_map(Doc::as_str).any(test)
}

/// Refuses a role or binding that would give more than its author has.
pub(crate) fn check_escalation(
    user: &User,
    resource: &windlass_core::GroupResource,
    object: &Doc,
    storage: &Storage,
) -> Result<(), Status> {
    if resource.group() != GROUP || user.is_in(MASTERS) {
        return Ok(());
    }
    let namespace = object.meta().namespace();
    let (rules, verb, named) = match resource.resource() {
        "roles" | "clusterroles" => (
            object.at("/rules").clone(),
            "escalate",
            object.meta().name().to_owned(),
        ),
        _ => {
            let role = role_of(object, namespace, storage);
            let rules = role
                .map(|role| role.at("/rules").clone())
                .unwrap_or_default();
            (rules, "bind", object.str_at("/roleRef/name").to_owned())
        }
    };
    let target = match (resource.resource(), object.str_at("/roleRef/kind")) {
        ("roles", _) | (_, "Role") => "roles",
        _ => "clusterroles",
    };
    let may = Attributes {
        verb: verb.to_owned(),
        group: GROUP.to_owned(),
        resource: target.to_owned(),
        namespace: namespace.to_owned(),
        name: named,
        path: None,
    };
    if is_allowed(user, &may, storage) {
        return Ok(());
    }
    let missing = missing_rights(user, namespace, &rules, storage);
    if missing.is_empty() {
        return Ok(());
    }
    let groups: Vec<&str> = user.groups.iter().map(String::as_str).collect();
    let why = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        quote(&user.name),
        list(&groups),
        missing.join("\n")
    );
    Err(Status::forbidden(resource, object.meta().name(), &why))
}

/// What a user may not do of what some rules allow, verbs on the same things together.
fn missing_rights(user: &User, namespace: &str, rules: &Doc, storage: &Storage) -> Vec<String> {
    let mut missing: Vec<(Attributes, Vec<String>)> = Vec::new();
    let wishes = rules
        .items()
        .iter()
        .flat_map(|rule| single_wishes(rule, namespace));
    for wish in wishes.filter(|wish| !is_allowed(user, wish, storage)) {
        let thing = Attributes {
            verb: String::new(),
            ..wish
        };
        match missing.iter_mut().find(|(known, _)| *known == thing) {
            Some((_, verbs)) if verbs.contains(&wish.verb) => {}
            Some((_, verbs)) => verbs.push(wish.verb),
            None => missing.push((thing, vec![wish.verb])),
        }
    }
    let mut shown: Vec<String> = missing
        .iter()
        .map(|(thing, verbs)| show_right(thing, verbs))
        .collect();
    shown.sort();
    shown
}

/// Some verbs on one thing, as upstream writes a rule in one line.
fn show_right(thing: &Attributes, verbs: &[String]) -> String {
    let verbs: Vec<&str> = verbs.iter().map(String::as_str).collect();
    let mut parts = Vec::new();
    match &thing.path {
        Some(path) => parts.push(format!("NonResourceURLs:{}", list(&[path]))),
        None => {
            parts.push(format!("APIGroups:{}", list(&[&thing.group])));
            parts.push(format!("Resources:{}", list(&[&thing.resource])));
        }
    }
    if !thing.name.is_empty() {
        parts.push(format!("ResourceNames:{}", list(&[&thing.name])));
    }
    parts.push(format!("Verbs:{}", list(&verbs)));
    format!("{{{}}}", parts.join(", "))
}

/// Texts in quotes with spaces between.
fn list(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

/// A rule taken apart into single wishes. A star is a wish for a star, which only a star grants.
fn single_wishes(rule: &Doc, namespace: &str) -> Vec<Attributes> {
    let texts = |key: &str| -> Vec<String> {
        let items = rule.get(key).map(Doc::items).unwrap_or_default();
        items
            .iter()
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    let names = match texts("resourceNames") {
        names if names.is_empty() => vec![String::new()],
        names => names,
    };
    let mut wishes = Vec::new();
    for verb in texts("verbs") {
        for path in texts("nonResourceURLs") {
            wishes.push(Attributes {
                verb: verb.clone(),
                path: Some(path),
                ..Attributes::default()
            });
        }
        for group in texts("apiGroups") {
            for resource in texts("resources") {
                wishes.extend(names.iter().map(|name| Attributes {
                    verb: verb.clone(),
                    group: group.clone(),
                    resource: resource.clone(),
                    namespace: namespace.to_owned(),
                    name: name.clone(),
                    path: None,
                }));
            }
        }
    }
    wishes
}
