//! Role based access control over the roles and bindings in the store.

use windlass_core::{Doc, GroupResource};

use crate::attributes::Attributes;
use crate::decision::Decision;
use crate::grants::{GROUP, Grant};
use crate::objects::Objects;
use crate::user::User;

/// At most so many absent roles are named in one message.
const ABSENT_LIMIT: usize = 16;

/// Decides by the roles of a user. Roles that are bound and absent are the reason of a refusal.
pub(crate) fn decide(user: &User, wanted: &Attributes, objects: &dyn Objects) -> Decision {
    let mut reason = None;
    let mut absent: Vec<String> = Vec::new();
    visit_rules(user, &wanted.namespace, objects, |grant, rule| match rule {
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
pub(crate) fn rules_of(
    user: &User,
    namespace: &str,
    objects: &dyn Objects,
) -> (Vec<Doc>, Vec<String>) {
    let (mut rules, mut absent) = (Vec::new(), Vec::new());
    visit_rules(user, namespace, objects, |_, rule| {
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
    objects: &dyn Objects,
    mut visit: impl FnMut(&Grant, Result<&Doc, String>) -> bool,
) {
    for grant in objects.grants(user, namespace) {
        let binding = grant.binding();
        let here = binding.meta().namespace();
        let Some(role) = role_of(binding, here, objects) else {
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
pub(crate) fn role_of(binding: &Doc, namespace: &str, objects: &dyn Objects) -> Option<Doc> {
    let name = binding.str_at("/roleRef/name");
    match binding.str_at("/roleRef/kind") {
        "ClusterRole" => objects.find(GROUP, "clusterroles", "", name),
        "Role" => objects.find(GROUP, "roles", namespace, name),
        _ => None,
    }
}

/// Returns true if one rule allows something.
pub(crate) fn rule_allows(rule: &Doc, wanted: &Attributes) -> bool {
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
