//! Role based access control over the roles and bindings in the store.

use windlass_core::{Doc, GroupResource};

use super::grants::Grant;
use super::{Decision, User};
use crate::request::{Target, Verb, percent_decode};
use crate::storage::Storage;

pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

/// At most so many absent roles are named in one message.
const ABSENT_LIMIT: usize = 16;

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
    /// The fields that a list is limited to, with their values.
    pub(crate) fields: Vec<(String, String)>,
}

impl Attributes {
    /// What a request wants to do.
    pub(crate) fn of(target: &Target) -> Self {
        match target {
            Target::Path { path, verb } => {
                let verb = if verb == "head" { "get" } else { verb };
                Self {
                    verb: verb.to_owned(),
                    path: Some(percent_decode(path, false).unwrap_or_else(|| path.clone())),
                    ..Self::default()
                }
            }
            Target::Resource(path) => Self {
                verb: path.verb.map_or("", Verb::as_str).to_owned(),
                group: path.group.clone(),
                resource: join(&path.resource, &path.subresource),
                namespace: path.namespace.clone(),
                name: path.name.clone(),
                ..Self::default()
            },
        }
    }

    /// The same, limited by a field selector.
    pub(crate) fn selecting(mut self, selector: &str) -> Self {
        let terms = selector.split(',').filter_map(|term| term.split_once('='));
        let terms = terms.filter(|(field, _)| !field.ends_with('!'));
        self.fields = terms
            .map(|(field, value)| {
                let value = value.strip_prefix('=').unwrap_or(value);
                (field.trim().to_owned(), value.trim().to_owned())
            })
            .collect();
        self
    }
}

/// A resource and its part as rules write them.
pub(crate) fn join(resource: &str, subresource: &str) -> String {
    if subresource.is_empty() {
        return resource.to_owned();
    }
    format!("{resource}/{subresource}")
}

/// Decides by the roles of a user. Roles that are bound and absent are the reason of a refusal.
pub(super) fn decide(user: &User, wanted: &Attributes, storage: &Storage) -> Decision {
    let mut reason = None;
    let mut absent: Vec<String> = Vec::new();
    visit_rules(user, &wanted.namespace, storage, |grant, rule| match rule {
        Ok(rule) if rule_allows(rule, wanted) => {
            reason = Some(format!("RBAC: allowed by {}", grant.describe()));
            false
        }
        Ok(_) => true,
        Err(role) => {
            if !absent.contains(&role) && absent.len() < ABSENT_LIMIT {
                absent.push(role);
            }
            true
        }
    });
    match reason {
        Some(reason) => Decision::allow(reason),
        None => Decision::no_opinion(match absent.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            many => format!("RBAC: [{}]", many.join(", ")),
        }),
    }
}

/// Every rule that holds for a user in a namespace, and what was not found while looking.
pub(super) fn rules_of(user: &User, namespace: &str, storage: &Storage) -> (Vec<Doc>, Vec<String>) {
    let (mut rules, mut absent) = (Vec::new(), Vec::new());
    visit_rules(user, namespace, storage, |_, rule| {
        match rule {
            Ok(rule) => rules.push(rule.clone()),
            Err(role) if !absent.contains(&role) && absent.len() < ABSENT_LIMIT => {
                absent.push(role);
            }
            Err(_) => {}
        }
        true
    });
    (rules, absent)
}

/// Shows every rule that holds for a user in a namespace until told to stop. A role that is bound
/// and absent is shown as the text of the error.
fn visit_rules(
    user: &User,
    namespace: &str,
    storage: &Storage,
    mut visit: impl FnMut(&Grant, Result<&Doc, String>) -> bool,
) {
    for grant in storage.grants().of(user, namespace, storage) {
        let binding = grant.binding();
        let here = binding.meta().namespace();
        let Some(role) = role_of(binding, here, storage) else {
            let kind = binding.str_at("/roleRef/kind").to_ascii_lowercase();
            let name = binding.str_at("/roleRef/name");
            let missing = format!("{} \"{name}\" not found", GroupResource::new(GROUP, kind));
            if !visit(&grant, Err(missing)) {
                return;
            }
            continue;
        };
        for rule in role.at("/rules").items() {
            if !visit(&grant, Ok(rule)) {
                return;
            }
        }
    }
}

/// The role that a binding of a namespace refers to.
pub(super) fn role_of(binding: &Doc, namespace: &str, storage: &Storage) -> Option<Doc> {
    let name = binding.str_at("/roleRef/name");
    match binding.str_at("/roleRef/kind") {
        "ClusterRole" => storage.find(GROUP, "clusterroles", "", name),
        "Role" => storage.find(GROUP, "roles", namespace, name),
        _ => None,
    }
}

/// Returns true if one rule allows something.
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
