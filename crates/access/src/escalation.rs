//! Nobody gives rights that they do not have.

use windlass_core::{Doc, GroupResource, doc, quote};

use windlass_rules::edit::edit_metadata;
use windlass_rules::status::Status;

use crate::attributes::Attributes;
use crate::authorizer::is_allowed;
use crate::coverage::{self, Missing, Rule, TooMuchWork};
use crate::grants::GROUP;
use crate::objects::Objects;
use crate::rbac;
use crate::user::{MASTERS, User};
use windlass_schema::needs::GrantSort;

/// A write of a role or a binding.
#[derive(Clone, Copy, Debug)]
pub struct GrantWrite<'a> {
    /// The author.
    pub user: &'a User,
    /// The way in which the object gives rights.
    pub grant: GrantSort,
    /// The resource that is written.
    pub resource: &'a GroupResource,
    /// The namespace of the request.
    pub namespace: &'a str,
    /// The name in the path of the request, which is empty for a create.
    pub name: &'a str,
    /// The role or binding.
    pub new: &'a Doc,
    /// Absent for a create.
    pub old: Option<&'a Doc>,
}

/// Refuses a role or binding that would give more than its author has.
pub fn check_escalation(write: &GrantWrite<'_>, objects: &dyn Objects) -> Result<(), Status> {
    if write.user.is_in(MASTERS) {
        return Ok(());
    }
    if write
        .old
        .is_some_and(|old| is_for_collector(write.new, old))
    {
        return Ok(());
    }
    match write.grant {
        GrantSort::Role => check_role(write, objects),
        GrantSort::Binding => check_binding(write, objects),
        // Who may read parameters is asked where the kinds are known.
        GrantSort::PolicyParams | GrantSort::PolicyParamRef(_) => Ok(()),
    }
}

/// Returns true if nothing differs but what the garbage collector writes.
fn is_for_collector(new: &Doc, old: &Doc) -> bool {
    const COLLECTOR: &[&str] = &[
        "ownerReferences",
        "finalizers",
        "selfLink",
        "managedFields",
        "resourceVersion",
    ];
    let strip = |object: &Doc| {
        edit_metadata(object, |metadata| {
            let fold = |metadata: windlass_core::Object, key: &&str| metadata.without(key);
            COLLECTOR.iter().fold(metadata, fold)
        })
    };
    strip(new) == strip(old)
}

fn check_role(write: &GrantWrite<'_>, objects: &dyn Objects) -> Result<(), Status> {
    let may = Attributes {
        verb: "escalate".to_owned(),
        group: GROUP.to_owned(),
        resource: write.resource.resource().to_owned(),
        namespace: write.namespace.to_owned(),
        name: write.name.to_owned(),
        ..Attributes::default()
    };
    if is_allowed(write.user, &may, objects) {
        return Ok(());
    }
    confirm(write, write.new.at("/rules"), objects)?;
    let aggregates = |role: &Doc| {
        let selectors = role.at("/aggregationRule/clusterRoleSelectors");
        !selectors.items().is_empty()
    };
    if !aggregates(write.new) && !write.old.is_some_and(aggregates) {
        return Ok(());
    }
    // An aggregation rule can gather anything.
    let everything = doc!([
        { "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] },
        { "verbs": ["*"], "nonResourceURLs": ["*"] }
    ]);
    let why = "must have cluster-admin privileges to use the aggregationRule";
    confirm(write, &everything, objects).map_err(|_| refuse(write, why))
}

fn check_binding(write: &GrantWrite<'_>, objects: &dyn Objects) -> Result<(), Status> {
    let kind = write.new.str_at("/roleRef/kind");
    let resource = match kind {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        _ => {
            return Err(Status::plain(format!(
                "unsupported role reference kind: {}",
                quote(kind)
            )));
        }
    };
    let name = write.new.str_at("/roleRef/name");
    let may = Attributes {
        verb: "bind".to_owned(),
        group: GROUP.to_owned(),
        resource: resource.to_owned(),
        namespace: write.namespace.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    };
    if is_allowed(write.user, &may, objects) {
        return Ok(());
    }
    match rbac::role_of(write.new, write.namespace, objects) {
        Some(role) => confirm(write, role.at("/rules"), objects),
        // Upstream names the resource of the request, not that of the role.
        None => Err(Status::not_found(write.resource, name)),
    }
}

/// Refuses rules of which the author lacks a part.
fn confirm(write: &GrantWrite<'_>, rules: &Doc, objects: &dyn Objects) -> Result<(), Status> {
    let (owned, absent) = rbac::rules_of(write.user, write.namespace, objects);
    let owned: Vec<Rule<'_>> = owned.iter().map(Rule::of).collect();
    let wanted: Vec<Rule<'_>> = rules.items().iter().map(Rule::of).collect();
    let missing = coverage::missing(&owned, &wanted).map_err(|TooMuchWork| too_much(write))?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(refuse(write, &describe(write.user, &missing, &absent)))
}

fn describe(user: &User, missing: &Missing, absent: &[String]) -> String {
    let groups: Vec<&str> = user.groups.iter().map(String::as_str).collect();
    let mut text = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        quote(&user.name),
        coverage::list(&groups),
        missing.describe()
    );
    match absent {
        [] => {}
        [one] => text.push_str(&format!("; resolution errors: [{one}]")),
        many => text.push_str(&format!("; resolution errors: [[{}]]", many.join(", "))),
    }
    text
}

fn refuse(write: &GrantWrite<'_>, why: &str) -> Status {
    Status::forbidden(write.resource, write.new.meta().name(), why)
}

fn too_much(write: &GrantWrite<'_>) -> Status {
    Status::unprocessable(format!(
        "{} \"{}\": its rules are too many to compare with those of user {} in {} steps; divide \
         them among several roles, or have them written by a user who may \"escalate\" or \"bind\"",
        write.resource,
        write.new.meta().name(),
        quote(&write.user.name),
        coverage::STEPS_LIMIT,
    ))
}
