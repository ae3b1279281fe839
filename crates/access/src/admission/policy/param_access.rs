//! Access to the parameters of policies: a policy shows them in its messages, so its author must be
//! allowed to read them.

use windlass_core::{Doc, Gvk};

use crate::attributes::Attributes;
use crate::authorizer::is_allowed;
use crate::objects::Objects;
use crate::user::{MASTERS, User};

/// The reason why a user may not write a policy with its `paramKind`; `resource` is the plural name
/// of that kind, if it is served.
#[must_use]
pub fn refuse_param_kind(
    user: &User,
    policy: &Doc,
    old: Option<&Doc>,
    resource: Option<&str>,
    objects: &dyn Objects,
) -> Option<String> {
    let kind = policy.at("/spec/paramKind");
    let is_known = old.is_some_and(|old| old.at("/spec/paramKind") == kind);
    if kind.is_null() || is_known || user.is_in(MASTERS) {
        return None;
    }
    let wanted = Attributes {
        verb: "get".to_owned(),
        name: "*".to_owned(),
        namespace: "*".to_owned(),
        ..of_kind(kind, resource)
    };
    if is_allowed(user, &wanted, objects) {
        return None;
    }
    let (kind, api_version) = (kind.str_at("/kind"), kind.str_at("/apiVersion"));
    Some(format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind \
         (kind={kind}, apiVersion={api_version})",
        shown(user)
    ))
}

/// The reason why a user may not write a binding with its `paramRef`, given the policy of the
/// binding and the plural name of its kind of parameters.
#[must_use]
pub fn refuse_param_ref(
    user: &User,
    (policy_binding, old): (&Doc, Option<&Doc>),
    policy: Option<&Doc>,
    resource: Option<&str>,
    objects: &dyn Objects,
) -> Option<String> {
    let reference = policy_binding.at("/spec/paramRef");
    let is_known = old.is_some_and(|old| {
        old.at("/spec/paramRef") == reference
            && old.at("/spec/policyName") == policy_binding.at("/spec/policyName")
    });
    if reference.is_null() || is_known || user.is_in(MASTERS) {
        return None;
    }
    let kind = policy.map_or(&Doc::NULL, |policy| policy.at("/spec/paramKind"));
    let verb = match reference.str_at("/name") {
        "" => "list",
        _ => "get",
    };
    let wanted = Attributes {
        verb: verb.to_owned(),
        name: reference.str_at("/name").to_owned(),
        namespace: reference.str_at("/namespace").to_owned(),
        ..of_kind(kind, resource)
    };
    if is_allowed(user, &wanted, objects) {
        return None;
    }
    let who = shown(user);
    let lacks = format!(
        "user {who} does not have \"{verb}\" permission for all groups, versions and resources"
    );
    Some(match policy {
        None => {
            let policy = policy_binding.str_at("/spec/policyName");
            format!(
                "unable to get policy {policy} to determine minimum required permissions and {lacks}"
            )
        }
        Some(_) if !kind.is_null() && resource.is_none() => format!(
            "unable to resolve paramKind {{{} {}}} to determine minimum required permissions and \
             {lacks}",
            kind.str_at("/apiVersion"),
            kind.str_at("/kind")
        ),
        Some(_) => format!(
            "user {who} does not have \"{verb}\" permission on the object referenced by paramRef"
        ),
    })
}

/// The resource of a kind of parameters; everything as far as it is not known.
fn of_kind(kind: &Doc, resource: Option<&str>) -> Attributes {
    let group = match Gvk::parse(kind.str_at("/apiVersion"), kind.str_at("/kind")) {
        Ok(kind) if !kind.version().is_empty() => kind.group().to_owned(),
        _ => "*".to_owned(),
    };
    Attributes {
        group,
        resource: resource.unwrap_or("*").to_owned(),
        ..Attributes::default()
    }
}

/// A user as Go prints it.
fn shown(user: &User) -> String {
    let extra: Vec<String> = user
        .extra
        .iter()
        .map(|(key, values)| format!("{key}:[{}]", values.join(" ")))
        .collect();
    format!(
        "&{{{} {} [{}] map[{}]}}",
        user.name,
        user.uid,
        user.groups.join(" "),
        extra.join(" ")
    )
}
