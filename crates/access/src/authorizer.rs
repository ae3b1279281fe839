//! The authorizers in upstream's order: the group of administrators, nodes, then roles.

use windlass_core::{GroupResource, quote};
use windlass_rules::status::Status;

use crate::attributes::Attributes;
use crate::decision::Decision;
use crate::objects::Objects;
use crate::user::{MASTERS, User};
use crate::{node, rbac};

/// Decides if a user may do something.
pub fn authorize(user: &User, wanted: &Attributes, objects: &dyn Objects) -> Decision {
    if user.is_in(MASTERS) {
        return Decision::allow("");
    }
    let node = node::decide(user, wanted, objects);
    if node.is_allowed {
        return node;
    }
    let mut roles = rbac::decide(user, wanted, objects);
    if !roles.is_allowed && !node.reason.is_empty() {
        let reasons = [node.reason, roles.reason];
        let reasons: Vec<String> = reasons.into_iter().filter(|it| !it.is_empty()).collect();
        roles.reason = reasons.join("\n");
    }
    roles
}

/// Returns true if a user may do something.
pub fn is_allowed(user: &User, wanted: &Attributes, objects: &dyn Objects) -> bool {
    authorize(user, wanted, objects).is_allowed
}

/// Refuses what a user may not do, with 403 in upstream's words.
pub fn check(user: &User, wanted: &Attributes, objects: &dyn Objects) -> Result<(), Status> {
    let decision = authorize(user, wanted, objects);
    match decision.is_allowed {
        true => Ok(()),
        false => Err(denied(user, wanted, &decision.reason)),
    }
}

/// 403 in upstream's words.
pub(crate) fn denied(user: &User, wanted: &Attributes, reason: &str) -> Status {
    let who = quote(&user.name);
    let (resource, what) = match &wanted.path {
        Some(path) => ("", format!("cannot {} path {}", wanted.verb, quote(path))),
        None => {
            let scope = match wanted.namespace.as_str() {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {}", quote(namespace)),
            };
            let (resource, group) = (quote(&wanted.resource), quote(&wanted.group));
            let what = format!(
                "cannot {} resource {resource} in API group {group} {scope}",
                wanted.verb
            );
            let main = wanted.resource.split_once('/');
            (
                main.map_or(wanted.resource.as_str(), |(main, _)| main),
                what,
            )
        }
    };
    // The text may be shown as a page.
    let mut why = format!("User {who} {what}")
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    let resource = GroupResource::new(wanted.group.clone(), resource.to_owned());
    Status::forbidden(&resource, &wanted.name, &why)
}
